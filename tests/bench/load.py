"""The clients: connections that ask, and count what they are answered."""

import asyncio
import re
import ssl
import time
from collections.abc import Callable

from tests.bench.upstream import ANSWER

_STAMP = re.compile(rb'"t":"(\d{18})"')
_OK = b"HTTP/1.1 200"
_END = ANSWER[-16:]


class Wrong(Exception):
    """A proxy answered with something else than it was to relay, so its figures would mean nothing."""


class Counts:
    """What all connections of one measurement saw.

    ``transit_ns`` holds how long each event was on its way, while ``timed``; ``wrong`` the first answer that was none.
    """

    def __init__(self) -> None:
        self.opened = 0
        self.done = 0
        self.timed = False
        self.transit_ns: list[int] = []
        self.wrong: bytes | None = None

    def check(self) -> None:
        """Raises Wrong."""
        if self.wrong is not None:
            raise Wrong(self.wrong[:200].decode("latin-1"))


class Client(asyncio.Protocol):
    """A connection whose answers are expected to be 200."""

    def __init__(self, counts: Counts) -> None:
        self.counts = counts
        self.fresh = True  # the next bytes begin an answer

    def connection_made(self, transport) -> None:
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        raise NotImplementedError

    def begun(self, data: bytes) -> None:
        """Look at the first bytes of an answer."""
        self.fresh = False
        self.counts.opened += 1
        if not data.startswith(_OK) and self.counts.wrong is None:
            self.counts.wrong = data


class Requests(Client):
    """Asks again as soon as it is answered."""

    def __init__(self, counts: Counts, request: Callable[[], bytes]) -> None:
        super().__init__(counts)
        self._request = request

    def ask(self) -> None:
        self.fresh = True
        self._tail = b""
        self.transport.write(self._request())

    def data_received(self, data: bytes) -> None:
        if self.fresh:
            self.begun(data)
        self._tail = (self._tail + data)[-len(_END) :]
        if self._tail == _END:
            self.counts.done += 1
            self.ask()


class Stream(Client):
    """Asks once, for a stream without an end."""

    def __init__(self, counts: Counts, request: bytes) -> None:
        super().__init__(counts)
        self._request = request

    def ask(self) -> None:
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        counts = self.counts
        if self.fresh:
            self.begun(data)
        counts.done += data.count(b"data: ")
        if counts.timed:
            now = time.monotonic_ns()
            for stamp in _STAMP.findall(data):
                counts.transit_ns.append(now - int(stamp))


class Crowd:
    """Some clients of one port, open between entry and exit."""

    def __init__(
        self, size: int, made: Callable[[], Client], port: int, context: ssl.SSLContext | None, spread_s: float = 0.0
    ) -> None:
        self._size, self._made, self._port, self._context = size, made, port, context
        self._pause_s = spread_s / size
        self._transports: list[asyncio.Transport] = []

    async def __aenter__(self) -> None:
        """Open one after the other, so that paced streams do not all tick at once."""
        loop = asyncio.get_running_loop()
        for _ in range(self._size):
            transport, _client = await loop.create_connection(
                self._made,
                "127.0.0.1",
                self._port,
                ssl=self._context,
                server_hostname="127.0.0.1" if self._context else None,
            )
            self._transports.append(transport)
            if self._pause_s:
                await asyncio.sleep(self._pause_s)

    async def __aexit__(self, *_exc: object) -> None:
        for transport in self._transports:
            transport.abort()
        await asyncio.sleep(0.15)  # the proxy hears of it, before somebody else is measured
