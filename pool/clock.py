"""The one place where time is read.

Instants are milliseconds. ``wall_ms`` is unix time and may jump; ``mono_ms`` only grows and has no epoch.
A scaled clock runs faster than the world: a demo and the gateway it plays against share one.
"""

import asyncio
import time


class Clock:
    """Time as the product sees it; ``scale`` simulated milliseconds pass in each real one."""

    __slots__ = ("_mono0", "_wall0", "scale")

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale
        self._mono0 = time.monotonic()
        self._wall0 = time.time()

    def mono_ms(self) -> float:
        """Milliseconds on a clock that only grows."""
        if self.scale == 1.0:
            return time.monotonic() * 1000.0
        return (self._mono0 + (time.monotonic() - self._mono0) * self.scale) * 1000.0

    def wall_ms(self) -> int:
        """Unix time in milliseconds."""
        if self.scale == 1.0:
            return int(time.time() * 1000)
        return int((self._wall0 + (time.monotonic() - self._mono0) * self.scale) * 1000)

    def seconds(self, ms: float) -> float:
        """How many real seconds a timer of ``ms`` takes; what ``loop.call_later`` wants."""
        return ms / 1000.0 / self.scale

    async def sleep(self, ms: float) -> None:
        """Sleep ``ms`` milliseconds of this clock."""
        await asyncio.sleep(self.seconds(ms))
