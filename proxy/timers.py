"""The limits on a request's time that a user may set (``stall.*``). By default none is, and no timer exists."""

import asyncio
from collections.abc import Callable

from proxy.daemon import Daemon
from proxy.wire.connection import Connection

_LOOKS = 4  # an idle limit is noticed within a quarter of itself


class Timers:
    """Watches one exchange: how long nothing came, and how long it took altogether."""

    __slots__ = ("_connection", "_fire", "_handles", "_idle_s", "_loop", "_quiet", "_received")

    def __init__(
        self, daemon: Daemon, fire: Callable[[str], None], connection: Callable[[], Connection | None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._fire = fire
        self._connection = connection
        self._received = -1
        self._quiet = 0
        self._handles: dict[str, asyncio.TimerHandle] = {}
        clock = daemon.clock
        stall = daemon.settings.stall
        self._idle_s = clock.seconds(stall.idle_timeout_ms) / _LOOKS
        if stall.idle_timeout_ms:
            self._handles["idle"] = self._loop.call_later(self._idle_s, self._look)
        if stall.total_timeout_ms:
            seconds = clock.seconds(stall.total_timeout_ms)
            self._handles["total"] = self._loop.call_later(seconds, fire, "stall.total_timeout_ms")

    def _look(self) -> None:
        connection = self._connection()
        received = connection.received if connection is not None else 0
        if received != self._received:
            self._received = received
            self._quiet = 0
        self._quiet += 1
        if self._quiet > _LOOKS:
            self._fire("stall.idle_timeout_ms")
            return
        self._handles["idle"] = self._loop.call_later(self._idle_s, self._look)

    def stop(self) -> None:
        """The exchange is over."""
        for handle in self._handles.values():
            handle.cancel()
        self._handles.clear()
