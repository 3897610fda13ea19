"""The client's request body: gathered whole and bounded where it may be needed twice, streamed where it is not.

It is never changed and never joined without need. All bodies held at once stay under ``listen.max_buffered_bytes``;
when that is used up, a body streams instead, its ids come from the header fields, and it cannot be replayed.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from proxy.errors import BadRequest, BodyTooLarge
from proxy.wire.connection import Connection
from proxy.wire.framing import LAST_CHUNK, Chunked, FramingError, encode_chunk

AT_ONCE_BYTES: Final = 1_048_576  # written in one go without holding up the event loop
PIECE_BYTES: Final = 262_144


class Buffers:
    """The memory that request bodies may hold together, in bytes."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0


class Incoming:
    """One request's body: of ``length`` bytes, in chunks, or none; ``first`` is what came with its head.

    ``arrived``: the client has sent all of it. ``kept``: what came of it so far lies in ``chunks``. Of what was not
    all of it, ``first`` is still to be fed.
    """

    __slots__ = ("_buffers", "_framing", "_limit", "_reserved", "arrived", "chunks", "kept", "length", "size")

    def __init__(self, buffers: Buffers, length: int | None, first: bytes = b"", *, chunked: bool) -> None:
        self._buffers = buffers
        self._framing = Chunked() if chunked else None
        self._limit = self._reserved = 0
        self.length = length
        self.kept = True
        if length == len(first):  # all of it
            self.arrived, self.chunks, self.size = True, [first], length
        else:
            self.arrived, self.chunks, self.size = not (length or chunked or first), [], 0

    @property
    def chunked(self) -> bool:
        """Is it sent on in chunks?"""
        return self._framing is not None

    @property
    def complete(self) -> bool:
        """Is the whole body here?"""
        return self.arrived and self.kept

    def gather(self, limit: int) -> None:
        """Keep what comes, up to ``limit`` bytes and as far as the memory for bodies allows.

        Raises:
            BodyTooLarge: it says that it is over ``limit`` bytes.
        """
        length, buffers = self.length, self._buffers
        if length is None:
            self._limit = limit
        elif length > limit:
            raise _too_large(limit)
        elif (used := buffers.used + length) <= buffers.limit:
            buffers.used, self._reserved = used, length
        else:
            self.kept = False

    def feed(self, data: bytes) -> bytes:
        """Take what the client sent; returns the bytes that are not this body's any more.

        Raises:
            BadRequest: the client broke its own framing.
            BodyTooLarge: more came than may be gathered.
        """
        if self._framing is not None:
            return self._feed_chunks(data)
        missing = (self.length or 0) - self.size
        rest = b""
        if len(data) >= missing:
            self.arrived = True
            data, rest = data[:missing], data[missing:]
        self.chunks.append(data)
        self.size += len(data)
        return rest

    def _feed_chunks(self, data: bytes) -> bytes:
        assert self._framing is not None
        try:
            end = self._framing.feed(data, self._take)
        except FramingError:
            raise BadRequest("The request body ended before its framing says.") from None
        if end < 0:
            return b""
        self.arrived = True
        return data[end:]

    def _take(self, data: bytes) -> None:
        """One chunk's data."""
        size = len(data)
        self.size += size
        self.chunks.append(data)
        if self._limit and self.kept:
            if self.size > self._limit:
                raise _too_large(self._limit)
            if self._buffers.used + size <= self._buffers.limit:
                self._buffers.used += size
                self._reserved += size
            else:
                self.kept = False

    def at_once(self) -> list[bytes] | None:
        """The whole body as it goes on the wire; None where it is not here, or would hold up the event loop."""
        if not (self.arrived and self.kept) or self.size > AT_ONCE_BYTES:
            return None
        if self._framing is None:
            return self.chunks
        return [*(encode_chunk(data) for data in self.chunks if data), LAST_CHUNK]

    def drop(self) -> None:
        """Let the bytes go: nobody will need them again."""
        self.chunks = []
        self._buffers.used -= self._reserved
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
