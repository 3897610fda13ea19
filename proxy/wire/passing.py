"""The receiving half of an upstream connection while a body is poured: who gets it, and where it ends.

Small chunks that went through (see ``Connection.data_received``) are kept here until they are told of, many together.
"""

import asyncio
from collections.abc import Callable
from itertools import cycle

from proxy.wire.framing import DATA_AT, Framing, FramingError, Sink
from proxy.wire.outgoing import Outgoing
from proxy.wire.receiver import End, Receiver, Through

# Chunks that went through before they are told of. Streams that began together would all be told of in the same
# moment: each connection has another number.
_MOST = cycle(range(32, 64, 5))


class Passing(Outgoing):
    """What passes a body on; ``Connection`` adds what comes before it."""

    __slots__ = (
        "_end", "_ended", "_framing", "_most", "_passed", "_received", "_receiver", "_sink", "_surplus", "_through",
        "_write",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._most = next(_MOST)
        self._passed: list[bytes] = []  # small chunks that were written on already
        self._framing: Framing | None = None
        self._received = 0
        self._receiver: Receiver | None = None
        self._sink: Sink | None = None
        self._through: Through | None = None
        self._write: Callable[[bytes], None] | None = None  # where a small chunk goes if one comes now
        self._ended: asyncio.Future[None] | None = None
        self._end: End | None = None
        self._surplus = False  # it can take no other request: bytes are left over, or its peer keeps it no longer

    def abort(self) -> None:
        """Drop the connection at once: the upstream must learn that nobody listens any more."""
        self.catch_up()
        self._receiver = self._through = self._write = None
        if self.transport is not None:
            self.transport.abort()

    def _body_received(self, data: bytes, receiver: Receiver) -> None:
        framing = self._framing
        if framing is None or self._end is not None:
            self._surplus = True
            return
        self.catch_up()
        self._write = None
        self._received += len(data)
        try:
            end = framing.feed(data, self._sink)
        except FramingError:
            self._surplus = True
            receiver.body(data)  # as it came: the client's parser will see what ours saw
            self._finish(End.TRUNCATED)
            return
        if end < 0:
            receiver.body(data)
            through = self._through
            if through is not None and framing.between and through.patient:
                self._write = through.write
            return
        if end < len(data):
            self._surplus = True
            data = data[:end]
        receiver.body(data)
        self._finish(End.COMPLETE)

    def catch_up(self) -> None:
        """Tell of the small chunks that went through."""
        if self._passed:
            passed, self._passed = self._passed, []
            size = sum(map(len, passed))
            self._received += size
            if self._through is not None:
                self._through.passed([piece[DATA_AT[len(piece)] : -2] for piece in passed], size)

    @property
    def received(self) -> int:
        """Bytes of the body so far, framing included."""
        return self._received + sum(map(len, self._passed))

    def _finish(self, how: End) -> None:
        if self._end is not None:
            return
        self.catch_up()
        self._write = None
        self._end = how
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)
        if self._receiver is not None:
            self._receiver.end(how)
