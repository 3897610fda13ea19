"""One end of a TCP or TLS connection that records what came and when, and can leave by FIN or by RST."""

import asyncio
import bisect
import socket
import ssl
import struct
import time

from tests.fakes.watched import Watched


class Gone(Exception):
    """The other side left while a script still wanted something from it."""


class Wire(Watched, asyncio.Protocol):
    """A connection: every byte received, with the time it came, and how the other side left."""

    def __init__(self, on_made: object = None) -> None:
        super().__init__()
        self.data = bytearray()
        self.at = 0  # what of it has been parsed
        self.total = 0  # received ever
        self.arrivals: list[tuple[int, float]] = []  # bytes so far, when
        self.sent: list[tuple[float, bytes]] = []
        self.eof_at: float | None = None
        self.lost_at: float | None = None
        self.error: Exception | None = None
        self.left = False  # we closed it
        self.transport: asyncio.Transport = None  # type: ignore[assignment]
        self._on_made = on_made
        self._writable = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        if callable(self._on_made):
            self._on_made(self)

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.total += len(data)
        self.arrivals.append((self.total, time.perf_counter()))
        self.changed()

    def eof_received(self) -> bool:
        self.eof_at = time.perf_counter()
        self.changed()
        return self.transport.get_extra_info("ssl_object") is None

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost_at = time.perf_counter()
        self.error = exc
        self._writable = True
        self.changed()

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        self.changed()

    @property
    def gone_at(self) -> float | None:
        """When the other side left, by whatever way."""
        moments = [at for at in (self.eof_at, self.lost_at) if at is not None]
        return min(moments) if moments else None

    @property
    def was_reset(self) -> bool:
        """Did the other side leave by RST?"""
        return isinstance(self.error, ConnectionError)

    def when(self, offset: int) -> float:
        """When the byte at ``offset`` of ``data`` came."""
        offset += self.total - len(self.data)
        return self.arrivals[bisect.bisect_right(self.arrivals, (offset, float("inf")))][1]

    def forget(self) -> None:
        """Drop what has been parsed, if it is much."""
        if self.at > 1_000_000:
            del self.data[: self.at]
            self.at = 0

    async def send(self, data: bytes) -> None:
        """Write and wait until most of it is in the kernel."""
        if self.transport.is_closing():
            raise Gone
        self.sent.append((time.perf_counter(), bytes(data[-200:])))
        self.transport.write(data)
        if not self._writable:
            await self.until(lambda: self._writable, 600, "room to write")
        if self.lost_at is not None and not self.left:
            raise Gone

    async def gone(self, within: float) -> float:
        """Wait until the other side has left; returns when."""
        await self.until(lambda: self.gone_at is not None, within, "the other side leaving")
        assert self.gone_at is not None
        return self.gone_at

    def stop_reading(self) -> None:
        """Let the kernel's buffers fill up."""
        self.transport.pause_reading()

    def read_on(self) -> None:
        """Undo ``stop_reading``."""
        self.transport.resume_reading()

    def half_close(self) -> None:
        """FIN, and go on reading."""
        self.transport.write_eof()

    def fin(self) -> None:
        """Close in order: TLS says so first, then FIN."""
        self.left = True
        self.transport.close()

    def cut(self) -> None:
        """FIN without TLS's close_notify."""
        self.left = True
        self.transport.abort()

    def rst(self) -> None:
        """RST, by SO_LINGER (1, 0)."""
        self.left = True
        sock: socket.socket | None = self.transport.get_extra_info("socket")
        if sock is not None and sock.fileno() >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()


async def dial(host: str, port: int, *, tls: ssl.SSLContext | None = None, small: bool = False) -> Wire:
    """Connect; ``small`` keeps the receive buffer small, so that back-pressure shows early."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        if small:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(sock, (host, port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _, wire = await loop.create_connection(Wire, sock=sock, ssl=tls, server_hostname="localhost" if tls else None)
    except BaseException:
        sock.close()
        raise
    return wire
