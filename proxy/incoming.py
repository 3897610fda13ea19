"""The client's request body: read whole and bounded where it may be needed twice, streamed where it is not.

It is never changed and never joined without need. All bodies held at once stay under ``listen.max_buffered_bytes``;
when that is used up, a body streams instead, its ids come from the header fields, and it cannot be replayed.
"""

import asyncio
from typing import Any

from aiohttp import web

from proxy.errors import BadRequest, BodyTooLarge, ClientGone
from proxy.wire.connection import Connection
from proxy.wire.framing import LAST_CHUNK, encode_chunk

AT_ONCE_BYTES = 1_048_576
PIECE_BYTES = 262_144
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


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
    """One request's body. ``complete``: it lies here whole; otherwise the rest is still in ``content``."""

    __slots__ = ("_buffers", "_reserved", "chunked", "chunks", "complete", "content", "length", "size")

    def __init__(self, content: Any, buffers: Buffers, *, length: int | None, chunked: bool) -> None:
        self.content = content
        self.length = length
        self.chunked = chunked
        self.chunks: list[bytes] = []
        self.size = 0
        self.complete = False
        self._buffers = buffers
        self._reserved = 0

    @property
    def arrived(self) -> bool:
        """Has the client sent all of it?"""
        return bool(self.content.is_eof())

    def _take_buffered(self) -> None:
        data = self.content.read_nowait(-1)
        if data:
            self.chunks.append(data)
            self.size += len(data)

    def read_ready(self) -> bool:
        """Take a body that came with its head, without waiting; False when more is to come."""
        content = self.content
        if not content.is_eof():
            return False
        if not content.at_eof():
            self._take_buffered()
        self.complete = True
        return True

    async def read(self, limit: int) -> None:
        """Read a routed body whole, as far as the memory for bodies allows.

        Raises:
            BodyTooLarge: it is over ``limit`` bytes.
            BadRequest: the client broke its own framing.
        """
        length = self.length
        if length is not None:
            if length > limit:
                raise _too_large(limit)
            if not self._buffers.reserve(length):
                return
            self._reserved = length
        try:
            while not self.content.at_eof():
                data = await self.content.readany()
                self.chunks.append(data)
                self.size += len(data)
                if self.size > limit:
                    raise _too_large(limit)
                if length is None and not self._grow(len(data)):
                    return
        except web.RequestPayloadError:
            raise BadRequest("The request body ended before its framing says.") from None
        except ConnectionError:
            raise ClientGone("The client left while it was sending.") from None
        self.complete = True

    def _grow(self, size: int) -> bool:
        if not self._buffers.reserve(size):
            return False
        self._reserved += size
        return True

    @property
    def at_once(self) -> bool:
        """Is it here whole, and small enough to be written in one go without holding up the event loop?"""
        return self.complete and self.size <= AT_ONCE_BYTES

    def framed(self) -> list[bytes]:
        """The whole body as it goes on the wire."""
        if not self.chunked:
            return self.chunks
        return [*(encode_chunk(data) for data in self.chunks if data), LAST_CHUNK]

    async def pump(self, connection: Connection) -> None:
        """Stream the body to the upstream, what lies here first, no faster than it is taken."""
        content = self.content
        try:
            for data in self.chunks:
                for at in range(0, len(data), PIECE_BYTES):
                    connection.upload(data[at : at + PIECE_BYTES], chunked=self.chunked)
                    await connection.drained()
                    await asyncio.sleep(0)  # encryption takes its time: let the other streams have theirs
            while not self.complete and not content.at_eof():
                data = await content.readany()
                if data:
                    self.size += len(data)
                    connection.upload(data, chunked=self.chunked)
                    if connection.backed_up:
                        await connection.drained()
            connection.upload_done(chunked=self.chunked)
        except (web.RequestPayloadError, ConnectionError):
            connection.abort()

    def drop(self) -> None:
        """Let the bytes go: nobody will need them again."""
        self.chunks = []
        if self._reserved:
            self._buffers.free(self._reserved)
            self._reserved = 0


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(
        f"The request body is larger than listen.max_body_bytes ({limit} bytes). Raise it, or send less."
    )


def send_continue(transport: asyncio.Transport | None) -> None:
    """Answer ``Expect: 100-continue`` on our own hop (RFC 9110, section 10.1.1)."""
    if transport is not None and not transport.is_closing():
        transport.write(CONTINUE)
