"""A raw client: exact bytes out, exact bytes in, and nothing done that a test did not ask for."""

import ssl
import time
from dataclasses import dataclass, field
from typing import Self

from tests.fakes.http1 import Body, Fields, Head, parse_head, response_body
from tests.fakes.sockets import Wire, dial

HOST = b"localhost:8377"
JSON = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'


@dataclass
class Reply:
    """What a client saw of one response."""

    head: Head
    body: Body
    head_at: float
    raw_at: int  # offset of the body in everything received
    raw: bytes = b""
    interim: list[Head] = field(default_factory=list)
    ended_at: float = 0.0
    reset: bool = False

    @property
    def status(self) -> int:
        return int(self.head.start[1])

    @property
    def reason(self) -> bytes:
        return self.head.start[2]

    @property
    def complete(self) -> bool:
        return self.body.complete

    @property
    def data(self) -> bytes:
        return bytes(self.body.data)

    def all(self, name: bytes) -> list[bytes]:
        return self.head.all(name)

    def one(self, name: bytes) -> bytes | None:
        return self.head.one(name)


class Client:
    """One client connection."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    @classmethod
    async def open(cls, host: str, port: int, tls: ssl.SSLContext | None = None, small: bool = False) -> "Client":
        return cls(await dial(host, port, tls=tls, small=small))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.wire.cut()
        await self.wire.until(lambda: self.wire.lost_at is not None, 5, "closing")

    async def send(self, data: bytes) -> None:
        await self.wire.send(data)

    async def head(self, method: str = "POST", within: float = 10.0) -> Reply:
        """The next final head; interim ones are kept beside it."""
        interim: list[Head] = []
        while True:
            head = await self._head(within)
            if int(head.start[1]) >= 200 or head.start[1] == b"101":
                break
            interim.append(head)
        wire = self.wire
        return Reply(head, response_body(head, method), wire.when(wire.at - 1), wire.at, interim=interim)

    async def _head(self, within: float) -> Head:
        wire = self.wire

        def there() -> bool:
            return b"\r\n\r\n" in wire.data[wire.at : wire.at + 4_000_000] or wire.gone_at is not None

        await wire.until(there, within, "a response head")
        end = wire.data.find(b"\r\n\r\n", wire.at)
        if end < 0:
            raise ConnectionError(f"closed (reset: {wire.was_reset}) after {bytes(wire.data[wire.at :])!r}")
        head = parse_head(bytes(wire.data[wire.at : end + 4]))
        wire.at = end + 4
        return head

    async def rest(self, reply: Reply, within: float = 10.0) -> Reply:
        """The body, until its end or until the connection's."""
        wire = self.wire

        def over() -> bool:
            wire.at = reply.body.feed(wire.data, wire.at)
            return reply.body.complete or wire.gone_at is not None

        await wire.until(over, within, "the end of the response")
        over()
        reply.raw = bytes(wire.data[reply.raw_at : wire.at])
        reply.ended_at = wire.gone_at if wire.gone_at and not reply.body.complete else time.perf_counter()
        if not reply.body.complete:
            await wire.until(lambda: wire.eof_at is not None or wire.lost_at is not None, 2, "the end")
            reply.raw = bytes(wire.data[reply.raw_at :])
            reply.reset = wire.was_reset
            if reply.body.framing == "close":
                reply.body.complete = not reply.reset
        return reply

    async def reply(self, method: str = "POST", within: float = 20.0) -> Reply:
        """The next response, whole."""
        return await self.rest(await self.head(method, within), within)

    async def ask(self, request: bytes, method: str = "POST", within: float = 20.0) -> Reply:
        """Send and read the reply."""
        await self.send(request)
        return await self.reply(method, within)


def chunk(data: bytes) -> bytes:
    """One HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


END = b"0\r\n\r\n"


def request(
    target: bytes,
    body: bytes = JSON,
    fields: Fields | None = None,
    *,
    method: bytes = b"POST",
    host: bytes = HOST,
    framing: str = "length",
    session: bytes | None = b"",
    version: bytes = b"HTTP/1.1",
) -> bytes:
    """A request, as an SDK would send it; ``session`` "" gives it none, ``framing`` "head" leaves the body out."""
    lines = [b"%b %b %b" % (method, target, version), b"Host: " + host]
    lines += [name + b": " + value for name, value in fields or []]
    if session:
        lines.append(b"x-opencode-session: " + session)
    if framing == "chunked":
        lines.append(b"Transfer-Encoding: chunked")
    elif framing in ("length", "head"):
        lines.append(b"Content-Length: %d" % len(body))
    head = b"\r\n".join(lines) + b"\r\n\r\n"
    if framing in ("head", "none"):
        return head
    if framing == "chunked":
        return head + (chunk(body) if body else b"") + END
    return head + body
