"""Counters and histograms as plain dictionaries: what the hot path pays is one increment.

Prometheus' text is made from a snapshot when somebody asks for it (``exposition.py``), never before.

    python -m proxy.insight.metrics --write docs/metrics.md
"""

import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from proxy.insight.catalog import BY_NAME, Kind, markdown

MAX_SERIES = 500  # of one metric: a client chooses the model's name, so it must not choose our memory
OTHER = "other"

Labels = tuple[tuple[str, object], ...]


@dataclass(slots=True)
class Tally:
    """One counter's series: add to its value."""

    value: float = 0.0


@dataclass(slots=True)
class Spread:
    """One histogram's series: how many fell into each bucket (the last is beyond all bounds), and their sum."""

    counts: list[int]
    sum_ms: float = 0.0
    bounds: tuple[float, ...] = ()

    def add(self, ms: float) -> None:
        """Note a duration in milliseconds."""
        self.add_all((ms,))

    def add_all(self, durations: Collection[float]) -> None:
        """Note durations in milliseconds."""
        for place, count in Counter(map(partial(bisect_left, self.bounds), durations)).items():
            self.counts[place] += count
        self.sum_ms += sum(durations)


class Snapshot(NamedTuple):
    """A copy of all series at one instant, to be rendered elsewhere."""

    counts: dict[tuple[str, Labels], float]
    spreads: dict[tuple[str, Labels], Spread]


@dataclass(frozen=True, slots=True)
class Reading:
    """A value that somebody else keeps, read when it was asked for; for gauges and unlabelled counters."""

    name: str
    value: float
    labels: dict[str, str] = field(default_factory=dict)


class Metrics:
    """What is counted. Names and labels are those of the catalog; an unknown name is kept but never shown.

    Who counts often keeps the series and adds to it: then a count is one addition.
    """

    def __init__(self) -> None:
        self._tallies: dict[tuple[str, Labels], Tally] = {}
        self._spreads: dict[tuple[str, Labels], Spread] = {}
        self._series: dict[str, int] = {}
        self.gather: Callable[[], None] | None = None  # adds what somebody has counted and not told yet

    def count(self, name: str, amount: float = 1, /, **labels: object) -> None:
        """Add to a counter. Never raises."""
        self.tally(name, **labels).value += amount

    def observe(self, name: str, ms: float, /, **labels: object) -> None:
        """Note a duration in milliseconds. Never raises."""
        self.spread(name, **labels).add(ms)

    def tally(self, name: str, /, **labels: object) -> Tally:
        """The series of a counter with these labels."""
        key = (name, tuple(labels.items()))
        found = self._tallies.get(key)
        if found is None:
            key = self._admitted(name, labels)
            found = self._tallies.setdefault(key, Tally())
        return found

    def spread(self, name: str, /, **labels: object) -> Spread:
        """The series of a histogram with these labels."""
        key = (name, tuple(labels.items()))
        found = self._spreads.get(key)
        if found is None:
            key = self._admitted(name, labels)
            bounds = _bounds(name)
            found = self._spreads.setdefault(key, Spread([0] * (len(bounds) + 1), bounds=bounds))
        return found

    def snapshot(self) -> Snapshot:
        """A copy of what was counted so far."""
        if self.gather is not None:
            self.gather()
        spreads = {key: Spread(spread.counts.copy(), spread.sum_ms) for key, spread in self._spreads.items()}
        return Snapshot({key: tally.value for key, tally in self._tallies.items()}, spreads)

    def undeclared(self) -> set[str]:
        """Names in use that the catalog does not know, or not with these labels: a mistake in the code."""
        used = {key for series in (self._tallies, self._spreads) for key in series}
        return {name for name, labels in used if not _declared(name, labels)}

    def render(self, readings: Iterable[Reading] = ()) -> bytes:
        """Prometheus' text. Imports prometheus-client, which takes a tenth of a second the first time."""
        from proxy.insight.exposition import expose  # noqa: PLC0415 - only who scrapes pays for it

        return expose(self.snapshot(), readings)

    def _admitted(self, name: str, labels: dict[str, object]) -> tuple[str, Labels]:
        """The key of a new series; beyond ``MAX_SERIES`` the rest of a provider shares one."""
        seen = self._series.get(name, 0)
        if seen >= MAX_SERIES:
            kept = ((label, value if label == "provider" else OTHER) for label, value in labels.items())
            return (name, tuple(kept))
        self._series[name] = seen + 1
        return (name, tuple(labels.items()))


def _bounds(name: str) -> tuple[float, ...]:
    metric = BY_NAME.get(name)
    return metric.buckets_ms if metric is not None else ()


def _declared(name: str, labels: Labels) -> bool:
    metric = BY_NAME.get(name)
    return metric is not None and metric.kind is not Kind.GAUGE and {*metric.labels} == {key for key, _ in labels}


def main(arguments: list[str]) -> int:
    """Write, or without ``--write`` print, the documentation of all metrics."""
    if arguments[:1] == ["--write"] and len(arguments) == 2:
        Path(arguments[1]).write_text(markdown(), encoding="utf-8")
        return 0
    sys.stdout.write(markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
