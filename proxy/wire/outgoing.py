"""The sending half of an upstream connection: its transport, flow control, and whether it is still alive."""

import asyncio
import select
from collections.abc import Callable
from typing import cast

from proxy.wire.framing import LAST_CHUNK, encode_chunk

_WRITE_HIGH_WATER = 262_144
JOIN_BYTES = 65_536  # up to here head and body go out in one piece


class Outgoing(asyncio.Protocol):
    """What writes; ``Connection`` adds what reads."""

    __slots__ = (
        "_closed",
        "_loop",
        "_poll",
        "_reading_paused",
        "_upload_open",
        "_writing_paused",
        "on_drained",
        "transport",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.transport: asyncio.Transport | None = None
        self._poll: select.poll | None = None
        self._closed = False
        self._writing_paused = False
        self.on_drained: Callable[[], None] | None = None  # told when more of an upload is taken
        self._reading_paused = False
        self._upload_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the transport, and its descriptor for the liveness check."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass of it
        self.transport.set_write_buffer_limits(high=_WRITE_HIGH_WATER)
        sock = transport.get_extra_info("socket")
        if sock is not None and hasattr(select, "poll"):
            self._poll = select.poll()
            self._poll.register(sock.fileno(), select.POLLIN)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """The transport is gone, cleanly or not."""
        self._closed = True

    def alive(self) -> bool:
        """Can this idle connection take a request? A readable one has been closed, or talks out of turn."""
        transport = self.transport
        if self._closed or transport is None or transport.is_closing():
            return False
        return self._poll is None or not self._poll.poll(0)

    @property
    def _open(self) -> bool:
        return not self._closed and self.transport is not None and not self.transport.is_closing()

    def upload(self, data: bytes, *, chunked: bool) -> None:
        """Write a further piece of the body."""
        if self._open and self.transport is not None:
            self.transport.write(encode_chunk(data) if chunked else data)

    def upload_done(self, *, chunked: bool) -> None:
        """The body is complete; the connection may be used again once the answer is."""
        if chunked and self._open and self.transport is not None:
            self.transport.write(LAST_CHUNK)
        self._upload_open = False

    @property
    def backed_up(self) -> bool:
        """Is the upstream slower than what is written to it?"""
        return self._writing_paused and not self._closed

    def pause_writing(self) -> None:
        """The transport's buffer is full."""
        self._writing_paused = True

    def resume_writing(self) -> None:
        """The transport's buffer has drained."""
        self._writing_paused = False
        if self.on_drained is not None:
            self.on_drained()

    def pause_reading(self) -> None:
        """Stop taking bytes from the upstream: nobody takes them from us."""
        if not self._reading_paused and self.transport is not None and not self.transport.is_closing():
            self._reading_paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Take bytes again."""
        if self._reading_paused and self.transport is not None:
            self._reading_paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()
