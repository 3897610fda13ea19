"""``ocpool status``: what the running daemon says of itself."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proxy.cli import daemon
from proxy.cli.daemon import table_rows
from proxy.cli.instants import clock_time, duration
from proxy.cli.options import daemon_options, json_option, load_settings, print_json
from proxy.cli.tables import Row, console, fact, milliseconds, printable, show_table
from proxy.cli.usage import columns

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = 20  # rows of a table; --json has more


@click.command()
@click.argument("conversation", required=False)
@daemon_options
@json_option
def status(
    conversation: str | None, config_file: Path | None, overrides: Sequence[str], url: str | None, as_json: bool
) -> int:
    """Show the running daemon, or one CONVERSATION of it by its label.

    Finds the daemon by its runtime file, or by --url. Exit code 1 when none runs.
    """
    settings = load_settings(config_file, overrides).settings
    seen = daemon.choose(settings, url).get("/-/status", conversation=conversation)
    if as_json:
        print_json(seen)
        return 0
    show(seen, console())
    return 0


def show(seen: dict[str, Any], to: "Console") -> None:
    """The status as text and tables."""
    now = seen.get("now")
    now = now if isinstance(now, int) else 0
    for line in headline(seen):
        to.print(printable(line), markup=False)
    show_table(to, "Pool", table_rows(seen.get("pool")), _POOL)
    show_table(to, "No probes", table_rows(seen.get("pauses")), _pauses(now))
    show_table(to, "Gateway trouble", table_rows(seen.get("faults")), _pauses(now))
    show_table(to, "Bindings", table_rows(seen.get("bindings"))[:SHOWN], _BINDINGS)
    show_table(to, "Conversations", table_rows(seen.get("conversations"))[:SHOWN], _CONVERSATIONS)
    usage = seen.get("usage")
    since_start = table_rows(usage.get("since_start")) if isinstance(usage, dict) else ()
    show_table(to, "Usage since the start", since_start[:SHOWN], columns(("provider", "model")))
    show_table(to, "Last requests", table_rows(seen.get("last_requests"))[:SHOWN], _REQUESTS)


def headline(seen: dict[str, Any]) -> list[str]:
    """What matters first: is it well, and what does it do."""
    uptime = seen.get("uptime_ms")
    up = f", up {duration(uptime)}" if isinstance(uptime, int | float) else ""
    state = "ready" if seen.get("ready") else f"NOT READY ({seen.get('reason')})"
    lines = [f"ocpool {seen.get('version')} at {seen.get('address')}{up}, {state}, mode {seen.get('mode')}"]
    upstream = seen.get("upstream")
    if isinstance(upstream, dict):
        lines.append(
            f"upstream {upstream.get('base_url')}, {upstream.get('connections')} connections"
            f" ({upstream.get('idle')} idle), {seen.get('in_flight')} in flight"
        )
    reasons = seen.get("not_probing")
    if isinstance(reasons, dict):
        lines += [f"no probes for {provider}: {reason}" for provider, reason in reasons.items() if reason]
    problems = seen.get("problems")
    if isinstance(problems, dict):
        lines += [f"! {part}: {text}" for part, text in problems.items()]
    return lines


def routing(found: object) -> str | None:
    """How the gateway routes this model, as far as it is known: ``sticky 97% (41)``, from so many comparisons."""
    if not isinstance(found, dict) or not isinstance(confidence := found.get("confidence"), int | float):
        return None
    if found.get("regime") == "unknown":
        return f"unknown ({found.get('compared')})"
    return f"{found.get('regime')} {confidence:.0%} ({found.get('compared')})"


_POOL = (
    ("provider", fact("provider")),
    ("model", fact("model")),
    ("fresh", fact("fresh")),
    ("stale", fact("stale")),
    ("target", fact("target")),
    ("bound", fact("bound")),
    ("in use", fact("live")),
    ("routing", lambda row: routing(row.get("routing"))),
)

_CONVERSATIONS = (
    ("label", fact("label")),
    ("match", fact("match")),
    ("turns", fact("turns")),
    ("in flight", fact("in_flight")),
    ("natural", fact("natural")),
    ("models", fact("models")),
    ("age", milliseconds("age_ms")),
    ("idle", milliseconds("idle_ms")),
)

_REQUESTS = (
    ("time", lambda row: clock_time(row.get("at"))[11:]),
    ("conversation", fact("conversation")),
    ("model", fact("model")),
    ("route", fact("route")),
    ("status", fact("status")),
    ("verdict", fact("verdict")),
    ("blame", fact("blame")),
    ("endpoint", fact("endpoint")),
    ("upstream", milliseconds("upstream_ms")),
    ("first byte", milliseconds("ttfb_ms")),
    ("total", milliseconds("total_ms")),
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


def _pauses(now: int) -> Sequence[tuple[str, Any]]:
    def left(row: Row) -> object:
        until = row.get("until")
        return duration(max(0, until - now)) if isinstance(until, int | float) else "until something changes"

    return (
        ("provider", fact("provider")),
        ("model", fact("model")),
        ("reason", fact("reason")),
        ("for another", left),
    )
