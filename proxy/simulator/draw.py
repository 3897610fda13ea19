"""Chance without a stream: every draw is a hash of what it is about.

Asking never changes what the next one gets, so a probe cannot shift the world and two policies meet the same one.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

Choice = TypeVar("Choice")


@dataclass(frozen=True, slots=True)
class Draw:
    """Draws about one subject; each ``purpose`` gives one value, always the same."""

    subject: str

    @classmethod
    def about(cls, *subject: object) -> "Draw":
        """Draws about ``subject``; its parts are told apart by a separator that no id contains."""
        return cls("\x1f".join(map(str, subject)))

    def hex(self, purpose: str, length: int = 16) -> str:
        """``length`` hex digits, at most 64."""
        return hashlib.blake2b(f"{self.subject}\x1f{purpose}".encode(), digest_size=32).hexdigest()[:length]

    def fraction(self, purpose: str) -> float:
        """A number in [0, 1)."""
        return int(self.hex(purpose, 13), 16) / 16**13

    def between(self, purpose: str, low: float, high: float) -> float:
        """A number in [low, high), each equally likely."""
        return low + (high - low) * self.fraction(purpose)

    def scaled(self, purpose: str, low: float, high: float) -> float:
        """A number in [low, high), each order of magnitude equally likely; ``low`` > 0."""
        return low * math.exp(self.fraction(purpose) * math.log(high / low))

    def along(self, purpose: str, points: Sequence[float]) -> float:
        """A number from the distribution whose equally spaced quantiles are ``points``."""
        place = self.fraction(purpose) * (len(points) - 1)
        step = int(place)
        return points[step] + (points[step + 1] - points[step]) * (place - step)

    def pick(self, purpose: str, weighted: Sequence[tuple[Choice, float]]) -> Choice:
        """One of the choices, by weight."""
        left = self.fraction(purpose) * sum(weight for _, weight in weighted)
        for choice, weight in weighted:
            left -= weight
            if left < 0:
                return choice
        return weighted[-1][0]

    def one_of(self, purpose: str, choices: Sequence[Choice]) -> Choice:
        """One of the choices, each equally likely."""
        return choices[int(self.fraction(purpose) * len(choices))]
