"""One HTTP/1.1 connection to the upstream, one exchange at a time.

An exchange goes idle → head → gather → pour → idle, and only forward. Until ``pour`` the connection gathers what comes,
at most 64 KiB of body, then stops reading: nobody has decided yet whether the client shall see it. From ``pour`` on
each ``data_received`` hands the bytes straight to the receiver, framing unchanged, without waking any task. What an
event of a stream nearly always is, one small chunk in a piece of its own, is recognised by its size and its size line,
and written on before anything else is done.
"""

import asyncio
from collections.abc import Callable, Sequence

from proxy.errors import BadResponse, ClosedEarly, ProxyError
from proxy.wire.framing import SIZE_LINES, SMALL, FramingError, Sink
from proxy.wire.head import MAX_HEAD_BYTES, Noting, ResponseHead, parse_response
from proxy.wire.outgoing import JOIN_BYTES
from proxy.wire.passing import Passing
from proxy.wire.receiver import Asker, End, Receiver, Through

GATHER_BYTES = 65_536
_COMPLETE = End.COMPLETE


class Connection(Passing):
    """The protocol behind one upstream transport."""

    __slots__ = (
        "_asker", "_awaiting_head", "_broken", "_buffer", "_gathered", "_gathered_bytes", "_head", "_head_waiter",
        "_method", "_noted", "_on_idle_lost", "_unchunked", "idle_since", "uses",
    )  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_idle_lost: Callable[["Connection"], None],
        noted: Noting | None = None,
    ) -> None:
        super().__init__(loop)
        self._noted = Noting() if noted is None else noted  # fields of an answer, see there
        self._on_idle_lost = on_idle_lost
        self.idle_since = 0.0
        self.uses = 0
        self._method = b""
        self._asker: Asker | None = None
        self._awaiting_head = False
        self._buffer = b""
        self._head: ResponseHead | None = None
        self._head_waiter: asyncio.Future[None] | None = None
        self._gathered: list[bytes] = []  # the body as it came
        self._unchunked: list[bytes] = []  # the same without its chunks' framing, where it has any
        self._gathered_bytes = 0
        self._broken: ProxyError | None = None

    def eof_received(self) -> bool:
        """The upstream closed its side; what that means depends on the framing."""
        self._connection_ends(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport is gone, cleanly or not."""
        super().connection_lost(exc)
        self._connection_ends(exc)

    def _connection_ends(self, exc: Exception | None) -> None:
        if self._awaiting_head and self._head is None:
            self.fail(ClosedEarly("The upstream closed the connection without an answer.", written=True))
        elif self._head is not None and self._end is None:
            clean = exc is None and not self._head.delimited
            self._finish(End.COMPLETE if clean else End.TRUNCATED)
        elif not self._awaiting_head:
            self._on_idle_lost(self)

    def send(
        self,
        method: bytes,
        head: bytes,
        body: Sequence[bytes] = (),
        *,
        upload: bool = False,
        asker: Asker | None = None,
    ) -> None:
        """Start an exchange: write the head and what there is of the body.

        ``upload`` announces that more of the body follows through ``upload``. ``asker`` is told of the answer's head,
        or why there is none; without one, ``head`` is awaited.
        """
        self._method = method
        self._asker = asker
        self._awaiting_head = True
        self._upload_open = upload
        self.uses += 1
        transport = self.transport
        if self._closed or transport is None or transport.is_closing():
            self.fail(ClosedEarly("The upstream closed the connection before the request was sent."))
        elif sum(map(len, body)) <= JOIN_BYTES:
            transport.write(b"".join((head, *body)))
        else:
            transport.write(head)
            transport.writelines(body)

    def data_received(self, data: bytes) -> None:
        """Bytes from the upstream, by phase; the pouring one first, because it is the busy one."""
        write = self._write
        if write is not None:
            size = len(data)
            if size < SMALL and data.startswith(SIZE_LINES[size]) and data[-2:] == b"\r\n":
                try:
                    write(data)
                except RuntimeError:  # its transport was closed a moment ago; whoever owns it is about to hear of it
                    self._write = None
                else:
                    passed = self._passed
                    passed.append(data)
                    if len(passed) >= self._most:
                        self.catch_up()
                    return
        receiver = self._receiver
        if receiver is not None:
            self._body_received(data, receiver)
        elif self._head is not None:
            self._gather(data)
        elif self._broken is not None:
            self._surplus = True
        elif self._awaiting_head:
            self._head_received(data)
        else:  # nothing was asked: a stray answer would be taken for the next request's
            self.abort()

    def _head_received(self, data: bytes) -> None:
        searched = 0
        if self._buffer:
            searched = max(0, len(self._buffer) - 3)
            data = self._buffer + data
            self._buffer = b""
        while True:
            if data[:1] in b"\r\n":
                data = data.lstrip(b"\r\n")
            end = data.find(b"\r\n\r\n", searched) + 4
            if not 4 <= end <= MAX_HEAD_BYTES + 4:
                self._head_goes_on(data)
                return
            try:
                head = parse_response(data[:end], self._method, self._noted)
            except BadResponse as exc:
                self.fail(exc)
                return
            rest = data[end:]
            if head.status >= 200:
                break
            data, searched = rest, 0  # an interim answer is the hop's own business (RFC 9110, section 15.2)
        self._awaiting_head = False
        self._head = head
        self._surplus = not head.keep_alive
        if len(rest) == head.length:  # all of it is here
            self._end = _COMPLETE
            if rest:
                self._received = head.length
                self._gathered.append(rest)
        else:
            self._framing = head.framing()
            if rest:
                self._gather(rest)
        asker = self._asker
        if asker is not None:
            self._asker = None
            asker.answered(head)
        else:
            self._wake_head()

    def _head_goes_on(self, data: bytes) -> None:
        self._buffer = data
        if len(data) > MAX_HEAD_BYTES:
            self.fail(BadResponse("The upstream's head is larger than 256 KiB.", written=True))
        elif b"\n\n" in data:
            self.fail(BadResponse("The upstream's head has bare line feeds.", written=True))

    def _gather(self, data: bytes) -> None:
        if self._end is not None or self._framing is None or self._head is None:
            self._surplus = True
            return
        self._received += len(data)
        try:
            end = self._framing.feed(data, self._unchunked.append if self._head.chunked else None)
        except FramingError:
            self._surplus = True
            self._gathered.append(data)
            self._finish(End.TRUNCATED)
            return
        if 0 <= end < len(data):
            self._surplus = True
            data = data[:end]
        self._gathered.append(data)
        self._gathered_bytes += len(data)
        if end >= 0:
            self._finish(_COMPLETE)
        elif self._gathered_bytes >= GATHER_BYTES:
            self.pause_reading()

    def fail(self, error: ProxyError) -> None:
        """Give up waiting for a head, for this reason."""
        if self._broken is None:
            self._broken = error
        self._surplus = True
        self._wake_head()

    def _wake_head(self) -> None:
        asker, self._asker = self._asker, None
        if asker is not None and self._broken is not None:
            asker.failed(self._broken)
        elif self._head_waiter is not None and not self._head_waiter.done():
            self._head_waiter.set_result(None)

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
                raise ClosedEarly("The upstream closed the connection without an answer.", written=True)
            self._head_waiter = self._loop.create_future()
            await self._head_waiter
        return self._head

    @property
    def entity(self) -> list[bytes]:
        """What was gathered of the body, without chunk framing."""
        return self._unchunked if self._head is not None and self._head.chunked else self._gathered

    def whole(self) -> bytes | None:
        """The body, where all of it was gathered and it has a length, so that nothing of its framing is in it."""
        if self._end is not _COMPLETE or self._head is None or self._head.length is None:
            return None
        return b"".join(self._gathered)

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

    def pour(self, receiver: Receiver, sink: Sink | None, through: Through | None = None) -> tuple[bytes, End | None]:
        """From here on every byte goes to ``receiver``. Returns what was gathered, and the end if it has come.

        What was gathered has been handed to no one: the caller writes it behind its own head, in one piece. Where
        there is a ``through``, small chunks go that way, and neither to the receiver nor to the sink.
        """
        gathered = b"".join(self._gathered)
        if sink is not None:
            for piece in self.entity:
                sink(piece)
        self._gathered = []
        self._unchunked = []
        if self._end is None:
            self._receiver = receiver
            self._sink = sink
            self._through = through
            self.resume_reading()
        return gathered, self._end

    @property
    def receiving(self) -> bool:
        """Has the pour begun?"""
        return self._receiver is not None

    @property
    def reusable(self) -> bool:
        """Did the exchange end where its framing says, with nothing left over on either side?"""
        return self._end is _COMPLETE and not (self._surplus or self._upload_open or self._closed)

    def rest(self, now_ms: float) -> None:
        """Become idle, as it was before its exchange: what comes now was asked for by nobody."""
        self._receiver = self._sink = self._through = self._write = None
        self._head = self._framing = self._end = None
        self._received = self._gathered_bytes = 0
        self._gathered = []
        self._unchunked = []
        self.idle_since = now_ms
        if self._reading_paused:
            self.resume_reading()
