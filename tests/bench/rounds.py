"""Rounds: everything measured once, with freshly started proxies; what others disturbed is measured again, and counted."""

import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tests.bench import measures
from tests.bench.machine import Watch
from tests.bench.measures import Figures, Measure
from tests.bench.targets import AIOHTTP, DIRECT, OCPOOL, PLAIN, TLS, Field, Target, running

DISTURBED = 0.12  # of the machine in other hands
_TRIES = 3

# What is measured of whom; memory first, because what was used before is there to be used again.
PLAN: tuple[tuple[Measure, tuple[str, ...], tuple[str, ...]], ...] = (
    (measures.memory, (AIOHTTP, OCPOOL), (PLAIN,)),
    (measures.requests, (DIRECT, AIOHTTP, OCPOOL), (PLAIN, TLS)),
    (measures.events, (DIRECT, AIOHTTP, OCPOOL), (PLAIN, TLS)),
    (measures.large_bodies, (DIRECT, AIOHTTP, OCPOOL), (PLAIN,)),
    (measures.openings, (OCPOOL,), (PLAIN,)),
)


@dataclass
class Patience:
    """How long disturbed measurements are repeated in all, and how that went."""

    seconds: float
    measured: int = 0
    repeated: int = 0
    kept: int = 0  # disturbed to the last try
    worst: float = 0.0  # the largest share of others in what was kept
    watch: Callable[[Iterable[int]], Watch] = Watch

    async def measure(self, measure: Measure, target: Target, pids: Iterable[int]) -> tuple[Figures, float]:
        """Measure until others let it, three times at most; returns the least disturbed try, and the others' share."""
        self.measured += 1
        tries: list[tuple[float, Figures]] = []
        while True:
            began, watch = time.perf_counter(), self.watch(pids)
            figures = await measure(target)
            tries.append((watch.share(), figures))
            if tries[-1][0] <= DISTURBED or len(tries) == _TRIES or self.seconds <= 0:
                break
            self.repeated += 1
            self.seconds -= time.perf_counter() - began
        share, figures = min(tries, key=lambda one: one[0])
        self.worst = max(self.worst, share)
        self.kept += share > DISTURBED
        return figures, share


@dataclass
class Results:
    """All figures of all rounds, by target, way and name."""

    rows: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)

    def add(self, target: Target, figures: Figures) -> None:
        for name, value in figures.items():
            self.rows.setdefault((target.name, target.way, name), []).append(value)

    def mid(self, target: str, way: str, name: str) -> float | None:
        """The median over the rounds; None where it was never measured."""
        found = self.rows.get((target, way, name))
        return median(found) if found else None


async def _round(made: Field, results: Results, patience: Patience) -> None:
    for target in made.targets:
        if target.start_ms is not None:
            results.add(target, {"start_ms": target.start_ms})
    for measure, names, ways in PLAN:
        for target in made.targets:
            if target.name in names and target.way in ways:
                figures, _ = await patience.measure(measure, target, made.pids)
                results.add(target, figures)


async def rounds(number: int, patience: Patience) -> Results:
    """Everything, as many times."""
    results = Results()
    for _ in range(number):
        with (
            tempfile.TemporaryDirectory(prefix="ocpool-bench-") as folder,
            running(Path(folder), (DIRECT, AIOHTTP, OCPOOL)) as made,
        ):
            await _round(made, results, patience)
    return results
