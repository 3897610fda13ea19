"""Plays every day of every scenario with every policy and many seeds, on all cores."""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import NamedTuple

from proxy.cli.campaign.days import EPOCH_MS, POLICIES, Day
from proxy.cli.campaign.figures import Figures, figures
from proxy.simulator.played import Play
from proxy.simulator.world import World


class Job(NamedTuple):
    """One play."""

    day: Day
    policy: str
    seed: int


@dataclass(slots=True)
class Results:
    """Figures by day and policy, in the order of the seeds."""

    seeds: Sequence[int]
    plays: dict[tuple[Day, str], list[Figures]] = field(default_factory=dict)

    def of(self, scenario: str, arrivals: str, policy: str) -> list[Figures]:
        """The plays of one policy; none where that was not played."""
        for (day, name), found in self.plays.items():
            if (day.scenario, day.arrivals, name) == (scenario, arrivals, policy):
                return found
        return []


def play(job: Job) -> Figures:
    """One play, from the beginning to the figures."""
    world = World.of(job.day.scenario, job.seed, epoch_ms=EPOCH_MS)
    played = Play(world, POLICIES[job.policy](job.seed))
    played.run(job.day.trace(job.seed))
    return figures(job.day, job.seed, played)


def campaign(
    days: Iterable[Day],
    seeds: Sequence[int],
    *,
    policies: Sequence[str] = tuple(POLICIES),
    workers: int | None = None,
    moved: Callable[[int, int], None] = lambda _done, _of: None,
) -> Results:
    """Play everything; ``moved`` is told how many of how many plays are done. One worker: in this process."""
    jobs = [Job(day, policy, seed) for day in days for policy in policies for seed in seeds]
    found: dict[Job, Figures] = {}
    if workers == 1:
        for job in jobs:
            found[job] = play(job)
            moved(len(found), len(jobs))
    else:
        with ProcessPoolExecutor(workers or os.cpu_count()) as pool:
            waiting = {pool.submit(play, job): job for job in jobs}
            for done in as_completed(waiting):
                found[waiting[done]] = done.result()
                moved(len(found), len(jobs))
    results = Results(seeds)
    for job in jobs:
        results.plays.setdefault((job.day, job.policy), []).append(found[job])
    return results
