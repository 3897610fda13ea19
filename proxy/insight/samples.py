"""Any number of values, kept within bounds: each has the same chance to stay (Vitter 1985, algorithm R)."""

from random import Random
from typing import Final

MOST: Final = 5_000


class Sample:
    """``values`` are all that were added, or ``most`` of them by chance; ``count`` says how many were added."""

    __slots__ = ("_chance", "count", "most", "values")

    def __init__(self, most: int = MOST) -> None:
        self.values: list[float] = []
        self.count = 0
        self.most = most
        self._chance: Random | None = None  # thousands of samples never need it, and it is large

    def add(self, value: float) -> None:
        self.count += 1
        if len(self.values) < self.most:
            self.values.append(value)
            return
        if self._chance is None:
            self._chance = Random(self.most)  # noqa: S311  (which values stay is no secret, and the same each time)
        place = self._chance.randrange(self.count)
        if place < self.most:
            self.values[place] = value
