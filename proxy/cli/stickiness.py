"""Is routing sticky? What a few probes of one id, compared with probes of other ids, can say about it."""

from collections.abc import Sequence
from dataclasses import dataclass

from pool.model import ProbeKind, ProbeResult

# One route's own latency varies less than this; another route's is often ten times as long.
_STEADY = 3.0
_APART = 5.0

_MEASURED = frozenset({ProbeKind.FAST, ProbeKind.SLOW, ProbeKind.MISMATCH, ProbeKind.TIMEOUT})


@dataclass(frozen=True, slots=True)
class Finding:
    """``routing`` is sticky, balanced or unknown; ``because`` is its evidence in words."""

    routing: str
    because: str


def judge(same: Sequence[ProbeResult], fresh: Sequence[ProbeResult]) -> Finding:
    """``same`` are the probes of one id, ``fresh`` one each of other ids. A handful proves little: it looks like."""
    again = [result for result in same if result.kind in _MEASURED]
    others = [result for result in fresh if result.kind in _MEASURED]
    if len(again) < 2:
        return Finding("unknown", "one id was not answered twice")
    if not others:
        return Finding("unknown", "no other id was answered")
    return _by_endpoint(again, others) or _by_latency(again, others)


def _by_endpoint(again: Sequence[ProbeResult], others: Sequence[ProbeResult]) -> Finding | None:
    """Who served, where the gateway says so; None where that decides nothing."""
    named = {result.endpoint for result in again if result.endpoint is not None}
    if len(named) > 1:
        return Finding("balanced", f"one id was served by {len(named)} endpoints: {_list(named)}")
    elsewhere = {result.endpoint for result in others if result.endpoint is not None} - named
    if named and elsewhere:
        return Finding("sticky", f"one id kept to {_list(named)}, others were served by {_list(elsewhere)}")
    return None


def _by_latency(again: Sequence[ProbeResult], others: Sequence[ProbeResult]) -> Finding:
    spread, across = _spread(again), _spread([*again, *others])
    because = f"one id's latency varied {spread:.1f}-fold, across ids {across:.1f}-fold"
    if spread >= _APART:
        return Finding("balanced", because)
    if spread <= _STEADY and across >= _APART:
        return Finding("sticky", because)
    return Finding("unknown", because)


def latency_ms(result: ProbeResult) -> float:
    """What a probe is judged by."""
    return result.wall_ms if result.upstream_ms is None else result.upstream_ms


def _spread(results: Sequence[ProbeResult]) -> float:
    latencies = [max(1.0, latency_ms(result)) for result in results]
    return max(latencies) / min(latencies)


def _list(names: set[str]) -> str:
    return ", ".join(sorted(names))
