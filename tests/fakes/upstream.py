"""A raw upstream that plays scripts: a test says, byte by byte, what the gateway does, and reads what reached it."""

import asyncio
import itertools
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.fakes.client import END, chunk
from tests.fakes.http1 import Body, Head, Malformed, parse_head, request_body
from tests.fakes.sockets import Gone, Wire
from tests.fakes.watched import Watched

SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
ROUTED = b"/zen/go/v1/chat/completions"
UNROUTED = b"/zen/go/v1/responses"
PLAIN = b"/zen/go/v1/whatever"


def sized(body: bytes, status: bytes = b"200 OK", *fields: bytes) -> bytes:
    """A response with a length."""
    lines = [b"HTTP/1.1 " + status, *fields, b"Content-Length: %d" % len(body)]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@dataclass
class Exchange:
    """One request as it reached the upstream, and what a script may do about it."""

    head: Head
    wire: Wire
    connection: int
    nth: int  # of its connection
    at: float
    body: Body
    ended_at: float | None = None
    failure: BaseException | None = None

    @property
    def target(self) -> bytes:
        return self.head.start[1]

    @property
    def data(self) -> bytes:
        return bytes(self.body.data)

    async def read(self, within: float = 60.0) -> bytes:
        """The request's body, whole."""
        wire = self.wire

        def over() -> bool:
            wire.at = self.body.feed(wire.data, wire.at)
            wire.forget()
            return self.body.complete or wire.gone_at is not None

        await wire.until(over, within, "the request's end")
        over()
        if not self.body.complete:
            raise Gone
        return bytes(self.body.data)

    async def send(self, *parts: bytes, gap: float = 0.0) -> None:
        """Write the parts, each in its own packet when there is a gap."""
        for index, part in enumerate(parts):
            if index and gap:
                await asyncio.sleep(gap)
            await self.wire.send(part)

    async def events(self, *events: bytes, gap: float = 0.0, end: bool = True) -> None:
        """An event stream in chunks, one event each."""
        await self.send(SSE, *[chunk(event) for event in events], *([END] if end else []), gap=gap)

    def when(self, marker: bytes) -> float:
        """When bytes that contain the marker were sent in this exchange."""
        return next(at for at, data in self.wire.sent if marker in data and at >= self.at)


Script: TypeAlias = Callable[[Exchange], Awaitable[None]]


@dataclass(eq=False)
class Case(Watched):
    """A script and the requests that met it."""

    key: bytes
    script: Script
    requests: list[Exchange] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def on(self, path: bytes) -> bytes:
        """The target that leads here."""
        return path + (b"&" if b"?" in path else b"?") + b"case=" + self.key

    async def seen(self, count: int = 1, within: float = 5.0) -> Exchange:
        """Wait until that many requests have come; returns the last of them."""
        await self.until(lambda: len(self.requests) >= count, within, f"request {count} at the upstream")
        return self.requests[count - 1]


class Upstream(Watched):
    """Listens, finds the script of each request by ``case=`` in its target or by ``x-case``, and plays it."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__()
        self.tls = tls
        self.port = 0
        self.wires: list[Wire] = []
        self.cases: dict[bytes, Case] = {}
        self.strays: list[Exchange] = []
        self.failures: list[BaseException] = []
        self.stray_script: Script | None = None
        self._keys = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str | None = "127.0.0.1", port: int = 0) -> "Upstream":
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Wire(self._made), host, port, ssl=self.tls, backlog=1000)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for wire in self.wires:
            wire.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)

    @property
    def scheme(self) -> str:
        return "https" if self.tls else "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://localhost:{self.port}" if self.tls else f"http://127.0.0.1:{self.port}"

    @property
    def host(self) -> bytes:
        """What belongs into Host."""
        return self.url.partition("://")[2].encode()

    def case(self, script: Script) -> Case:
        """A new case; its key is in its targets."""
        case = Case(b"%dx%d" % (next(self._keys), self.port), script)
        self.cases[case.key] = case
        return case

    @property
    def opened(self) -> int:
        """How many connections were ever made."""
        return len(self.wires)

    def _made(self, wire: Wire) -> None:
        self.wires.append(wire)
        task = asyncio.get_running_loop().create_task(self._serve(wire, len(self.wires)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.changed()

    async def _serve(self, wire: Wire, number: int) -> None:
        for nth in itertools.count(1):
            try:
                head = await self._head(wire)
                if head is None:
                    if not wire.left:
                        wire.fin()
                    return
                exchange = Exchange(head, wire, number, nth, wire.when(wire.at - 1), request_body(head))
            except Malformed as error:
                self.failures.append(error)
                wire.cut()
                return
            await self._play(exchange)
            if wire.left or wire.lost_at is not None:
                return

    async def _head(self, wire: Wire) -> Head | None:
        await wire.until(
            lambda: wire.data.find(b"\r\n\r\n", wire.at) >= 0 or wire.gone_at is not None, 7200, "a request"
        )
        end = wire.data.find(b"\r\n\r\n", wire.at)
        if end < 0:
            return None
        head = parse_head(bytes(wire.data[wire.at : end + 4]))
        wire.at = end + 4
        return head

    def _find(self, head: Head) -> Case | None:
        key = head.one(b"x-case")
        if key is None:
            key = head.start[1].partition(b"case=")[2].partition(b"&")[0]
        return self.cases.get(key)

    async def _play(self, exchange: Exchange) -> None:
        try:
            case = self._find(exchange.head)
            if case is None:
                self.strays.append(exchange)
                self.changed()
                await (self.stray_script or _unknown)(exchange)
            else:
                case.requests.append(exchange)
                case.changed()
                await case.script(exchange)
            if not exchange.wire.left:
                await exchange.read()
        except Gone as error:
            exchange.failure = error
        except (Exception, asyncio.CancelledError) as error:
            exchange.failure = error
            if not isinstance(error, asyncio.CancelledError):
                self.failures.append(error)
            exchange.wire.cut()
        exchange.ended_at = time.perf_counter()
        if case is not None:
            case.changed()


async def _unknown(exchange: Exchange) -> None:
    await exchange.read()
    await exchange.send(sized(b'{"error":{"message":"no script"}}', b"404 Not Found"))


def play(*parts: bytes | float | str | Script, read: bool = True) -> Script:
    """A script in a line: bytes are sent, numbers are seconds to wait, words are fin, cut, rst, deaf and hold."""

    async def script(exchange: Exchange) -> None:
        if read:
            await exchange.read()
        for part in parts:
            if isinstance(part, bytes):
                await exchange.send(part)
            elif isinstance(part, str):
                await _act(exchange, part)
            elif callable(part):
                await part(exchange)
            else:
                await asyncio.sleep(part)

    return script


async def _act(exchange: Exchange, word: str) -> None:
    wire = exchange.wire
    if word == "hold":
        await wire.until(lambda: wire.gone_at is not None, 7200, "the other side leaving")
        raise Gone
    {"fin": wire.fin, "cut": wire.cut, "rst": wire.rst, "deaf": wire.stop_reading}[word]()


__all__ = [
    "END",
    "PLAIN",
    "ROUTED",
    "SSE",
    "UNROUTED",
    "Case",
    "Exchange",
    "Malformed",
    "Upstream",
    "chunk",
    "play",
    "sized",
]
