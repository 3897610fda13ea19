"""``ocpool inspect``: the state file as it is on disk. Takes no lock and changes nothing; no daemon is needed."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proxy.cli.options import json_option, load_settings, print_json, settings_options
from proxy.cli.tables import Row, console, fact, milliseconds, printable, show_table

if TYPE_CHECKING:
    from pool.estimator import Belief
    from pool.model import Binding, Spare

LONGEST = 256 * 1024 * 1024
_LABEL = re.compile(r"[0-9a-f]{16}")


@click.command()
@settings_options
@json_option
def inspect(config_file: Path | None, overrides: Sequence[str], as_json: bool) -> int:
    """Show spares, bindings and what was learned of routing, with their ages, from the state file; ids as digests.

    Exit code 1 when there is nothing that could be read.
    """
    from config.paths import state_path
    from pool.clock import Clock

    settings = load_settings(config_file, overrides).settings
    path = state_path(settings)
    document = read_document(path)
    seen = summary(document, Clock().wall_ms(), settings.pool.ttl_ms)
    if as_json:
        print_json({"path": str(path), **seen})
        return 0
    to = console()
    to.print(f"{printable(str(path))}, version {seen['version']}", markup=False)
    for remark in seen["remarks"]:
        click.echo(f"ocpool: {remark}", err=True)
    show_table(to, "Spares", seen["spares"], _SPARES)
    show_table(to, "Bindings", seen["bindings"], _BINDINGS)
    show_table(to, "Routing, as it was learned", seen["routing"], _ROUTING)
    show_table(to, "Probes in the last hour", seen["probes"], _PROBES)
    if not seen["spares"] and not seen["bindings"]:
        to.print("No spares and no bindings.")
    return 0


def read_document(path: Path) -> dict[str, Any]:
    """The state file's document.

    Raises:
        ClickException: it is not there, cannot be read, or is no state file; the reason in one line.
    """
    import orjson

    from pool.stores.schema import is_wellformed

    try:
        with path.open("rb") as file:
            data = file.read(LONGEST)
    except FileNotFoundError:
        raise click.ClickException(f"there is no state file at {path} yet.") from None
    except OSError as error:
        raise click.ClickException(f"the state file {path} cannot be read: {error.strerror}.") from None
    try:
        document = orjson.loads(data)
    except ValueError:
        document = None
    if not isinstance(document, dict) or not is_wellformed(document):
        state = "empty" if not data.strip() else "corrupt: it is no state document"
        raise click.ClickException(f"the state file {path} is {state}. A starting daemon puts it aside.")
    return document


def summary(document: dict[str, Any], now: int, ttl_ms: int) -> dict[str, Any]:
    """What the document says, as rows; what is no entry is skipped and counted."""
    from pool.stores import schema

    remarks = []
    if document["version"] > schema.VERSION:
        remarks.append(f"version {document['version']} is newer than this ocpool; shown as far as it is understood.")
    entries, reserved, bindings = (
        _list(document.get("entries")),
        _list(document.get("reserved")),
        document.get("bindings"),
    )
    bindings = bindings if isinstance(bindings, dict) else {}
    beliefs = [
        (provider, model, raw) for provider, models in _table(document.get("routing")) for model, raw in _table(models)
    ]
    learned = [
        (provider, model, belief) for provider, model, raw in beliefs if (belief := schema.read_belief(raw)) is not None
    ]
    free = [spare for raw in entries if (spare := schema.read_spare(raw)) is not None]
    held = [kept for raw in reserved if (kept := schema.read_reserved(raw)) is not None]
    bound = [found for key, raw in bindings.items() if (found := schema.read_binding(key, raw)) is not None]
    skipped = len(entries) + len(reserved) + len(bindings) - len(free) - len(held) - len(bound)
    skipped += len(beliefs) - len(learned)
    if skipped:
        remarks.append(f"left out, because it cannot be read: {skipped} of its entries.")
    spares = [_spare(spare, now, ttl_ms) for spare in free]
    spares += [_spare(kept.spare, now, ttl_ms, kept.owner) for kept in held]
    return {
        "version": document["version"],
        "remarks": remarks,
        "spares": sorted(spares, key=lambda row: (row["provider"], row["model"], not row["fresh"], row["upstream_ms"])),
        "bindings": [_binding(found, now) for found in sorted(bound, key=lambda found: -found.last_seen_at)],
        "routing": [_belief(provider, model, belief, now) for provider, model, belief in sorted(learned)],
        "probes": _probes(document.get("probes"), now),
    }


def _spare(spare: "Spare", now: int, ttl_ms: int, owner: str | None = None) -> Row:
    from pool.ids import short

    age_ms = now - spare.verified_at if spare.verified_at else None
    return {
        "provider": spare.stock.provider,
        "model": spare.stock.model,
        "id": short(spare.id),
        "shape": spare.stock.shape.value,
        "scope": short(spare.stock.scope) if spare.stock.scope else None,
        "upstream_ms": spare.upstream_ms,
        "age_ms": age_ms,  # negative when a clock was wrong: counts as stale
        "fresh": age_ms is not None and 0 <= age_ms < ttl_ms,
        "reserved_by": owner,
    }


def _binding(binding: "Binding", now: int) -> Row:
    from pool.ids import DIGEST_PREFIX, short

    routed_id = binding.routed_id
    is_digest = routed_id.startswith(DIGEST_PREFIX)
    name = binding.key.partition("::")[0]
    return {
        "conversation": name if _LABEL.fullmatch(name) else short(name),  # the pi extension's are session ids
        "provider": binding.provider,
        "model": binding.model,
        "id": routed_id.removeprefix(DIGEST_PREFIX)[:8] if is_digest else short(routed_id),
        "source": binding.source.value,
        "upstream_ms": binding.upstream_ms,
        "turns": binding.turns,
        "failures": binding.failures,
        "endpoint": binding.endpoint,
        "marked": binding.marked,
        "age_ms": now - binding.bound_at,
        "idle_ms": now - binding.last_seen_at,
    }


def _belief(provider: str, model: str, belief: "Belief", now: int) -> Row:
    return {
        "provider": provider,
        "model": model,
        "regime": belief.regime.value,
        "confidence": None if belief.confidence is None else round(belief.confidence, 3),
        "compared": belief.compared,
        "age_ms": now - belief.at,
        "holds": belief.holds(now),
    }


def _probes(table: object, now: int) -> list[Row]:
    """How many of the last hour's probes are counted, by provider."""
    from pool.stores.ledger import HOUR_MS
    from pool.stores.schema import integer

    rows: list[Row] = []
    for provider, stamps in _table(table):
        sent = sum(1 for raw in _list(stamps) if (at := integer(raw)) is not None and abs(now - at) < HOUR_MS)
        if sent:
            rows.append({"provider": provider, "sent": sent})
    return rows


def _table(value: object) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


_SPARES = (
    ("provider", fact("provider")),
    ("model", fact("model")),
    ("id", fact("id")),
    ("upstream", milliseconds("upstream_ms")),
    ("verified", milliseconds("age_ms")),
    ("fresh", fact("fresh")),
    ("reserved by", fact("reserved_by")),
    ("scope", fact("scope")),
)

_BINDINGS = (
    ("conversation", fact("conversation")),
    ("provider", fact("provider")),
    ("model", fact("model")),
    ("route", fact("source")),
    ("id", fact("id")),
    ("upstream", milliseconds("upstream_ms")),
    ("turns", fact("turns")),
    ("failures", fact("failures")),
    ("endpoint", fact("endpoint")),
    ("age", milliseconds("age_ms")),
    ("idle", milliseconds("idle_ms")),
)

_ROUTING = (
    ("provider", fact("provider")),
    ("model", fact("model")),
    ("routing", fact("regime")),
    ("confidence", lambda row: None if row["confidence"] is None else f"{row['confidence']:.0%}"),
    ("compared", fact("compared")),
    ("last evidence", milliseconds("age_ms")),
    ("believed", fact("holds")),
)

_PROBES = (("provider", fact("provider")), ("sent", fact("sent")))
