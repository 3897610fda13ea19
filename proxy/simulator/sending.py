"""Writes a script to a connection at its times, and ends the connection the way the script says."""

import asyncio
import socket
import struct
from typing import Final

from aiohttp import web

from proxy.simulator.faults import Ending, Script
from proxy.simulator.knobs import Clock
from proxy.simulator.record import Record

HELD_MS: Final = 600_000.0  # a connection that says nothing more is closed after this long
RESET_AFTER_S: Final = 0.02  # real: what was written before a reset should arrive first
SOON_S: Final = 0.0005  # real: a shorter wait inside a body is not worth a timer


class Sent(web.StreamResponse):
    """What aiohttp is given: the reply is on the socket already."""

    def __init__(self, *, keep: bool) -> None:
        """``keep``: the connection may serve another request."""
        super().__init__()
        self._keep = keep

    @property
    def keep_alive(self) -> bool:
        return self._keep

    async def prepare(self, request: web.BaseRequest) -> None:  # noqa: ARG002  (aiohttp's signature)
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to write."""


class Sending:
    """One reply on its way. Raises ConnectionError when the client is gone."""

    def __init__(self, request: web.BaseRequest, record: Record, clock: Clock, arrived_ms: float) -> None:
        """``arrived_ms`` is when the request's head was read, on the clock that only grows."""
        self._request = request
        self._record = record
        self._clock = clock
        self._arrived_ms = arrived_ms

    async def write(self, script: Script, began_ms: float, place: int) -> int:
        """Wait for the write at ``place``, and write it and what is due besides. Returns where to go on."""
        wait_s = self._clock.seconds(began_ms + script.writes[place][0] - self._clock.mono_ms())
        if wait_s > (SOON_S if place else 0):
            await asyncio.sleep(wait_s)
        now_ms = self._clock.mono_ms()
        end = place + 1
        while script.join and end < len(script.writes) and began_ms + script.writes[end][0] <= now_ms:
            end += 1
        transport = self._request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client left")
        data = b"".join(written for _, written in script.writes[place:end])
        transport.write(data)
        self._note(data, end, now_ms - self._arrived_ms)
        await self._request.protocol._drain_helper()  # noqa: SLF001  (aiohttp has no public one for raw bytes)
        return end

    def _note(self, data: bytes, end: int, after_ms: float) -> None:
        record = self._record
        record.sent_bytes += len(data)
        if not data:
            return
        if record.head_ms is None:
            record.head_ms = after_ms
        if record.ttfb_ms is None and (end > 1 or data.partition(b"\r\n\r\n")[2]):
            record.ttfb_ms = after_ms

    async def end(self, ending: Ending) -> Sent:
        """End the connection, or leave it to the next request."""
        transport = self._request.transport
        if ending is Ending.HOLD:
            await asyncio.sleep(self._clock.seconds(HELD_MS))
        elif ending is Ending.RESET and transport is not None:
            await asyncio.sleep(RESET_AFTER_S)
            raw = transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            transport.abort()
        return Sent(keep=ending is Ending.KEEP)


async def read_body(request: web.BaseRequest) -> bytes:
    """The whole body; a client that asks whether to go on is told to."""
    if request.headers.get("Expect", "").lower() == "100-continue" and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    parts = []
    while part := await request.content.readany():
        parts.append(part)
    return b"".join(parts)
