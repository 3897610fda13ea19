"""The figures of a comparison: how long turns waited, how many met a bad route, and whether it was more than chance."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from proxy.cli.playing import Played
from proxy.simulator.record import Record

# A rank sum this far from its mean comes by chance once in a hundred comparisons.
RARE_Z: Final = 2.58


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of playing one scenario; the first ``warm_up`` conversations are left out of the figures.

    ``bad_turns`` and ``bad_starts`` count turns, and conversations whose first turn, met an endpoint to stay away from.
    """

    scenario: str
    client: str
    conversations: int
    turns: int
    failed: int
    ttfb_p50_ms: float
    ttfb_p95_ms: float
    bad_turns: int
    bad_starts: int
    on_spares: int
    probes: int
    probe_tokens: int

    def facts(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Effect:
    """Two arms of a scenario compared by rank sum (Mann and Whitney); ``z`` below 0: ocpool's waits are shorter."""

    scenario: str
    p50_change_ms: float
    p95_change_ms: float
    z: float

    @property
    def by_chance(self) -> bool:
        """Would chance alone often give this?"""
        return abs(self.z) < RARE_Z


def arm(scenario: str, client: str, played: Iterable[Played], records: Iterable[Record], warm_up: int) -> Arm:
    """The figures of one arm; probes count from the beginning."""
    turns = [one for one in played if one.number >= warm_up]
    waits = [one.ttfb_ms for one in turns if one.served]
    starts = [one for one in turns if one.turn == 0]
    probes = [record for record in records if record.probe]
    return Arm(
        scenario=scenario,
        client=client,
        conversations=len(starts),
        turns=len(turns),
        failed=len(turns) - len(waits),
        ttfb_p50_ms=quantile(waits, 0.5),
        ttfb_p95_ms=quantile(waits, 0.95),
        bad_turns=sum(one.bad for one in turns),
        bad_starts=sum(one.bad for one in starts),
        on_spares=sum(one.route == "spare" for one in starts),
        probes=len(probes),
        probe_tokens=sum(record.prompt_tokens + record.completion_tokens for record in probes),
    )


def warm_up_of(played: Iterable[Played]) -> int:
    """How many conversations had begun before the first that began on a spare; all of them if none did."""
    starts = [one for one in played if one.turn == 0]
    spared = [one.number for one in starts if one.route == "spare"]
    return min(spared, default=len(starts))


def effect(scenario: str, direct: Sequence[Played], through: Sequence[Played], warm_up: int) -> Effect:
    """What ocpool changed in a scenario, warm-up left out."""
    before, after = (
        [one.ttfb_ms for one in played if one.number >= warm_up and one.served] for played in (direct, through)
    )
    return Effect(
        scenario,
        quantile(after, 0.5) - quantile(before, 0.5),
        quantile(after, 0.95) - quantile(before, 0.95),
        rank_sum_z(after, before),
    )


def quantile(values: Sequence[float], share: float) -> float:
    """The value that ``share`` of them do not exceed, between neighbours interpolated; 0.0 for none."""
    if not values:
        return 0.0
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def rank_sum_z(ones: Sequence[float], others: Sequence[float]) -> float:
    """How many standard deviations the rank sum of ``ones`` is from what it would be if both were alike.

    Below 0 where ``ones`` are smaller; 0.0 where either is empty.
    """
    count, other = len(ones), len(others)
    if not count or not other:
        return 0.0
    below = sum((one > another) + 0.5 * (one == another) for one in ones for another in others)
    spread = math.sqrt(count * other * (count + other + 1) / 12)
    return (below - count * other / 2) / spread
