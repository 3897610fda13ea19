"""Gauges for a scrape, taken from what ``/-/status`` says, so that the two never disagree."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from proxy.insight.metrics import Reading

# metric <- where in the status
_SINGLE = {
    "ready": ("ready",),
    "requests_in_flight": ("in_flight",),
    "conversations": ("conversations_known",),
    "buffered_bytes": ("buffered_bytes",),
    "events_dropped": ("events", "dropped"),
    "log_lines_dropped": ("log", "dropped"),
}


def readings(seen: dict[str, Any]) -> list[Reading]:
    """Every gauge that can be told; what is null in the status is left out."""
    found = [Reading("info", 1, {"version": str(seen.get("version"))})]
    for name, path in _SINGLE.items():
        value: Any = seen
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, bool | int | float):
            found.append(Reading(name, float(value)))
    started_at = seen.get("started_at")
    if isinstance(started_at, int | float):
        found.append(Reading("start_time_seconds", started_at / 1000))
    return [*found, *_connections(seen.get("upstream")), *_pool(seen), *_money(seen.get("usage"))]


def _connections(upstream: Any) -> Iterator[Reading]:
    if isinstance(upstream, dict) and isinstance(upstream.get("connections"), int):
        idle = upstream.get("idle") or 0
        yield Reading("upstream_connections", idle, {"state": "idle"})
        yield Reading("upstream_connections", upstream["connections"] - idle, {"state": "active"})


def _pool(seen: dict[str, Any]) -> Iterator[Reading]:
    for row in _rows(seen.get("pool")):
        labels = {"provider": str(row.get("provider")), "model": str(row.get("model"))}
        yield Reading("pool_spares", _number(row.get("fresh")), {**labels, "state": "fresh"})
        yield Reading("pool_spares", _number(row.get("stale")), {**labels, "state": "stale"})
        yield Reading("pool_target", _number(row.get("target")), labels)
        yield Reading("pool_bindings", _number(row.get("bound")), labels)
        yield from _routing(row.get("routing"), labels)
    pauses = Counter(str(row.get("provider")) for row in _rows(seen.get("pauses")))
    for provider, count in pauses.items():
        yield Reading("pool_pauses", count, {"provider": provider})


def _routing(found: Any, labels: dict[str, str]) -> Iterable[Reading]:
    if isinstance(found, dict):
        for regime in ("sticky", "balanced", "unknown"):
            yield Reading("routing_regime", int(found.get("regime") == regime), {**labels, "regime": regime})
        confidence = found.get("confidence")
        yield Reading("routing_confidence", confidence if isinstance(confidence, float) else 0.0, labels)


def _money(usage: Any) -> Iterator[Reading]:
    for row in _rows(usage.get("since_start")) if isinstance(usage, dict) else ():
        labels = {"provider": str(row.get("provider")), "model": str(row.get("model"))}
        for name in ("cost_usd", "saved_usd"):
            if isinstance(row.get(name), int | float):
                yield Reading(name, float(row[name]), labels)


def _rows(value: Any) -> Iterable[dict[str, Any]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int | float) else 0
