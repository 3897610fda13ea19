"""The client's side of the relay: aiohttp's server protocol, with what a raw relay needs of it.

Flow control reaches the pour, errors of the parser are answered in JSON without an echo of what was sent, and a
response that was written to the transport already is handed back as a stub.
"""

import asyncio
import select
from collections.abc import Callable, Sequence
from typing import Any, cast

from aiohttp import web

from proxy.errors import BadRequest, HeadTooLarge, ProxyError
from proxy.pour import WRITE_HIGH_WATER, Pour
from proxy.wire.head import Field

MAX_FIELDS = 600
MAX_LINE_BYTES = 70_000
READ_BYTES = 262_144
_RDHUP = getattr(select, "POLLRDHUP", 0)


class Relayed:
    """What aiohttp is given for an answer whose bytes are on the transport already."""

    __slots__ = ("keep_alive",)
    status = 200

    def __init__(self, *, keep_alive: bool) -> None:
        self.keep_alive = keep_alive

    async def prepare(self, _request: web.BaseRequest) -> None:
        """Nothing is left to write."""

    async def write_eof(self) -> None:
        """Nothing is left to write."""


KEPT = cast("web.StreamResponse", Relayed(keep_alive=True))
CLOSED = cast("web.StreamResponse", Relayed(keep_alive=False))


class ClientConnection(web.RequestHandler):
    """One client connection."""

    __slots__ = ("pour",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.pour: Pour | None = None
        super().__init__(*args, **kwargs)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Bound what may wait for a slow reader."""
        cast("asyncio.Transport", transport).set_write_buffer_limits(high=WRITE_HIGH_WATER)
        super().connection_made(transport)

    def pause_writing(self) -> None:
        """The client is slower than the upstream."""
        super().pause_writing()
        if self.pour is not None:
            self.pour.pause()

    def resume_writing(self) -> None:
        """The client has caught up."""
        super().resume_writing()
        if self.pour is not None:
            self.pour.resume()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002  (it holds what the client sent, a credential perhaps)
    ) -> web.StreamResponse:
        """Answer what the parser refused, or what nobody caught, without repeating any of it."""
        transport = self.transport
        if transport is not None and not request.writer.output_size:
            error = _error_of(status, exc)
            if isinstance(self._manager, Listener):
                self._manager.refused(error)
            transport.write(error_answer(error, b"", close=True))
            request.writer.output_size = 1
        self.close()
        return CLOSED

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """The edge logs; a traceback with request bytes in it is nothing for a log."""

    def vanished(self) -> bool:
        """Has the client left while nobody reads its transport, so that nobody noticed? Linux only."""
        transport = self.transport
        if transport is None or not _RDHUP or transport.is_reading():
            return False
        sock = transport.get_extra_info("socket")
        if sock is None or sock.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(sock.fileno(), _RDHUP | select.POLLHUP | select.POLLERR)
        return bool(poll.poll(0))


class Listener(web.Server):
    """Makes the client connections. ``refused`` is told what the parser had to refuse."""

    refused: Callable[[ProxyError], None]

    def __call__(self) -> web.RequestHandler:
        """One per accepted socket."""
        return ClientConnection(self, loop=self._loop, **self._kwargs)


def listener(handler: Any, refused: Callable[[ProxyError], None]) -> Listener:
    """The server, with the limits a gateway's traffic needs; what is beyond them is refused in JSON."""
    made = Listener(
        handler,
        handler_cancellation=True,
        auto_decompress=False,
        access_log=None,
        max_headers=MAX_FIELDS,
        max_line_size=MAX_LINE_BYTES,
        max_field_size=MAX_LINE_BYTES,
        read_bufsize=READ_BYTES,
    )
    made.refused = refused
    return made


def _error_of(status: int, exc: BaseException | None) -> ProxyError:
    if status >= 500:
        return ProxyError("ocpool failed on this request; its log has the reason.")
    if exc is not None and ("TooLong" in type(exc).__name__ or "Too many" in str(exc)):
        return HeadTooLarge(
            "The request line or a header field is larger than 70000 bytes, or there are over 600 fields."
        )
    return BadRequest("The request is not valid HTTP/1.1.")


_REASONS = {
    400: b"Bad Request",
    401: b"Unauthorized",
    403: b"Forbidden",
    404: b"Not Found",
    413: b"Content Too Large",
    426: b"Upgrade Required",
    431: b"Request Header Fields Too Large",
    500: b"Internal Server Error",
    502: b"Bad Gateway",
    503: b"Service Unavailable",
    504: b"Gateway Timeout",
}


def error_answer(error: ProxyError, method: bytes, extra: Sequence[Field] = (), *, close: bool) -> bytes:
    """An error of ours as a whole HTTP message."""
    body = error.body()
    lines = [
        b"HTTP/1.1 %d %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
        % (error.status, _REASONS.get(error.status, b"Error"), len(body))
    ]
    lines += [b"%b: %b\r\n" % field for field in extra]
    if error.status == 426:
        lines.append(b"Upgrade: HTTP/1.1\r\n")
    if close:
        lines.append(b"Connection: close\r\n")
    lines.append(b"\r\n")
    if method != b"HEAD":
        lines.append(body)
    return b"".join(lines)
