"""The check for CI: does a request or an event cost more of the plain aiohttp proxy's CPU time than was committed?"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench import measures, ratios
from tests.bench.ratios import FIGURES, Finding, Ratios
from tests.bench.rounds import DISTURBED, Patience
from tests.bench.targets import AIOHTTP, OCPOOL, running

ROUNDS = 3
LIMIT_S = 50.0  # no round begins later
_COMPARED = (measures.requests, measures.events)


async def _round(*, noisy: bool) -> Ratios:
    """The ratios of one round; without ``noisy`` only those that others left undisturbed."""
    spent: dict[tuple[str, str, str], float] = {}
    patience = Patience(seconds=4.0)
    with (
        tempfile.TemporaryDirectory(prefix="ocpool-bench-") as folder,
        running(Path(folder), (AIOHTTP, OCPOOL)) as made,
    ):
        for target in made.targets:
            if target.start_cpu_ms is not None:
                spent[target.name, target.way, "start_cpu_ms"] = target.start_cpu_ms
        for measure in _COMPARED:
            for target in made.targets:
                figures, share = await patience.measure(measure, target, made.pids)
                if noisy or share <= DISTURBED:
                    spent |= {(target.name, target.way, name): value for name, value in figures.items()}
    found = {}
    for name, (figure, way) in FIGURES.items():
        ours, plain = spent.get((OCPOOL, way, figure)), spent.get((AIOHTTP, way, figure))
        if ours and plain:
            found[name] = ours / plain
    return found


async def check(*, noisy: bool = False) -> int:
    """Measure up to three rounds, the best of which counts; returns the exit code. Once all is within, it is enough."""
    committed = ratios.read()
    rounds: list[Ratios] = []
    began = time.perf_counter()
    while len(rounds) < ROUNDS and time.perf_counter() - began < LIMIT_S - _longest(began, len(rounds)):
        rounds.append(await _round(noisy=noisy))
        if ratios.settled(committed, rounds):
            break
    return concluded(ratios.judge(committed, rounds))


def concluded(findings: Sequence[Finding]) -> int:
    """Say what was found; returns the exit code."""
    for one in findings:
        print(f"bench: {one.line()}")
    return 1 if any(one.over for one in findings) else 0


def _longest(began: float, done: int) -> float:
    """How long a round takes, by those before."""
    return (time.perf_counter() - began) / done if done else 0.0


async def commit(*, noisy: bool = False) -> int:
    """Write the medians of three rounds as what later ones are compared with; returns the exit code."""
    rounds = [await _round(noisy=noisy) for _ in range(ROUNDS)]
    missing = [name for name in FIGURES if not any(name in one for one in rounds)]
    if missing:
        print(f"bench: not written, other processes were too busy: {'; '.join(missing)}")
        return 1
    for name, ratio in ratios.write(rounds).items():
        print(f"bench: {name}: {ratio:.3f} of the plain aiohttp proxy's")
    return 0
