"""The figures of a run: a line for every row in both lanes, and what they come to."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import fmean

from tests.traces import corpus, habits, scenarios
from tests.traces.direct import Lane, Played, Resolver, replay
from tests.traces.play import Clock, Timed
from tests.traces.score import Judged, Score, misses, score

ROWS: dict[str, Callable[[int, Clock], list[Timed]]] = {
    **{name: lambda seed, clock, name=name: corpus.of_client(name, seed, clock) for name in corpus.CLIENTS},
    **scenarios.case.rows,
    **habits.case.rows,
}
TOGETHER = "all of them in one daemon"


@dataclass(frozen=True)
class Line:
    """A row's result. ``present`` has the requests that carry ids, ``loose`` those of the same conversations that do not."""

    name: str
    removed: Score
    present: Score
    loose: Score
    crossed: int

    @property
    def client(self) -> bool:
        return self.name in corpus.CLIENTS

    @property
    def case(self) -> bool:
        return self.name in ROWS and not self.client


def run(name: str, make: Callable[[], Resolver], seed: int = 1) -> Line:
    """Play a row before two resolvers at once, one that is shown the ids and one that is not."""
    lanes = played(name, make, seed)
    return line(name, *lanes)


def played(name: str, make: Callable[[], Resolver], seed: int = 1) -> tuple[list[Played], list[Played]]:
    """A row's requests, with ids removed and with ids present; for ``TOGETHER``, every row's, before one resolver."""
    clock = Clock(corpus.BEGIN)
    rows = ROWS.values() if name == TOGETHER else [ROWS[name]]
    scripts = [timed for row in rows for timed in row(seed, clock)]
    removed, present = Lane(make(), False), Lane(make(), True)
    replay(scripts, clock, removed, present)
    return removed.played, present.played


def line(name: str, removed: list[Played], present: list[Played]) -> Line:
    """Judge what was played."""
    shown = [one for one in present if not one.request.open]
    return Line(
        name,
        score(judged(removed, False)),
        score(judged([one for one in shown if not one.request.loose], True)),
        score(judged(shown, True)),
        _crossed(removed) + _crossed(present),
    )


def judged(played: Iterable[Played], with_ids: bool) -> list[Judged]:
    return [one.judged(with_ids) for one in played]


def told(name: str, played: list[Played], with_ids: bool, limit: int = 12) -> list[str]:
    """The first misses of a row, for whoever looks into them."""
    shown = [one for one in played if not (with_ids and one.request.open)]
    return [
        f"{name}: {what} {one.right} [{one.note}] | {other.right} [{other.note}]"
        for what, one, other in misses(judged(shown, with_ids))[:limit]
    ]


def _crossed(played: Iterable[Played]) -> int:
    """How many labels were given under more than one credential."""
    keys: dict[str, set[str]] = {}
    for one in played:
        keys.setdefault(one.label, set()).add(one.request.key)
    return sum(len(found) > 1 for found in keys.values())


@dataclass(frozen=True)
class Sum:
    """Means over rows, and the worst row of each."""

    precision: float
    recall: float
    worst_precision: tuple[float, str]
    worst_recall: tuple[float, str]


def total(lines: Iterable[Line], lane: str = "removed") -> Sum:
    """Macro average: every row counts the same."""
    scores = [(getattr(one, lane), one.name) for one in lines]
    return Sum(
        fmean(found.precision for found, _ in scores),
        fmean(found.recall for found, _ in scores),
        min((found.precision, name) for found, name in scores),
        min((found.recall, name) for found, name in scores),
    )
