"""The figures of a comparison: how long turns waited, how many met a bad route, and whether it was more than chance."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from proxy.cli.playing import Played
from proxy.simulator.record import Record

# A rank sum this far from its mean comes by chance once in a hundred comparisons; a split as uneven as this one in
# twenty. Starts are few, waits are many.
RARE_Z: Final = 2.58
RARE_P: Final = 0.05


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
    """What ocpool changed in a scenario, and whether chance alone would often give as much.

    ``p`` is the chance of bad starts split at least as unevenly (Fisher, one side), ``z`` how far the rank sum of the
    waits is from even (Mann and Whitney): below 0 ocpool's are shorter.
    """

    scenario: str
    bad_starts: tuple[int, int]
    p50_change_ms: float
    p95_change_ms: float
    p: float
    z: float

    @property
    def on_routes(self) -> bool:
        """Did more or fewer conversations start on a bad route?"""
        return self.p < RARE_P

    @property
    def on_waits(self) -> bool:
        """Were waits longer or shorter?"""
        return abs(self.z) >= RARE_Z

    @property
    def none(self) -> bool:
        return not self.on_routes and not self.on_waits


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


def effect(direct: Arm, through: Arm, before: Iterable[Played], after: Iterable[Played], warm_up: int) -> Effect:
    """The effect from both arms of a scenario and what was played in them; the warm-up is left out."""
    waits, shorter = (
        [one.ttfb_ms for one in played if one.number >= warm_up and one.served] for played in (before, after)
    )
    return Effect(
        scenario=direct.scenario,
        bad_starts=(direct.bad_starts, through.bad_starts),
        p50_change_ms=through.ttfb_p50_ms - direct.ttfb_p50_ms,
        p95_change_ms=through.ttfb_p95_ms - direct.ttfb_p95_ms,
        p=split_p(direct.bad_starts, direct.conversations, through.bad_starts, through.conversations),
        z=rank_sum_z(shorter, waits),
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


def split_p(some: int, of: int, others: int, of_others: int) -> float:
    """How likely chance alone splits as unevenly as ``some`` of ``of`` and ``others`` of ``of_others``, or more so."""
    if not of or not of_others:
        return 1.0
    if some * of_others < others * of:
        return split_p(others, of_others, some, of)
    both = some + others
    ways = sum(math.comb(of, more) * math.comb(of_others, both - more) for more in range(some, min(of, both) + 1))
    return ways / math.comb(of + of_others, both)
