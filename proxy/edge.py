"""The edge: who may come in, where it goes, and the one place where an error becomes a response."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from proxy import settle
from proxy.client import ClientConnection
from proxy.daemon import Daemon
from proxy.entry import Entrance, Entry
from proxy.errors import BadRequest, ProxyError, Stopping
from proxy.exchange import Exchange
from proxy.incoming import Incoming
from proxy.ours import error_answer, preflight_answer
from proxy.relay import FAILED, Relay

if TYPE_CHECKING:
    from proxy.pages import Control, Pages

_EXPIRE_EVERY = 120
_IDLE_TICKS = 7_200


class Edge:
    """Every client connection and every request passes here. Called as a protocol factory, it makes a connection.

    ``clients`` are the open connections but those of our own pages. ``ticks`` grows with the upkeep's watch: by it
    the idle ones are told.
    """

    def __init__(self, daemon: Daemon, load_control: "Callable[[], Control]") -> None:
        self.daemon = daemon
        self._load_control = load_control
        self._pages: Pages | None = None
        self.clients: set[ClientConnection] = daemon.clients
        self.ticks = 0
        self.quiet = asyncio.Event()  # we are stopping, and nothing is being relayed any more
        self._loop = asyncio.get_running_loop()
        self._entrance = Entrance(daemon)
        self._count = 0
        self._unsettled: list[Exchange] = []

    def __call__(self) -> ClientConnection:
        """One per accepted socket."""
        return ClientConnection(self, self._loop)

    def pages(self) -> "Pages":
        """Our own pages, loaded when they are first asked for."""
        if self._pages is None:
            from proxy.pages import Pages  # noqa: PLC0415  (see there)

            self._pages = Pages(self.daemon, self._load_control())
        return self._pages

    def close(self) -> None:
        """End the pages that are left."""
        if self._pages is not None:
            self._pages.close()

    def serve(self, client: ClientConnection, head: bytes, rest: bytes) -> None:
        """Serve one request, whose head is complete; ``rest`` is what came behind it. Never raises."""
        daemon = self.daemon
        entry: Entry | None = None
        length: int | None = None
        try:
            entry, length = self._entrance.enter(head)
            if not entry.admitted:
                entry.admit()
            if entry.target.own and not entry.preflight:
                self.pages().take(client, head + rest)
                return
            if entry.preflight:
                keep = self._put_by(client, entry, length, rest)
                client.write(preflight_answer(entry))
                client.done(keep=keep and not daemon.stopping)
                return
            if daemon.stopping:
                raise Stopping("ocpool is shutting down. Try again in a moment.")
        except ProxyError as error:
            self._turn_away(client, error, entry, length, rest)
            return
        except Exception as exc:  # noqa: BLE001  (whatever it is, the client must not hang and nothing may leak)
            daemon.trouble("request_failed", exc)
            self._turn_away(client, ProxyError(FAILED), entry, length, rest)
            return
        client.entry = entry if entry.remembered else None
        self.relay(client, entry, length, rest)

    def relay(self, client: ClientConnection, entry: Entry, length: int | None, rest: bytes) -> None:
        """Relay a request that was let in; ``length`` is that of its body. Never raises."""
        self._count = number = self._count + 1
        incoming = Incoming(self.daemon.buffers, length, rest, chunked=entry.head.chunked)
        client.relay = relay = Relay(self, client, entry, incoming, number)
        relay.begin(rest)

    def _turn_away(
        self, client: ClientConnection, error: ProxyError, entry: Entry | None, length: int | None, rest: bytes
    ) -> None:
        """Refuse a request before it is one; its body is read if it lies here, or its connection ends."""
        keep = False
        if entry is not None:
            try:
                keep = self._put_by(client, entry, length, rest)
            except ProxyError:
                client.incoming = None
        client.done(keep=self.refuse(client, error, entry, keep=keep))

    def _put_by(self, client: ClientConnection, entry: Entry, length: int | None, rest: bytes) -> bool:
        """Tell a body that nobody wants from what follows it. True: all of it is here, and the connection may stay."""
        incoming = Incoming(self.daemon.buffers, length, rest, chunked=entry.head.chunked)
        if not incoming.arrived:
            client.body(incoming, rest)
        return client.incoming is None and entry.head.keep_alive

    def refuse(self, client: ClientConnection, error: ProxyError, entry: Entry | None, *, keep: bool) -> bool:
        """Answer with an error of ours. Returns whether the connection can be used again."""
        keep = keep and not self.daemon.stopping and not isinstance(error, BadRequest)
        self.daemon.refused(error)
        method = entry.head.method if entry is not None else b""
        allowed = entry.allowed if entry is not None else b""
        client.write(error_answer(error, method, allowed, close=not keep))
        return keep

    def expire(self) -> None:
        """Close the connections that have asked for nothing in an hour; called twice a second."""
        self.ticks += 1
        if self.ticks % _EXPIRE_EVERY == 0:
            for client in tuple(self.clients):
                if client.relay is None and self.ticks - client.idle_since > _IDLE_TICKS:
                    client.close()

    def relayed(self, exchange: Exchange) -> None:
        """A request is over: what it taught is noted before the next one is read."""
        if not self._unsettled:
            self._loop.call_soon(self._settle)
        self._unsettled.append(exchange)

    def _settle(self) -> None:
        """Settle what has ended since: after the answers have been written, not before."""
        ended, self._unsettled = self._unsettled, []
        clock = self.daemon.clock
        ended_ms, now = clock.mono_ms(), clock.wall_ms()
        for exchange in ended:
            settle.settle(self.daemon, exchange, ended_ms, now)
        if self.daemon.stopping and not self.daemon.in_flight:
            self.quiet.set()
