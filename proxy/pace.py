"""How fast an answer was written: tokens over the time from its first to its last event with content.

Only for models whose routes are chosen by speed (``probe.profile = throughput``). It sees the entity's bytes beside the
tap, changes nothing and never raises; per event it costs a search or two and one look at the clock.
"""

from collections.abc import Callable
from typing import Final

LEAST_TOKENS: Final = 16  # of fewer a speed says nothing: they may all have come in one packet
LEAST_MS: Final = 20.0
_MAX_CARRY: Final = 65_536
_EMPTY: Final = (b"[DONE]", b'"choices":[]', b'"choices": []', b'"delta":{}', b'"delta": {}')
_TELLING: Final = (b'"content":"', b'"content": "', b'"reasoning', b'"tool_calls"', b'"text":"', b'.delta"', b"_delta")


class Pace:
    """Counts the events with content of one stream, and when the first and the last of them came."""

    __slots__ = ("_carry", "_mono_ms", "deltas", "first_ms", "last_ms")

    def __init__(self, mono_ms: Callable[[], float]) -> None:
        self._mono_ms = mono_ms
        self._carry = b""
        self.deltas = 0
        self.first_ms: float | None = None
        self.last_ms: float | None = None

    def feed(self, data: bytes) -> None:
        """A piece of the entity; events may be split anywhere."""
        *lines, rest = (self._carry + data).split(b"\n")
        self._carry = rest if len(rest) <= _MAX_CARRY else b""
        count = sum(1 for line in lines if line.startswith(b"data:") and tells(line))
        if count:
            now = self._mono_ms()
            self.deltas += count
            self.first_ms = now if self.first_ms is None else self.first_ms
            self.last_ms = now

    def beside(self, feed: Callable[[bytes], None]) -> Callable[[bytes], None]:
        """A function that hands each piece to ``feed`` and then looks at it."""

        def both(data: bytes) -> None:
            feed(data)
            self.feed(data)

        return both

    @property
    def generation_ms(self) -> float | None:
        """From the first to the last event with content; None: there were not two."""
        if self.first_ms is None or self.last_ms is None or self.deltas < 2:
            return None
        return self.last_ms - self.first_ms

    def tps(self, completion_tokens: int | None) -> tuple[float | None, bool]:
        """Tokens a second, and whether that is estimated: without usage the events are counted.

        None: there was too little to tell.
        """
        tokens = self.deltas if completion_tokens is None else completion_tokens
        took = self.generation_ms
        if took is None or took < LEAST_MS or tokens < LEAST_TOKENS:
            return None, completion_tokens is None
        return tokens * 1000.0 / took, completion_tokens is None


def tells(line: bytes) -> bool:
    """Does this event carry output? Roles, usage, pings and the end do not count."""
    if any(mark in line for mark in _EMPTY):
        return False
    if b'"content":""' in line and b'"reasoning' not in line and b'"tool_calls"' not in line:
        return False
    return any(mark in line for mark in _TELLING)
