"""What the event log is told of a probe: its own line, and one that says why it is not good enough."""

from typing import NamedTuple

from pool.model import ModelKey, Note, ProbeKind, ProbeResult, Stock
from pool.parts import note

REJECTED = frozenset({ProbeKind.SLOW, ProbeKind.MISMATCH})


class Sent(NamedTuple):
    """What a probe was sent for. ``again``: a stale spare; ``natural``: a conversation's own id; ``round``: which."""

    paced: bool
    again: bool = False
    natural: bool = False
    round: int | None = None
    kept: bool = False
    conversation: str | None = None


def of_probe(stock: Stock, result: ProbeResult, sent: Sent) -> list[Note]:
    """``probe``, and ``probe-reject`` or ``probe-dead`` where it was no good."""
    model = ModelKey(stock.provider, stock.model)
    shared: dict[str, object] = {"profile": "throughput" if sent.paced else "latency"}
    if sent.round is not None:
        shared |= {"round": sent.round, "natural": sent.natural}
    measured: dict[str, object] = {"upstream_ms": result.upstream_ms, "wall_ms": rounded(result.wall_ms)}
    if sent.paced:
        measured |= {
            "ttfb_ms": rounded(result.ttfb_ms),
            "total_ms": rounded(result.total_ms),
            "tps": rounded(result.tps),
            "estimated": result.estimated,
            "completion_tokens": result.completion_tokens,
        }
    facts: dict[str, object] = {
        "tokens": result.tokens,
        "status": result.status,
        "endpoint": result.endpoint,
        "again": sent.again,
        "kept": sent.kept,
    }
    probe = {"kind": result.kind.value, **shared, **measured, **facts}
    notes = [note("probe", sent.conversation, model, result.id, **probe)]
    if result.kind in REJECTED:
        reject = {"reason": result.reason or result.kind.value, **shared, **measured}
        notes.append(note("probe-reject", sent.conversation, model, result.id, **reject))
    elif result.kind is not ProbeKind.FAST:
        dead = {"reason": result.kind.value, **shared, "status": result.status}
        notes.append(note("probe-dead", sent.conversation, model, result.id, **dead))
    return notes


def rounded(value: float | None) -> float | None:
    """As the log shows a measurement."""
    return None if value is None else round(value, 1)
