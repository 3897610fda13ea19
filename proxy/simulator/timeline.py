"""Virtual time: routines that say how long they wait, run in the order of their instants. No waiting, no threads."""

import heapq
from collections.abc import Generator, Iterable

Routine = Generator[float, None, None]  # yields how many ms it waits


class Timeline:
    """``now`` is the instant of the routine that runs, in ms."""

    __slots__ = ("_count", "_due", "now")

    def __init__(self, now: float = 0.0) -> None:
        self.now = now
        self._due: list[tuple[float, int, Routine, bool]] = []
        self._count = 0

    def run(self, routines: Iterable[tuple[float, Routine]], beside: Iterable[Routine] = ()) -> None:
        """Run each from its instant until all have ended; those ``beside`` are then left where they are."""
        left = 0
        for at, routine in routines:
            left += 1
            self._wake(at, routine, counts=True)
        for routine in beside:
            self._wake(self.now, routine, counts=False)
        while left:
            self.now, _, routine, counts = heapq.heappop(self._due)
            try:
                wait_ms = next(routine)
            except StopIteration:
                left -= counts
            else:
                self._wake(self.now + wait_ms, routine, counts=counts)

    def _wake(self, at: float, routine: Routine, *, counts: bool) -> None:
        self._count += 1  # of two at one instant, the one that waited first goes first
        heapq.heappush(self._due, (at, self._count, routine, counts))
