"""One client connection: requests are framed here, one at a time, and handed to the edge.

A request's bytes never wake a task: what they mean is decided in the callback that brings them. Our own pages are
the exception: from such a request on, the connection is aiohttp's (``pages.py``).
"""

import asyncio
import contextlib
import select
import socket
from typing import TYPE_CHECKING, Final, cast

from proxy.arrival import HEAD_END, check_part
from proxy.errors import ProxyError
from proxy.incoming import Incoming
from proxy.pour import WRITE_HIGH_WATER

if TYPE_CHECKING:
    from proxy.edge import Edge
    from proxy.entry import Entry
    from proxy.relay import Relay

_HELD_BYTES: Final = 262_144  # of requests that were sent before the last one was answered
_LINGER_S: Final = 10.0  # how long a client that is still sending may go on, so that it reads why we did not
_RDHUP = getattr(select, "POLLRDHUP", 0)


class ClientConnection(asyncio.Protocol):
    """The protocol behind one client's transport."""

    __slots__ = (
        "_edge",
        "_held",
        "_lingering",
        "_loop",
        "_reading_paused",
        "entry",
        "idle_since",
        "incoming",
        "relay",
        "transport",
    )

    def __init__(self, edge: "Edge", loop: asyncio.AbstractEventLoop) -> None:
        self._edge = edge
        self._loop = loop
        self._held = b""
        self._lingering: asyncio.TimerHandle | None = None
        self._reading_paused = False
        self.transport: asyncio.Transport | None = None
        self.incoming: Incoming | None = None  # a body of which more is to come
        self.relay: Relay | None = None  # the request that is being served
        self.entry: Entry | None = None  # what its head was, where the next one may be the same
        self.idle_since = edge.ticks

    # -- the transport's callbacks ------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Bound what may wait for a slow reader, and hold back nothing to be sent with what follows."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass of it
        self.transport.set_write_buffer_limits(high=WRITE_HIGH_WATER)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            with contextlib.suppress(OSError):  # it is gone already
                # asyncio does so only where the protocol of the listening socket was named.
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._edge.clients.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """The client is gone, or we closed."""
        self._edge.clients.discard(self)
        self.transport = None
        self._held = b""
        if self._lingering is not None:
            self._lingering.cancel()
        relay = self.relay
        if relay is not None:
            relay.gone()

    def pause_writing(self) -> None:
        """The client is slower than the upstream."""
        relay = self.relay
        if relay is not None and relay.pour is not None:
            relay.pour.pause()

    def resume_writing(self) -> None:
        """The client has caught up."""
        relay = self.relay
        if relay is not None and relay.pour is not None:
            relay.pour.resume()

    def data_received(self, data: bytes) -> None:
        """Bytes from the client, by phase."""
        if self.incoming is not None:
            self._body(data)
        elif self.relay is not None:
            self._wait(data)
        elif self._lingering is None:
            self._take(self._held + data if self._held else data)

    # -- requests -----------------------------------------------------------------------------------
    def _take(self, data: bytes) -> None:
        """Begin with the request at the front of ``data``, if its head is all here."""
        entry, edge = self.entry, self._edge
        if entry is not None and entry.settings is edge.daemon.settings:
            found = entry.length_in(data)
            if found is not None:
                length, end = found
                self._held = b""
                edge.relay(self, entry, length, data[end:])
                return
        if data[:1] in b"\r\n":
            data = data.lstrip(b"\r\n")  # RFC 9112, section 2.2
        end = data.find(HEAD_END)
        if end < 0:
            first, self._held = not self._held, data
            if data and (first or len(data) > WRITE_HIGH_WATER or b"\n\n" in data):
                self._check_part(data)
            return
        self._held = b""
        end += len(HEAD_END)
        edge.serve(self, data[:end], data[end:])

    def _check_part(self, data: bytes) -> None:
        try:
            check_part(data)
        except ProxyError as error:
            self.done(keep=self._edge.refuse(self, error, None, keep=False))

    def body(self, incoming: Incoming, rest: bytes) -> None:
        """Take what came of a body with its head, and wait for the rest of it.

        Raises:
            ProxyError: it cannot be taken.
        """
        surplus = incoming.feed(rest) if rest else rest
        if not incoming.arrived:
            self.incoming = incoming
        elif surplus:
            self._wait(surplus)

    def _body(self, data: bytes) -> None:
        incoming, relay = self.incoming, self.relay
        assert incoming is not None
        try:
            surplus = incoming.feed(data)
        except ProxyError as error:
            self.incoming = None
            if relay is not None:
                relay.refuse(error)
            return
        if incoming.arrived:
            self.incoming = None
            if surplus:
                self._wait(surplus)
        if relay is not None:
            relay.fed()
            return
        incoming.chunks.clear()  # it was answered already
        if self.incoming is None:
            self.close()

    def _wait(self, data: bytes) -> None:
        """Hold what belongs to the next request."""
        self._held = self._held + data if self._held else data
        if len(self._held) > _HELD_BYTES:
            self.want(False)

    def want(self, more: bool) -> None:
        """Read on, or stop reading: nobody takes the bytes at the moment."""
        transport = self.transport
        if transport is None or more is not self._reading_paused or transport.is_closing():
            return
        self._reading_paused = not more
        if more:
            transport.resume_reading()
        else:
            transport.pause_reading()

    # -- the end of a request -----------------------------------------------------------------------
    def write(self, data: bytes) -> None:
        """Write an answer of our own."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def done(self, *, keep: bool, close: bool = True) -> None:
        """The request has been answered: go on with the next, or close without losing what was written."""
        if self.transport is None:
            return
        if not keep:
            if close:
                self.finish()
            return
        self.idle_since = self._edge.ticks
        if self._reading_paused:
            self.want(True)
        if self._held:
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        if self._held and self.relay is None and self.transport is not None:
            held, self._held = self._held, b""
            self._take(held)

    def hand_over(self) -> asyncio.Transport | None:
        """Give the transport away, for one of our own pages."""
        transport, self.transport = self.transport, None
        self._edge.clients.discard(self)
        return transport

    def finish(self) -> None:
        """Close in order. A client that is still sending is read for a while, or a reset would eat our answer."""
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        if self.incoming is None:
            transport.close()
            return
        if transport.can_write_eof():
            transport.write_eof()
        self._lingering = self._loop.call_later(_LINGER_S, self.close)
        self.want(True)

    def close(self) -> None:
        """Close once everything is written."""
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Drop the connection at once."""
        if self.transport is not None:
            self.transport.abort()

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
