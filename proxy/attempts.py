"""The attempts for one request: send, then pour the answer or, once, try another id.

A request is sent a second time only after an explicit refusal that was gathered before any byte of it reached the
client. A connection that died after the request was written may have been billed, and is never replayed.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

from proxy import network, settle
from proxy.client import ClientConnection
from proxy.daemon import Daemon
from proxy.entry import Entry
from proxy.errors import ConnectFailed, ProxyError, UpstreamError, UpstreamTimedOut
from proxy.exchange import Exchange
from proxy.gateway import refusals, signals
from proxy.incoming import Incoming, Upload
from proxy.ours import added_fields
from proxy.outbound import outbound_head
from proxy.pace import Pace
from proxy.pour import Ended, Pour, cut
from proxy.replay import replay_start
from proxy.tap import Tap, tap_for
from proxy.timers import Timers
from proxy.verdict import Seen, Stage, judge
from proxy.wire.connection import Connection
from proxy.wire.framing import Sink
from proxy.wire.head import ResponseHead, response_head

if TYPE_CHECKING:
    from proxy.edge import Edge

# Statuses worth reading before they are relayed: the route may have said no where another would say yes.
_REFUSALS: Final = frozenset({429, 503, 529})
_GATHER_MS: Final = 80.0
_COMPLETE: Final = Ended.COMPLETE


class Attempts:
    """The upstream side of one request. Called back by its connection; see ``wire/receiver.py``.

    ``Relay`` adds the client's side, and makes both; they are one object, made for every request.
    """

    __slots__ = (
        "_connection", "_keep", "_task", "_timers", "_upload",
        "client", "daemon", "edge", "entry", "exchange", "incoming", "pour",
    )  # fmt: skip

    edge: "Edge"
    daemon: Daemon
    client: ClientConnection
    entry: Entry
    incoming: Incoming
    exchange: Exchange
    pour: Pour | None  # from the first byte of an answer on
    _keep: bool  # can the client's connection be used again after the answer?
    _connection: Connection | None
    _upload: Upload | None
    _timers: Timers | None
    _task: asyncio.Task[None] | None  # what has to wait

    @abstractmethod
    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do what has to wait in a task."""

    @abstractmethod
    def stop_waiting(self) -> None:
        """End what runs beside the wait for the answer."""

    @abstractmethod
    def refuse(self, error: ProxyError) -> None:
        """End the request with an error of ours."""

    @abstractmethod
    def crash(self, exc: Exception) -> None:
        """End the request because of what should not have happened."""

    # -- sending ---------------------------------------------------------------------------------------
    def send(self) -> None:
        """Send the request, on an idle connection or a new one."""
        daemon = self.daemon
        now_ms = daemon.clock.mono_ms()
        connection = daemon.upstream.take_idle(now_ms)
        if connection is None:
            self.spawn(self._connect(now_ms))
        else:
            daemon.counting.reused.value += 1
            self._send_on(connection, now_ms)

    async def _connect(self, began_ms: float) -> None:
        daemon = self.daemon
        try:
            connection = await daemon.upstream.acquire()
        except UpstreamError as exc:
            self.exchange.verdict = judge(Seen(settle.stage_of(exc)))
            raise
        now_ms = daemon.clock.mono_ms()
        daemon.counting.connected(now_ms - began_ms)
        self._send_on(connection, now_ms)

    def _send_on(self, connection: Connection, now_ms: float) -> None:
        daemon, exchange, incoming = self.daemon, self.exchange, self.incoming
        self._connection = connection
        head = outbound_head(daemon, exchange, self.entry, incoming.length)
        exchange.attempts += 1
        exchange.sent_ms = now_ms
        if daemon.has_timers and self._timers is None:
            self._timers = Timers(daemon, self._timed_out, lambda: self._connection)
        body = incoming.at_once()
        if body is not None:
            connection.send(exchange.method, head, body, asker=self)
            return
        connection.send(exchange.method, head, upload=True, asker=self)
        if self._connection is connection:
            self._upload = Upload(incoming, connection, self.client.want)
            self._upload.push()

    def stream(self) -> None:
        """More of a body that streams has come."""
        if self._upload is not None:
            self._upload.fed()
        elif self._connection is None:
            self.client.want(False)  # there is no connection yet to take it
        else:
            self.incoming.chunks.clear()  # the answer came first

    # -- the answer's head -----------------------------------------------------------------------------
    def answered(self, head: ResponseHead) -> None:
        """The head is here: pour, or read the refusal first."""
        exchange, connection = self.exchange, self._connection
        try:
            assert connection is not None
            mono_ms, status, resolved = self.daemon.clock.mono_ms, head.status, exchange.resolved
            exchange.head_ms = mono_ms()
            exchange.status = status
            tap = tap_for(head, mono_ms, wants_answer=resolved is not None and resolved.wants_answer)
            if tap is not None and status < 400:
                self._answer(connection, head, tap)
            else:
                self._doubted(connection, head, tap)
        except Exception as exc:  # noqa: BLE001  (a callback of the transport's: nothing may leave it)
            self.crash(exc)

    def _doubted(self, connection: Connection, head: ResponseHead, tap: Tap | None) -> None:
        """No plain answer: it may be a refusal that another id would not meet, or none of the gateway's."""
        exchange, status = self.exchange, head.status
        if self.entry.routed and (status in _REFUSALS or (status == 400 and exchange.rewrote)):
            self.spawn(self._refused(connection, head, tap))
        elif network.suspected(self.daemon, exchange, head):
            self.spawn(self._suspected(connection, head, tap))
        else:
            self._answer(connection, head, tap)

    def failed(self, error: ProxyError) -> None:
        """There will be no head."""
        try:
            self.exchange.verdict = judge(Seen(settle.stage_of(error)))
            if isinstance(error, UpstreamError) and not error.written:
                error = ConnectFailed(error.message)
            self.refuse(error)
        except Exception as exc:  # noqa: BLE001
            self.crash(exc)

    async def _refused(self, connection: Connection, head: ResponseHead, tap: Tap | None) -> None:
        """Read a refusal; when another id takes the refused one's place, the request goes again."""
        daemon, exchange = self.daemon, self.exchange
        body = await connection.gathered(daemon.clock.seconds(_GATHER_MS))
        exchange.signals = signals.read_noted(head.notable, daemon.clock.wall_ms())
        exchange.refusal = refusals.read(
            head.status, head.fields, body, daemon.clock.wall_ms(), daemon.settings.upstream.session_header
        )
        verdict = judge(
            Seen(Stage.REFUSED, head.status, refusal=exchange.refusal, rewrote=exchange.rewrote, stream=exchange.stream)
        )
        start = replay_start(daemon, exchange, self.incoming, verdict)
        if start is None:
            self._answer(connection, head, tap)
            return
        exchange.verdict = verdict
        exchange.ended = Ended.COMPLETE
        exchange.bytes_in = self.incoming.size
        settle.observe(daemon, exchange, daemon.clock.mono_ms(), daemon.clock.wall_ms())
        exchange.start = start
        exchange.bypassed = exchange.refusal.names_session
        exchange.replayed = True
        exchange.refusal = exchange.verdict = exchange.ended = exchange.signals = None
        exchange.status = exchange.head_ms = None
        self._connection = None
        if self._upload is not None:
            self._upload.stop()
            self._upload = None
        daemon.upstream.release(connection)
        self.send()

    async def _suspected(self, connection: Connection, head: ResponseHead, tap: Tap | None) -> None:
        """Look at an answer that is perhaps none of the gateway's."""
        await network.refuse_page(self.daemon, self.exchange, connection, head)
        self._answer(connection, head, tap)

    # -- the answer ------------------------------------------------------------------------------------
    def _answer(self, connection: Connection, head: ResponseHead, tap: Tap | None) -> None:
        """Pour the answer. After the first byte of it nothing but its own outcome leaves here."""
        exchange, entry, transport = self.exchange, self.entry, self.client.transport
        if exchange.signals is None:
            exchange.signals = signals.read_noted(head.notable, exchange.at)
        if transport is None or transport.is_closing():
            exchange.ended = exchange.ended or Ended.CLIENT_GONE
            self.finish(keep=False)
            return
        exchange.head, exchange.tap = head, tap
        feed: Sink | None = tap.feed if tap is not None else None
        later = tap
        if exchange.stream and feed is not None and self.daemon.paces(exchange.model):
            exchange.pace = Pace(self.daemon.clock.mono_ms)
            feed, later = exchange.pace.beside(feed), None
        asked, incoming, delimited = entry.head, self.incoming, head.delimited
        self._keep = keep = delimited and asked.keep_alive and incoming.arrived and not self.daemon.stopping
        bare = delimited and not asked.modern
        incoming.drop()
        added = added_fields(self.daemon, exchange, entry.allowed)
        written = response_head(head, added, close=not keep, dechunk=bare)
        whole = connection.whole()
        if whole is None:
            self.pour = pour = Pour(transport, connection, feed, self._poured, bare=bare, later=later)
            pour.start(written)
            return
        if feed is not None and whole:
            feed(whole)
        exchange.ended, exchange.bytes_out = _COMPLETE, len(whole)
        transport.write(written + whole)
        self.finish(keep=keep)

    def _poured(self) -> None:
        """The pour has ended, one way or the other."""
        exchange, pour = self.exchange, self.pour
        try:
            if pour is None:
                return
            exchange.ended = ended = pour.ended
            if ended is _COMPLETE:
                self.finish(keep=self._keep)
            else:
                self._broken_off()
        except Exception as exc:  # noqa: BLE001
            self.crash(exc)

    def _broken_off(self) -> None:
        """End an answer that is not whole so that the client can see it."""
        head, transport = self.exchange.head, self.client.transport
        assert self._connection is not None
        assert head is not None
        self._connection.abort()
        framed = head.delimited and self.entry.head.modern
        if not framed and transport is not None:
            _ = self.daemon.spawn(cut(transport))
        self.finish(keep=False, close=framed)

    # -- the end ---------------------------------------------------------------------------------------
    def _timed_out(self, setting: str) -> None:
        """A limit that the user set has passed: before the head a 504, afterwards an abort."""
        if self.pour is not None:
            self.pour.stop(Ended.STOPPED)
        elif self._connection is not None:
            self._connection.fail(UpstreamTimedOut(f"The upstream was silent for longer than {setting}.", written=True))

    def finish(self, *, keep: bool, close: bool = True) -> None:
        """The request is over: everything is given back, and the client's connection goes on or ends.

        ``keep``: it may be used again. Without ``close`` somebody else ends it.
        """
        client, exchange, pour, connection = self.client, self.exchange, self.pour, self._connection
        if client.relay is not self:
            return  # it was over before
        client.relay = None
        if self._task is not None or self._timers is not None or self._upload is not None:
            self.stop_waiting()
        if connection is not None:
            if pour is not None and pour.ended is None:
                pour.ended = exchange.ended or Ended.STOPPED
                connection.abort()
            self._connection = None
            self.daemon.upstream.release(connection)
        exchange.bytes_in = self.incoming.size
        if pour is not None:
            exchange.bytes_out = pour.bytes
            self.pour = None
        else:
            self.incoming.drop()
        self.edge.relayed(exchange)
        client.done(keep=keep and not self.daemon.stopping, close=close)
