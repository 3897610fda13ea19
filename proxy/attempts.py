"""The attempts for one request: send, then pour the answer or, once, try another id.

A request is sent a second time only after an explicit refusal that was gathered before any byte of it reached the
client. A connection that died after the request was written may have been billed, and is never replayed.
"""

from abc import abstractmethod
from collections.abc import Coroutine
from typing import Any, Final

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
from proxy.tap import tap_for
from proxy.timers import Timers
from proxy.verdict import Seen, Stage, judge
from proxy.wire.connection import Connection
from proxy.wire.framing import Sink
from proxy.wire.head import ResponseHead, response_head

# Statuses worth reading before they are relayed: the route may have said no where another would say yes.
_REFUSALS: Final = frozenset({429, 503, 529})
_GATHER_MS: Final = 80.0


class Attempts:
    """The upstream side of one request. Called back by its connection; see ``wire/receiver.py``.

    ``Relay`` adds the client's side; they are one object, made for every request.
    """

    __slots__ = (
        "_connection",
        "_pour",
        "_timers",
        "_upload",
        "begun",
        "client",
        "daemon",
        "entry",
        "exchange",
        "incoming",
        "length",
    )

    def __init__(self, daemon: Daemon, client: ClientConnection, entry: Entry, length: int | None, number: int) -> None:
        head = entry.head
        self.daemon = daemon
        self.client = client
        self.entry = entry
        self.length = length  # of the body, as the client's head has it
        self.incoming = Incoming(daemon.buffers, length, chunked=head.chunked)
        self.exchange = Exchange(number, daemon.clock.wall_ms(), daemon.clock.mono_ms(), head.method, entry.target)
        self.exchange.routed = entry.routed
        self.begun = False  # a byte of an answer has been written to the client
        self._connection: Connection | None = None
        self._pour: Pour | None = None
        self._upload: Upload | None = None
        self._timers: Timers | None = None

    @abstractmethod
    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do what has to wait in a task."""

    @abstractmethod
    def refuse(self, error: ProxyError) -> None:
        """End the request with an error of ours."""

    @abstractmethod
    def crash(self, exc: Exception) -> None:
        """End the request because of what should not have happened."""

    @abstractmethod
    def finish(self, *, keep: bool, close: bool = True) -> None:
        """End the request; ``keep`` and ``close`` say what becomes of the client's connection."""

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
        head = outbound_head(daemon, exchange, self.entry, self.length)
        exchange.attempts += 1
        exchange.sent_ms = now_ms
        exchange.sent_at = exchange.at + int(now_ms - exchange.began_ms)
        at_once = incoming.at_once
        if daemon.has_timers and self._timers is None:
            self._timers = Timers(daemon, self._timed_out, lambda: self._connection)
        connection.send(exchange.method, head, incoming.framed() if at_once else (), upload=not at_once, asker=self)
        if not at_once and self._connection is connection:
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
        try:
            exchange = self.exchange
            exchange.head_ms = self.daemon.clock.mono_ms()
            exchange.status = head.status
            assert self._connection is not None
            if exchange.routed and (head.status in _REFUSALS or (head.status == 400 and exchange.rewrote)):
                self.spawn(self._refused(self._connection, head))
            elif network.suspected(self.daemon, exchange, head):
                self.spawn(self._suspected(self._connection, head))
            else:
                self._answer(self._connection, head)
        except Exception as exc:  # noqa: BLE001  (a callback of the transport's: nothing may leave it)
            self.crash(exc)

    def failed(self, error: ProxyError) -> None:
        """There will be no head."""
        try:
            self.exchange.verdict = judge(Seen(settle.stage_of(error)))
            if isinstance(error, UpstreamError) and not error.written:
                error = ConnectFailed(error.message)
            self.refuse(error)
        except Exception as exc:  # noqa: BLE001
            self.crash(exc)

    async def _refused(self, connection: Connection, head: ResponseHead) -> None:
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
            self._answer(connection, head)
            return
        exchange.verdict = verdict
        exchange.ended = Ended.COMPLETE
        settle.observe(daemon, exchange, daemon.clock.mono_ms(), daemon.clock.wall_ms())
        exchange.start = start
        exchange.bypassed = exchange.refusal.names_session
        exchange.replayed = True
        exchange.refusal = exchange.verdict = exchange.ended = exchange.signals = None
        exchange.status = exchange.head_ms = None
        self._let_go(connection)
        self.send()

    async def _suspected(self, connection: Connection, head: ResponseHead) -> None:
        """Look at an answer that is perhaps none of the gateway's."""
        await network.refuse_page(self.daemon, self.exchange, connection, head)
        self._answer(connection, head)

    # -- the answer ------------------------------------------------------------------------------------
    def _answer(self, connection: Connection, head: ResponseHead) -> None:
        """Pour the answer. After the first byte of it nothing but its own outcome leaves here."""
        daemon, exchange, client, asked = self.daemon, self.exchange, self.client, self.entry.head
        if exchange.signals is None:
            exchange.signals = signals.read_noted(head.notable, exchange.at)
        transport = client.transport
        if transport is None or transport.is_closing():
            exchange.ended = exchange.ended or Ended.CLIENT_GONE
            self.finish(keep=False)
            return
        exchange.head = head
        resolved = exchange.resolved
        wanted = resolved is not None and resolved.wants_answer
        exchange.tap = tap = tap_for(head, daemon.clock.mono_ms, wants_answer=wanted)
        feed: Sink | None = tap.feed if tap is not None else None
        if feed is not None and exchange.stream and daemon.paces(exchange.model):
            exchange.pace = Pace(daemon.clock.mono_ms)
            feed = exchange.pace.beside(feed)
        bare = not asked.modern and head.delimited
        keep = self._keeps(head)
        written = response_head(head, added_fields(daemon, exchange, self.entry.allowed), close=not keep, dechunk=bare)
        self.begun = True
        whole = connection.whole()
        if whole is not None:  # nothing is left to pour
            if feed is not None and whole:
                feed(whole)
            transport.write(written + whole)
            exchange.ended = Ended.COMPLETE
            exchange.bytes_out = len(whole)
            self.finish(keep=keep)
            return
        later = tap if exchange.pace is None else None
        pour = Pour(transport, connection, feed, self._poured, bare=bare, later=later)
        self._pour = client.pour = pour
        pour.start(written)
        if pour.ended is None:
            self.incoming.drop()

    def _keeps(self, head: ResponseHead) -> bool:
        """Can the client's connection be used again after this answer?"""
        return head.delimited and self.entry.head.keep_alive and not self.daemon.stopping and self.incoming.arrived

    def _poured(self) -> None:
        """The pour has ended, one way or the other."""
        pour, connection = self._pour, self._connection
        try:
            exchange = self.exchange
            if pour is None or connection is None or exchange.head is None or exchange.ended is not None:
                return
            exchange.ended = pour.ended
            if pour.ended is Ended.COMPLETE:
                self.finish(keep=self._keeps(exchange.head))
                return
            connection.abort()
            framed = exchange.head.delimited and self.entry.head.modern
            transport = self.client.transport
            if not framed and transport is not None:
                _ = self.daemon.spawn(cut(transport))
            self.finish(keep=False, close=framed)
        except Exception as exc:  # noqa: BLE001
            self.crash(exc)

    # -- the end ---------------------------------------------------------------------------------------
    def _timed_out(self, setting: str) -> None:
        """A limit that the user set has passed: before the head a 504, afterwards an abort."""
        if self._pour is not None:
            self._pour.stop(Ended.STOPPED)
        elif self._connection is not None:
            self._connection.fail(UpstreamTimedOut(f"The upstream was silent for longer than {setting}.", written=True))

    def _let_go(self, connection: Connection) -> None:
        """Give a connection back, or drop it where its exchange is not over."""
        self._connection = None
        if self._upload is not None:
            self._upload.stop()
            self._upload = None
        self.daemon.upstream.release(connection)

    def end(self) -> None:
        """Give the connection back, or drop it, and note what passed."""
        exchange, pour, connection = self.exchange, self._pour, self._connection
        if self._timers is not None:
            self._timers.stop()
            self._timers = None
        if pour is not None:
            self._pour = None
            if connection is not None:
                connection.catch_up()
            exchange.bytes_out = pour.bytes
        if connection is not None:
            if pour is not None and pour.ended is None:
                pour.ended = exchange.ended or Ended.STOPPED
                connection.abort()
            self._let_go(connection)
        exchange.bytes_in = self.incoming.size
        if exchange.verdict is None:
            exchange.verdict = settle.verdict_of(exchange, self.daemon.settings.upstream.session_header)
