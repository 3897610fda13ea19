"""How sure a figure is: bootstrap confidence intervals (Efron 1979, percentile form), the same for the same values."""

from collections.abc import Callable, Sequence
from math import sqrt
from random import Random
from typing import Final, NamedTuple

RESAMPLES: Final = 1_000
LEVEL: Final = 0.95
Z: Final = 1.96  # of a normal distribution, at that level
_LEAST: Final = 5  # of fewer values nothing can be said


class Interval(NamedTuple):
    """An estimate and the bounds that it is within with a probability of ``LEVEL``; None: too few values for any."""

    estimate: float
    low: float | None
    high: float | None

    def holds(self, value: float) -> bool:
        """May the truth be this value? An interval without bounds rules nothing out."""
        return self.low is None or self.high is None or self.low <= value <= self.high


def median(values: Sequence[float]) -> float:
    """The middle of the values, of which there must be some; between the two in the middle."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def interval(values: Sequence[float], of: Callable[[Sequence[float]], float] = median) -> Interval | None:
    """``of`` the values with its interval; None for no values."""
    if not values:
        return None
    estimate = of(values)
    if len(values) < _LEAST:
        return Interval(estimate, None, None)
    chance = Random(len(values))  # noqa: S311  (resampling, no secret)
    found = sorted(of(chance.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return Interval(estimate, *_bounds(found))


def ratio(ones: Sequence[float], others: Sequence[float]) -> Interval | None:
    """The median of ``ones`` over that of ``others``, two samples that are not paired; None where it has no value."""
    if not ones or not others or median(others) <= 0.0:
        return None
    estimate = median(ones) / median(others)
    if min(len(ones), len(others)) < _LEAST:
        return Interval(estimate, None, None)
    chance = Random(len(ones) + len(others))  # noqa: S311
    found = []
    for _ in range(RESAMPLES):
        below = median(chance.choices(others, k=len(others)))
        if below > 0.0:
            found.append(median(chance.choices(ones, k=len(ones))) / below)
    return Interval(estimate, *_bounds(sorted(found)))


def fewer(some: int, of: int, others: int, of_others: int) -> Interval | None:
    """By how much the share ``others`` of ``of_others`` is below ``some`` of ``of``; None for a share of nothing.

    Bounds after Newcombe 1998, method 10, from Wilson's of each share.
    """
    if not of or not of_others:
        return None
    one, other = some / of, others / of_others
    low, high = _wilson(some, of)
    low_other, high_other = _wilson(others, of_others)
    below = sqrt((one - low) ** 2 + (high_other - other) ** 2)
    above = sqrt((high - one) ** 2 + (other - low_other) ** 2)
    return Interval(one - other, one - other - below, one - other + above)


def _wilson(some: int, of: int) -> tuple[float, float]:
    share, square = some / of, Z * Z
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = Z / (1 + square / of) * sqrt(share * (1 - share) / of + square / (4 * of * of))
    return max(0.0, middle - half), min(1.0, middle + half)


def _bounds(found: Sequence[float]) -> tuple[float, float]:
    edge = int(len(found) * (1 - LEVEL) / 2)
    return found[edge], found[-1 - edge]
