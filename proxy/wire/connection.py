"""One HTTP/1.1 connection to the upstream, one exchange at a time.

An exchange goes idle → head → gather → pour → idle, and only forward. Until ``pour`` the connection gathers what comes,
at most 64 KiB of body, then stops reading: nobody has decided yet whether the client shall see it. From ``pour`` on
each ``data_received`` hands the bytes straight to the receiver, framing unchanged, without waking any task.
"""

import asyncio
import select
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol, cast

from proxy.errors import BadResponse, ClosedEarly, ProxyError
from proxy.wire.framing import LAST_CHUNK, Framing, FramingError, Sink, encode_chunk
from proxy.wire.head import MAX_HEAD_BYTES, ResponseHead, parse_response

GATHER_BYTES = 65_536
_JOIN_BYTES = 65_536


class End(Enum):
    """How a body ended, as far as this connection can tell."""

    COMPLETE = "complete"
    TRUNCATED = "truncated"


class Receiver(Protocol):
    """Who gets a body. Called from the event loop's callbacks: it must neither raise nor block."""

    def body(self, data: bytes) -> None:
        """Bytes of the body, framing included."""

    def end(self, how: End) -> None:
        """Nothing more will come."""


class Connection(asyncio.Protocol):
    """The protocol behind one upstream transport."""

    __slots__ = (
        "_awaiting_head",
        "_broken",
        "_buffer",
        "_closed",
        "_drained",
        "_end",
        "_ended",
        "_framing",
        "_gathered",
        "_gathered_bytes",
        "_head",
        "_head_waiter",
        "_loop",
        "_method",
        "_on_idle_lost",
        "_poll",
        "_reading_paused",
        "_receiver",
        "_sink",
        "_surplus",
        "_upload_open",
        "_writing_paused",
        "entity",
        "idle_since",
        "received",
        "transport",
        "uses",
        "written",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, on_idle_lost: Callable[["Connection"], None]) -> None:
        self._loop = loop
        self._on_idle_lost = on_idle_lost
        self.transport: asyncio.Transport | None = None
        self._poll: select.poll | None = None
        self._closed = False
        self._writing_paused = False
        self._drained: asyncio.Future[None] | None = None
        self._reading_paused = False
        self.idle_since = 0.0
        self.uses = 0
        self._reset(b"")

    def _reset(self, method: bytes) -> None:
        self._method = method
        self._awaiting_head = False
        self._buffer = b""
        self._head: ResponseHead | None = None
        self._head_waiter: asyncio.Future[None] | None = None
        self._framing: Framing | None = None
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self.entity: list[bytes] = []
        self._receiver: Receiver | None = None
        self._sink: Sink | None = None
        self._surplus = False
        self._ended: asyncio.Future[None] | None = None
        self._end: End | None = None
        self._broken: ProxyError | None = None
        self._upload_open = False
        self.written = False
        self.received = 0

    # -- life ---------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the transport, and its descriptor for the liveness check."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass of it
        self.transport.set_write_buffer_limits(high=262_144)
        sock = transport.get_extra_info("socket")
        if sock is not None and hasattr(select, "poll"):
            self._poll = select.poll()
            self._poll.register(sock.fileno(), select.POLLIN)

    def alive(self) -> bool:
        """Can this idle connection take a request? A readable one has been closed, or talks out of turn."""
        if self._closed or self.transport is None or self.transport.is_closing():
            return False
        return self._poll is None or not self._poll.poll(0)

    @property
    def closed(self) -> bool:
        """The transport is gone."""
        return self._closed

    def eof_received(self) -> bool:
        """The upstream closed its side; what that means depends on the framing."""
        self._connection_ends(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport is gone, cleanly or not."""
        self._closed = True
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._connection_ends(exc)

    def _connection_ends(self, exc: Exception | None) -> None:
        if self._awaiting_head and self._head is None:
            self.fail(ClosedEarly("The upstream closed the connection without an answer.", written=True))
        elif self._head is not None and self._end is None:
            clean = exc is None and self._framing is not None and not self._framing.delimited
            self._finish(End.COMPLETE if clean else End.TRUNCATED)
        elif not self._awaiting_head:
            self._on_idle_lost(self)

    def abort(self) -> None:
        """Drop the connection at once: the upstream must learn that nobody listens any more."""
        self._receiver = None
        if self.transport is not None:
            self.transport.abort()

    def close(self) -> None:
        """Close an idle connection."""
        if self.transport is not None:
            self.transport.close()

    # -- sending ------------------------------------------------------------------------------------------------

    def send(self, method: bytes, head: bytes, body: Sequence[bytes] = (), *, upload: bool = False) -> None:
        """Start an exchange: write the head and what there is of the body.

        ``upload`` announces that more of the body follows through ``upload_chunk``.
        """
        assert self.transport is not None
        self._reset(method)
        self._awaiting_head = True
        self._upload_open = upload
        self.uses += 1
        if self.transport.is_closing():
            self.fail(ClosedEarly("The upstream closed the connection before the request was sent."))
            return
        self.written = True
        total = sum(map(len, body))
        if total <= _JOIN_BYTES:
            self.transport.write(b"".join((head, *body)) if total else head)
        else:
            self.transport.write(head)
            self.transport.writelines(body)

    def upload(self, data: bytes, *, chunked: bool) -> None:
        """Write a further piece of the body."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(encode_chunk(data) if chunked else data)

    def upload_done(self, *, chunked: bool) -> None:
        """The body is complete; the connection may be used again once the answer is."""
        if chunked and self.transport is not None and not self.transport.is_closing():
            self.transport.write(LAST_CHUNK)
        self._upload_open = False

    @property
    def backed_up(self) -> bool:
        """Is the upstream slower than what is written to it?"""
        return self._writing_paused and not self._closed

    async def drained(self) -> None:
        """Wait until the upstream has taken enough of what was written."""
        if self.backed_up:
            if self._drained is None or self._drained.done():
                self._drained = self._loop.create_future()
            await asyncio.shield(self._drained)

    def pause_writing(self) -> None:
        """Asyncio's flow control."""
        self._writing_paused = True

    def resume_writing(self) -> None:
        """Asyncio's flow control."""
        self._writing_paused = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    # -- receiving ----------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Bytes from the upstream, by phase; the pouring one first, because it is the busy one."""
        receiver = self._receiver
        if receiver is not None:
            self._body_received(data, receiver)
        elif self._head is not None:
            self._gather(data)
        elif self._awaiting_head:
            self._head_received(data)
        else:
            # Nothing was asked: a stray answer would be taken for the next request's.
            self.abort()

    def _body_received(self, data: bytes, receiver: Receiver) -> None:
        framing = self._framing
        if framing is None or self._end is not None:
            self._surplus = True
            return
        self.received += len(data)
        try:
            end = framing.feed(data, self._sink)
        except FramingError:
            self._surplus = True
            self._finish(End.TRUNCATED)
            return
        if end < 0:
            receiver.body(data)
            return
        if end < len(data):
            self._surplus = True
            data = data[:end]
        receiver.body(data)
        self._finish(End.COMPLETE)

    def _head_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        while True:
            end = buffer.find(b"\r\n\r\n", max(0, len(self._buffer) - 3))
            self._buffer = b""
            if end < 0:
                self._buffer = buffer
                if len(buffer) > MAX_HEAD_BYTES:
                    self.fail(BadResponse("The upstream's head is larger than 256 KiB.", written=True))
                elif b"\n\n" in buffer:
                    self.fail(BadResponse("The upstream's head has bare line feeds.", written=True))
                return
            try:
                head = parse_response(buffer[: end + 4], self._method)
            except BadResponse as exc:
                self.fail(exc)
                return
            buffer = buffer[end + 4 :]
            if head.status >= 200:
                break
            if not buffer:  # an interim answer is the hop's own business (RFC 9110, section 15.2)
                return
        self._awaiting_head = False
        self._head = head
        self._framing = head.framing
        if head.framing.done:
            self._surplus = bool(buffer)
            self._end = End.COMPLETE
        elif buffer:
            self._gather(buffer)
        self._wake_head()

    def _gather(self, data: bytes) -> None:
        if self._end is not None or self._framing is None:
            self._surplus = True
            return
        self.received += len(data)
        try:
            end = self._framing.feed(data, self.entity.append)
        except FramingError:
            self._surplus = True
            self._finish(End.TRUNCATED)
            return
        if 0 <= end < len(data):
            self._surplus = True
            data = data[:end]
        self._gathered.append(data)
        self._gathered_bytes += len(data)
        if end >= 0:
            self._finish(End.COMPLETE)
        elif self._gathered_bytes >= GATHER_BYTES:
            self.pause_reading()

    def _finish(self, how: End) -> None:
        if self._end is not None:
            return
        self._end = how
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)
        if self._receiver is not None:
            self._receiver.end(how)

    def fail(self, error: ProxyError) -> None:
        """Give up waiting for a head, for this reason."""
        if self._broken is None:
            self._broken = error
        self._surplus = True
        self._wake_head()

    def _wake_head(self) -> None:
        if self._head_waiter is not None and not self._head_waiter.done():
            self._head_waiter.set_result(None)

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

    # -- the exchange, as its task sees it ----------------------------------------------------------------------

    async def head(self) -> ResponseHead:
        """Wait for the answer's head, without any deadline of our own.

        Raises:
            ClosedEarly: the connection ended first.
            BadResponse: what came is not HTTP/1.1 that can be relayed.
        """
        while self._head is None:
            if self._broken is not None:
                raise self._broken
            if self._closed:
                raise ClosedEarly("The upstream closed the connection without an answer.", written=self.written)
            self._head_waiter = self._loop.create_future()
            await self._head_waiter
        return self._head

    @property
    def ended(self) -> End | None:
        """How the body ended, if it has."""
        return self._end

    async def gathered(self, bound_s: float) -> bytes:
        """The entity as far as it came: all of it, 64 KiB of it, or what ``bound_s`` real seconds brought."""
        if self._end is None and self._gathered_bytes < GATHER_BYTES:
            self._ended = self._loop.create_future()
            await asyncio.wait((self._ended,), timeout=bound_s)
            self._ended = None
        return b"".join(self.entity)

    async def read_all(self, limit: int) -> bytes:
        """The whole entity of a small answer. Cut short at ``limit`` bytes, after which it cannot be reused."""
        while self._end is None and sum(map(len, self.entity)) < limit:
            self.resume_reading()
            self._gathered_bytes = 0
            self._ended = self._loop.create_future()
            await asyncio.wait((self._ended,), timeout=0.05)
        return b"".join(self.entity)[:limit]

    def pour(self, receiver: Receiver, sink: Sink | None) -> tuple[bytes, End | None]:
        """From here on every byte goes to ``receiver``. Returns what was gathered, and the end if it has come.

        What was gathered has been handed to no one: the caller writes it behind its own head, in one piece.
        """
        gathered = b"".join(self._gathered)
        self._gathered = []
        if sink is not None:
            for piece in self.entity:
                sink(piece)
        self.entity = []
        if self._end is None:
            self._receiver = receiver
            self._sink = sink
            self.resume_reading()
        return gathered, self._end

    @property
    def receiving(self) -> bool:
        """Has the pour begun?"""
        return self._receiver is not None

    @property
    def reusable(self) -> bool:
        """Did the exchange end where its framing says, with nothing left over on either side?"""
        return (
            self._end is End.COMPLETE
            and not self._surplus
            and not self._upload_open
            and not self._closed
            and self._head is not None
            and self._head.keep_alive
        )

    def rest(self, now_ms: float) -> None:
        """Become idle."""
        self._reset(b"")
        self.idle_since = now_ms
        self.resume_reading()
