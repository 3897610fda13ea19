"""The one place where time is read.

Instants are milliseconds. ``wall_ms`` is unix time and may jump; ``mono_ms`` only grows and has no epoch.
A scaled clock runs faster than the world: a demo and the gateway it plays against share one.
"""

import asyncio
from collections.abc import Callable
from time import monotonic, time, time_ns


class Clock:
    """Time as the product sees it; ``scale`` simulated milliseconds pass in each real one.

    Attributes:
        mono_ms: milliseconds on a clock that only grows.
        wall_ms: unix time in milliseconds.
    """

    __slots__ = ("mono_ms", "scale", "wall_ms")

    mono_ms: Callable[[], float]
    wall_ms: Callable[[], int]

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale
        self.mono_ms, self.wall_ms = (_mono_ms, _wall_ms) if scale == 1.0 else _scaled(scale)

    def seconds(self, ms: float) -> float:
        """How many real seconds a timer of ``ms`` takes; what ``loop.call_later`` wants."""
        return ms / 1000.0 / self.scale

    async def sleep(self, ms: float) -> None:
        """Sleep ``ms`` milliseconds of this clock."""
        await asyncio.sleep(self.seconds(ms))


def _mono_ms() -> float:
    return monotonic() * 1000.0


def _wall_ms() -> int:
    return time_ns() // 1_000_000


def _scaled(scale: float) -> tuple[Callable[[], float], Callable[[], int]]:
    """Both from here and now on, at another speed."""
    mono0, wall0 = monotonic(), time()

    def mono_ms() -> float:
        return (mono0 + (monotonic() - mono0) * scale) * 1000.0

    def wall_ms() -> int:
        return int((wall0 + (monotonic() - mono0) * scale) * 1000)

    return mono_ms, wall_ms
