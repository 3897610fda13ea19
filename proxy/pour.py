"""The pour: a body's bytes written to the client as they come, framing unchanged, without waking a task.

It ends in exactly one way, and the first to say so wins: complete or truncated (the upstream), client gone (its
connection is lost), stopped (a limit the user set, or the end of a shutdown's grace).
"""

import asyncio
import socket
import struct
from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from proxy.wire.connection import Connection
from proxy.wire.framing import Sink
from proxy.wire.receiver import End

WRITE_HIGH_WATER = 262_144
_DRAIN_STEP_S = 0.05
_DRAIN_BOUND_S = 1.0


class Ended(StrEnum):
    """How the client's body ended."""

    COMPLETE = "complete"
    TRUNCATED = "truncated"
    CLIENT_GONE = "client_gone"
    STOPPED = "stopped"


_OF_UPSTREAM = {End.COMPLETE: Ended.COMPLETE, End.TRUNCATED: Ended.TRUNCATED}


class Later(Protocol):
    """A reader of answers that need not see each piece when it comes."""

    @property
    def begun(self) -> bool:
        """Has the answer itself begun? Until then the reader wants each piece at once."""

    def feed_all(self, pieces: list[bytes]) -> None:
        """Pieces that came one after the other."""


class Pour:
    """The receiver of one body. ``bare`` writes the entity without its chunk framing, for HTTP/1.0 clients.

    ``tap`` sees each piece of the entity; where there is a ``later``, the same reader, it is shown many together.
    """

    __slots__ = ("_bare", "_connection", "_done", "_later", "_tap", "_transport", "bytes", "ended", "write")

    def __init__(
        self,
        transport: asyncio.Transport,
        connection: Connection,
        tap: Sink | None,
        done: Callable[[], None],
        *,
        bare: bool,
        later: Later | None = None,
    ) -> None:
        self._transport = transport
        self.write = transport.write
        self._later = later
        self._connection = connection
        self._tap = tap
        self._bare = bare
        self._done = done
        self.bytes = 0
        self.ended: Ended | None = None

    def start(self, head: bytes) -> None:
        """Write our head and all that was gathered in one piece, and let the rest follow by itself."""
        if not self._bare:
            goes_through = self._tap is None or self._later is not None
            gathered, end = self._connection.pour(self, self._tap, self if goes_through else None)
        else:
            pieces = self._connection.entity
            gathered, end = self._connection.pour(self, self._entity)
            gathered = b"".join(pieces)
        self.bytes += len(gathered)
        self._transport.write(head + gathered if gathered else head)
        if end is not None:
            self.stop(_OF_UPSTREAM[end])

    def _entity(self, data: bytes) -> None:
        if self._tap is not None:
            self._tap(data)
        if self._connection.receiving:
            self._write(data)

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():  # the client left a moment ago, and its task is about to hear of it
            self.bytes += len(data)
            self._transport.write(data)

    def body(self, data: bytes) -> None:
        """Bytes from the upstream, framing included."""
        if not self._bare:
            self._write(data)

    @property
    def patient(self) -> bool:
        """May what comes be shown to the tap later?"""
        return self._later is None or self._later.begun

    def passed(self, pieces: list[bytes], size: int) -> None:
        """What was written already."""
        self.bytes += size
        if self._later is not None:
            self._later.feed_all(pieces)

    def end(self, how: End) -> None:
        """The upstream's body is over."""
        self.stop(_OF_UPSTREAM[how])

    def stop(self, how: Ended) -> None:
        """Record how it ended, if nothing else was first, and say so."""
        if self.ended is None:
            self.ended = how
            self._done()

    def pause(self) -> None:
        """The client takes no more: neither do we."""
        if self.ended is None:
            self._connection.pause_reading()

    def resume(self) -> None:
        """The client has drained."""
        if self.ended is None:
            self._connection.resume_reading()


async def cut(transport: asyncio.Transport) -> None:
    """End a broken answer that has no framing so that the client cannot take it for a whole one.

    With framing it is enough to close: the missing end shows. Without it (a close-delimited body, an HTTP/1.0 client)
    an orderly close would look complete: what is unsent is drained for up to a second, then comes a reset.
    """
    waited = 0.0
    while transport.get_write_buffer_size() and waited < _DRAIN_BOUND_S and not transport.is_closing():
        await asyncio.sleep(_DRAIN_STEP_S)
        waited += _DRAIN_STEP_S
    sock = transport.get_extra_info("socket")
    if sock is not None and not transport.is_closing():
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
