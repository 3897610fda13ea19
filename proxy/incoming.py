"""The client's request body: gathered whole and bounded where it may be needed twice, streamed where it is not.

It is never changed and never joined without need. All bodies held at once stay under ``listen.max_buffered_bytes``;
when that is used up, a body streams instead, its ids come from the header fields, and it cannot be replayed.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from proxy.errors import BadRequest, BodyTooLarge
from proxy.wire.connection import Connection
from proxy.wire.framing import LAST_CHUNK, Chunked, Empty, Framing, FramingError, Sized, encode_chunk

AT_ONCE_BYTES: Final = 1_048_576  # written in one go without holding up the event loop
PIECE_BYTES: Final = 262_144


class Buffers:
    """The memory that request bodies may hold together, in bytes."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    def reserve(self, size: int) -> bool:
        """Take ``size`` bytes, or say that they are not to be had."""
        if self.used + size > self.limit:
            return False
        self.used += size
        return True

    def free(self, size: int) -> None:
        """Give bytes back."""
        self.used -= size


class Incoming:
    """One request's body.

    ``arrived``: the client has sent all of it. ``kept``: what came of it so far lies in ``chunks``.
    """

    __slots__ = ("_buffers", "_framing", "_limit", "_reserved", "arrived", "chunked", "chunks", "kept", "size")

    def __init__(self, buffers: Buffers, length: int | None, *, chunked: bool) -> None:
        self._buffers = buffers
        self._framing: Framing = Chunked() if chunked else Sized(length) if length else Empty()
        self._limit = 0
        self._reserved = 0
        self.chunked = chunked
        self.chunks: list[bytes] = []
        self.size = 0
        self.arrived = self._framing.done
        self.kept = True

    @property
    def complete(self) -> bool:
        """Is the whole body here?"""
        return self.arrived and self.kept

    @property
    def at_once(self) -> bool:
        """Is it here whole, and small enough to be written in one go without holding up the event loop?"""
        return self.complete and self.size <= AT_ONCE_BYTES

    def gather(self, limit: int, length: int | None) -> None:
        """Keep what comes, up to ``limit`` bytes and as far as the memory for bodies allows.

        Raises:
            BodyTooLarge: it says that it is over ``limit`` bytes.
        """
        if length is None:
            self._limit = limit
        elif length > limit:
            raise _too_large(limit)
        elif self._buffers.reserve(length):
            self._reserved = length
        else:
            self.kept = False

    def feed(self, data: bytes) -> bytes:
        """Take what the client sent; returns the bytes that are not this body's any more.

        Raises:
            BadRequest: the client broke its own framing.
            BodyTooLarge: more came than may be gathered.
        """
        try:
            end = self._framing.feed(data, self._take)
        except FramingError:
            raise BadRequest("The request body ended before its framing says.") from None
        if end < 0:
            return b""
        self.arrived = True
        return data[end:] if end < len(data) else b""

    def _take(self, data: bytes) -> None:
        size = len(data)
        self.size += size
        self.chunks.append(data)
        if self._limit and self.kept:
            if self.size > self._limit:
                raise _too_large(self._limit)
            if self._buffers.reserve(size):
                self._reserved += size
            else:
                self.kept = False

    def framed(self) -> list[bytes]:
        """The whole body as it goes on the wire."""
        if not self.chunked:
            return self.chunks
        return [*(encode_chunk(data) for data in self.chunks if data), LAST_CHUNK]

    def drop(self) -> None:
        """Let the bytes go: nobody will need them again."""
        self.chunks = []
        if self._reserved:
            self._buffers.free(self._reserved)
            self._reserved = 0


class Upload:
    """A body on its way up beside the wait for the answer, no faster than the upstream takes it.

    ``flow`` is told whether more of it is wanted from the client now.
    """

    __slots__ = ("_connection", "_flow", "_incoming", "_pending", "done")

    def __init__(self, incoming: Incoming, connection: Connection, flow: Callable[[bool], None]) -> None:
        self._incoming = incoming
        self._connection = connection
        self._flow = flow
        self._pending = deque(incoming.chunks)
        self.done = False
        if not incoming.arrived:
            incoming.kept = False
        if not incoming.kept:
            incoming.chunks = []
        connection.on_drained = self.push

    def fed(self) -> None:
        """More of the body has come."""
        self._pending.extend(self._incoming.chunks)
        self._incoming.chunks = []
        self.push()

    def push(self) -> None:
        """Write what the upstream takes now; it asks again when it has drained."""
        connection, pending, chunked = self._connection, self._pending, self._incoming.chunked
        if self.done:
            return
        while pending and not connection.backed_up:
            data = pending.popleft()
            if len(data) > PIECE_BYTES:
                pending.appendleft(data[PIECE_BYTES:])
                data = data[:PIECE_BYTES]
            connection.upload(data, chunked=chunked)
        if not pending and self._incoming.arrived:
            self.stop()
            connection.upload_done(chunked=chunked)
        self._flow(not pending)

    def stop(self) -> None:
        """No more of it goes this way."""
        self.done = True
        self._pending.clear()
        self._connection.on_drained = None


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(
        f"The request body is larger than listen.max_body_bytes ({limit} bytes). Raise it, or send less."
    )
