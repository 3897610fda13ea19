"""A small client of the demo's own: one connection, one streamed request at a time, and when its first byte came."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from pool.clock import Clock
from proxy.cli.stage import Place

NO_ANSWER = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; durations in ms of the clock, counted from the request's last byte on its way.

    ``status`` is 0 when no answer came. ``ttfb_ms`` is the wait for the first byte of the body; without one, for
    whatever ended the wait. ``complete``: the body ended as its framing says.
    """

    status: int
    fields: dict[str, str]
    ttfb_ms: float
    total_ms: float
    complete: bool


class Client:
    """Speaks HTTP/1.1 to one server and keeps its connection."""

    def __init__(self, place: Place, clock: Clock) -> None:
        self._place = place
        self._clock = clock
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, path: str, fields: Iterable[tuple[str, str]], body: bytes) -> Answer:
        """POST and read the answer to its end. Raises OSError when no connection can be made."""
        reader, writer = await self._connected()
        lines = [f"POST {path} HTTP/1.1", f"host: {self._place.host}:{self._place.port}"]
        lines += [f"{name}: {value}" for name, value in fields]
        lines.append(f"content-length: {len(body)}")
        asked_ms = self._clock.mono_ms()
        writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
        status, answered, first_ms = NO_ANSWER, dict[str, str](), None
        complete = False
        try:
            status, answered = _head(await reader.readuntil(b"\r\n\r\n"))
            left = await _first(reader, answered)
            first_ms = self._clock.mono_ms()
            await _rest(reader, answered, left)
            complete = True
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            self.close()
        ended_ms = self._clock.mono_ms()
        first_ms = ended_ms if first_ms is None else first_ms
        if answered.get("connection", "").lower() == "close":
            self.close()
        return Answer(status, answered, first_ms - asked_ms, ended_ms - asked_ms, complete)

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._reader is None or self._writer is None or self._reader.at_eof():
            self.close()
            self._reader, self._writer = await asyncio.open_connection(*self._place)
        return self._reader, self._writer

    def close(self) -> None:
        """Drop the connection; the next request makes another."""
        if self._writer is not None:
            self._writer.transport.abort()
        self._reader = self._writer = None


def _head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    parts = (line.partition(":") for line in lines if line)
    return int(first.split(" ", 2)[1]), {name.lower(): value.strip() for name, _, value in parts}


def _chunked(fields: dict[str, str]) -> bool:
    return "chunked" in fields.get("transfer-encoding", "").lower()


async def _first(reader: asyncio.StreamReader, fields: dict[str, str]) -> int:
    """Wait for the first of the body. Returns what is left of it: the first chunk's size, or the whole length."""
    if _chunked(fields):
        return int(await reader.readline(), 16)
    length = int(fields["content-length"]) if "content-length" in fields else 0
    if length:
        await reader.readexactly(1)
    return max(0, length - 1)


async def _rest(reader: asyncio.StreamReader, fields: dict[str, str], left: int) -> None:
    if not _chunked(fields):
        await reader.readexactly(left)
        return
    while left:
        await reader.readexactly(left + 2)
        left = int(await reader.readline(), 16)
    while (await reader.readline()).strip():  # trailers, if any, then the empty line
        pass
