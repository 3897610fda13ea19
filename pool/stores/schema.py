"""How spares and bindings are written: the schema of pi-opencode-session-pool, version 1, and what we add to it.

camelCase keys, milliseconds. What we add is optional and left out where it says nothing. Reading never raises:
what does not look like an entry is skipped, and stays in the document as it is.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pool.estimator import Belief
from pool.ids import DIGEST_PREFIX
from pool.model import Binding, Shape, Source, Spare, Stock
from pool.policy import Regime
from pool.ports import Reserved

VERSION = 1
SHAPES = frozenset(Shape)
SOURCES = frozenset(Source)
REGIMES = frozenset(Regime)
Json = dict[str, Any]


def is_wellformed(raw: object) -> bool:
    """Is it a state document at all, of this version or a newer one?"""
    if not isinstance(raw, dict) or integer(raw.get("version")) is None or raw["version"] < VERSION:
        return False
    if raw["version"] > VERSION:
        return True
    return isinstance(raw.get("entries", []), list) and isinstance(raw.get("bindings", {}), dict)


def integer(value: object) -> int | None:
    """A whole number that is no truth value; a float from another writer is rounded."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    with suppress(OverflowError, ValueError):
        return round(value)
    return None


def number(value: object) -> float | None:
    return None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)


def text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def read_spare(raw: object) -> Spare | None:
    """A spare, or None for what is none."""
    if not isinstance(raw, dict):
        return None
    routed_id, provider, model = text(raw.get("id")), text(raw.get("provider")), text(raw.get("model"))
    if routed_id is None or provider is None or model is None:
        return None
    looks = Shape.SES if routed_id.startswith("ses_") else Shape.UUID
    named = text(raw.get("shape"))
    verified_at = integer(raw.get("verifiedAt")) or 0
    return Spare(
        id=routed_id,
        stock=Stock(provider, model, text(raw.get("scope")) or "", Shape(named) if named in SHAPES else looks),
        upstream_ms=number(raw.get("upstreamMs")) or 0.0,
        verified_at=verified_at,
        created_at=integer(raw.get("createdAt")) or verified_at,
        tps=number(raw.get("tps")),
    )


def write_spare(spare: Spare) -> Json:
    written: Json = {
        "id": spare.id,
        "provider": spare.stock.provider,
        "model": spare.stock.model,
        "upstreamMs": round(spare.upstream_ms),
        "verifiedAt": spare.verified_at,
        "createdAt": spare.created_at,
    }
    if spare.stock.scope:
        written["scope"] = spare.stock.scope
    if spare.stock.shape is not Shape.UUID:
        written["shape"] = spare.stock.shape.value
    if spare.tps is not None:
        written["tps"] = round(spare.tps, 1)
    return written


def read_reserved(raw: object) -> Reserved | None:
    spare = read_spare(raw)
    if spare is None or not isinstance(raw, dict):
        return None
    return Reserved(spare, text(raw.get("owner")) or "", integer(raw.get("reservedAt")) or 0)


def write_reserved(spare: Spare, owner: str, at: int) -> Json:
    return write_spare(spare) | {"owner": owner, "reservedAt": at}


def read_binding(key: str, raw: object) -> Binding | None:
    """A binding, or None for what is none."""
    if not isinstance(raw, dict):
        return None
    routed_id, provider, model = text(raw.get("routedId")), text(raw.get("provider")), text(raw.get("model"))
    bound_at, last_seen_at = integer(raw.get("boundAt")), integer(raw.get("lastSeenAt"))
    if routed_id is None or provider is None or model is None or bound_at is None or last_seen_at is None:
        return None
    named = text(raw.get("source"))
    likely = Source.NATURAL if routed_id.startswith(DIGEST_PREFIX) else Source.SPARE
    return Binding(
        key=key,
        provider=provider,
        model=model,
        routed_id=routed_id,
        source=Source(named) if named in SOURCES else likely,
        bound_at=bound_at,
        last_seen_at=last_seen_at,
        upstream_ms=number(raw.get("upstreamMs")),
        verified_at=integer(raw.get("verifiedAt")),
        failures=integer(raw.get("failures")) or 0,
        turns=integer(raw.get("turns")) or 0,
        endpoint=text(raw.get("endpoint")),
        scope=text(raw.get("scope")) or "",
        marked=raw.get("marked") is True,
        standby=text(raw.get("standby")),
        tps=number(raw.get("tps")),
        corrected=raw.get("corrected") is True,
        locked=raw.get("locked") is True,
    )


OPTIONAL = (
    *("upstreamMs", "verifiedAt", "source", "turns", "endpoint", "scope", "marked", "standby"),
    *("tps", "corrected", "locked"),
)


def write_binding(binding: Binding, over: Mapping[str, Any]) -> Json:
    """A binding, with what else was in the entry that it is written over."""
    kept = {name: value for name, value in over.items() if name not in OPTIONAL}
    written: Json = {
        "routedId": binding.routed_id,
        "provider": binding.provider,
        "model": binding.model,
        "boundAt": binding.bound_at,
        "lastSeenAt": binding.last_seen_at,
        "failures": binding.failures,
        "source": binding.source.value,
        "turns": binding.turns,
    }
    optional: Json = {
        "upstreamMs": None if binding.upstream_ms is None else round(binding.upstream_ms),
        "verifiedAt": binding.verified_at,
        "endpoint": binding.endpoint,
        "scope": binding.scope or None,
        "marked": binding.marked or None,
        "standby": binding.standby,
        "tps": None if binding.tps is None else round(binding.tps, 1),
        "corrected": binding.corrected or None,
        "locked": binding.locked or None,
    }
    return kept | written | {name: value for name, value in optional.items() if value is not None}


def read_belief(raw: object) -> Belief | None:
    """What is believed of a model, or None for what is no such thing."""
    if not isinstance(raw, dict):
        return None
    named, score, at = text(raw.get("regime")), number(raw.get("score")), integer(raw.get("at"))
    if named not in REGIMES or score is None or score != score or at is None:  # noqa: PLR0124  (NaN)
        return None
    return Belief(Regime(named), score, integer(raw.get("compared")) or 0, at)


def write_belief(belief: Belief) -> Json:
    return {"regime": belief.regime.value, "score": belief.score, "compared": belief.compared, "at": belief.at}
