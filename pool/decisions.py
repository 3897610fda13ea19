"""The decisions of the event log: what was chosen for a conversation, beside what its natural id gave or would have.

The names are those of dsh-plugin-opencode-route; ``docs/events.md`` has every fact.
"""

from typing import NamedTuple

from pool.lanes import Lane
from pool.model import Note, Spare, Wish
from pool.parts import Parts
from pool.told import rounded


class Chosen(NamedTuple):
    """What was measured of the id that was chosen."""

    tps: float | None = None
    ms: float | None = None
    estimated: bool = False


def of_spare(spare: Spare) -> Chosen:
    """What a spare was verified with."""
    return Chosen(spare.tps, spare.upstream_ms)


def keep_natural(parts: Parts, wish: Wish, source: str) -> Note:
    """The conversation stays where it would have been."""
    lane = _decided(parts, wish)
    chosen = Chosen(lane.natural_tps, lane.natural_ms, lane.estimated)
    facts = counterfactual(parts, wish, lane, chosen) | {"gain": 1.0}
    return parts.note("keep-natural", wish, wish.natural.value, source=source, **facts)


def pin(parts: Parts, wish: Wish, routed_id: str, source: str, chosen: Chosen) -> list[Note]:
    """The conversation is on another id from now on; weighed, where the natural one was measured."""
    lane = _decided(parts, wish)
    facts = counterfactual(parts, wish, lane, chosen)
    notes = [parts.note("compare", wish, routed_id, **facts)] if lane.natural.bad else []
    return [*notes, parts.note("pin", wish, routed_id, source=source, **facts)]


def skip_pin(parts: Parts, wish: Wish, source: str, reason: str, best: Spare | None = None) -> list[Note]:
    """The conversation stays on its natural id although that is no good; ``best`` is what would have been taken."""
    lane = _decided(parts, wish)
    facts = counterfactual(parts, wish, lane, of_spare(best) if best is not None else Chosen())
    routed_id = wish.natural.value if best is None else best.id
    notes = [parts.note("compare", wish, routed_id, **facts)] if best is not None else []
    return [*notes, parts.note("skip-pin", wish, routed_id, source=source, reason=reason, **facts)]


def counterfactual(parts: Parts, wish: Wish, lane: Lane, chosen: Chosen) -> dict[str, object]:
    """What the natural id gave beside what was chosen, and how much faster that is."""
    policy = parts.policies[wish.judged]
    gain = _ratio(chosen.tps, lane.natural_tps) if policy.paced else _ratio(lane.natural_ms, chosen.ms)
    return {
        "profile": "throughput" if policy.paced else "latency",
        "natural": lane.natural.value,
        "natural_tps": rounded(lane.natural_tps),
        "chosen_tps": rounded(chosen.tps),
        "natural_ms": rounded(lane.natural_ms),
        "chosen_ms": rounded(chosen.ms),
        "estimated": lane.estimated or chosen.estimated,
        "gain": gain,
        "observed": not policy.applied,
    }


def _decided(parts: Parts, wish: Wish) -> Lane:
    lane = parts.lanes.of(wish.key)
    lane.decided = True
    return lane


def _ratio(better: float | None, worse: float | None) -> float | None:
    return round(better / worse, 3) if better and worse else None
