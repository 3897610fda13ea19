"""The attempts for one request: send, wait for the head, and either pour the answer or, once, try another id.

A request is sent a second time only after an explicit refusal that was gathered before any byte of it reached the
client. A connection that died after the request was written may have been billed, and is never replayed.
"""

import asyncio
from functools import partial
from typing import Any

from aiohttp import web

from pool.model import Natural, Start
from proxy import network, settle
from proxy.daemon import Daemon
from proxy.errors import ConnectFailed, ProxyError, UpstreamError, UpstreamTimedOut
from proxy.exchange import Exchange
from proxy.gateway import refusals, signals
from proxy.gateway.fields import rewrite
from proxy.guard import allow_origin
from proxy.incoming import Incoming
from proxy.listener import ClientConnection
from proxy.pour import Ended, Pour, cut
from proxy.tap import tap_for
from proxy.timers import Timers
from proxy.verdict import Seen, Stage, Verdict, judge
from proxy.wayout import unrouted
from proxy.wire.connection import Connection
from proxy.wire.head import Field, ResponseHead, request_head, response_head

# Statuses worth reading before they are relayed: the route may have said no where another would say yes.
_REFUSALS = frozenset({429, 503, 529})
_GATHER_MS = 80.0


class Attempts:
    """The upstream side of one exchange."""

    def __init__(
        self, daemon: Daemon, request: web.BaseRequest, client: ClientConnection, exchange: Exchange, incoming: Incoming
    ) -> None:
        self._daemon = daemon
        self._request = request
        self._client = client
        self._exchange = exchange
        self._incoming = incoming
        self._connection: Connection | None = None
        self._pour: Pour | None = None
        self._timers: Timers | None = None

    async def run(self, raw: list[Field]) -> bool:
        """Make the attempts and relay the answer. Returns whether the client's connection can be used again."""
        if self._incoming.at_once:
            return await self._attempt(raw)
        # The body is large, or still coming: it streams beside the wait for the answer, which may arrive first.
        keep = False
        async with asyncio.TaskGroup() as group:
            pump: asyncio.Task[None] | None = None

            def start_pump(connection: Connection) -> None:
                nonlocal pump
                if pump is not None:
                    pump.cancel()  # of an attempt that was refused
                pump = group.create_task(self._incoming.pump(connection), name="upload")

            error: ProxyError | None = None
            try:
                keep = await self._attempt(raw, start_pump)
            except ProxyError as exc:  # taken out by hand: a group would wrap it
                error = exc
            if pump is not None and not pump.done():
                pump.cancel()
                keep = keep and self._incoming.complete
        if error is not None:
            raise error
        return keep

    async def _attempt(self, raw: list[Field], start_pump: Any = None) -> bool:
        exchange = self._exchange
        while True:
            connection, head = await self._ask(raw, start_pump)
            if exchange.routed and self._refused(head) and await self._replaced(connection, head):
                continue
            return await self._relay(connection, head)

    async def _ask(self, raw: list[Field], start_pump: Any) -> tuple[Connection, ResponseHead]:
        """Send the request on one connection and wait for the head, without a deadline of our own."""
        daemon, exchange, incoming = self._daemon, self._exchange, self._incoming
        upstream = daemon.upstream
        fields = self._fields(raw)
        connection = upstream.take_idle()
        if connection is not None:
            daemon.metrics.count("upstream_connections_reused", origin=daemon.origin)
        else:
            connection = await self._connect()
        self._connection = connection
        exchange.attempts += 1
        exchange.sent_ms = daemon.clock.mono_ms()
        exchange.sent_at = daemon.clock.wall_ms()
        connection.send(
            exchange.method,
            request_head(
                exchange.method,
                exchange.target.upstream,
                upstream.origin.host_field,
                fields,
                chunked=incoming.chunked,
            ),
            incoming.framed() if start_pump is None else (),
            upload=start_pump is not None,
        )
        if start_pump is not None:
            start_pump(connection)
        if daemon.has_timers and self._timers is None:
            self._timers = Timers(daemon, self._timed_out, lambda: self._connection)
        try:
            head = await connection.head()
        except UpstreamError as exc:
            exchange.verdict = judge(Seen(settle.stage_of(exc)))
            if not exc.written:
                raise ConnectFailed(exc.message) from None
            raise
        exchange.head_ms = daemon.clock.mono_ms()
        exchange.status = head.status
        return connection, head

    async def _connect(self) -> Connection:
        daemon = self._daemon
        began = daemon.clock.mono_ms()
        try:
            connection = await daemon.upstream.acquire()
        except UpstreamError as exc:
            self._exchange.verdict = judge(Seen(settle.stage_of(exc)))
            raise
        daemon.metrics.count("upstream_connections_opened", origin=daemon.origin)
        daemon.metrics.observe("upstream_connect_seconds", daemon.clock.mono_ms() - began, origin=daemon.origin)
        return connection

    def _fields(self, raw: list[Field]) -> list[Field]:
        """The client's fields with the one session field that was decided."""
        daemon, exchange = self._daemon, self._exchange
        header, start = daemon.session_header, exchange.start
        own = partial(rewrite, session_header=header, session=None, parent=_nobody)
        exchange.rewrote = False
        if not exchange.routed or daemon.observing or start is None or exchange.bypassed:
            if exchange.routed and start is not None and not exchange.bypassed and daemon.lacks_session(raw):
                raw = [*raw, (header, start.wish.natural.value.encode("latin-1"))]
            return own(raw)
        fields = rewrite(raw, session_header=header, session=start.routed_id.encode("latin-1"), parent=self._parent)
        natural: Natural = start.wish.natural
        exchange.rewrote = natural.minted or start.routed_id != natural.value or fields != own(raw)
        return fields

    def _parent(self, value: bytes) -> bytes | None:
        """The routed id of the conversation that started this one, if it lives here."""
        daemon, exchange = self._daemon, self._exchange
        label = daemon.registry.parent_label(exchange.scope, value)
        if label is None:
            return None
        routed: str | None = daemon.routes.route_of(label, exchange.target.provider, None)
        return routed.encode("latin-1") if routed is not None else None

    def _refused(self, head: ResponseHead) -> bool:
        return head.status in _REFUSALS or (head.status == 400 and self._exchange.rewrote)

    async def _replaced(self, connection: Connection, head: ResponseHead) -> bool:
        """Read a refusal; True when another id has taken the refused one's place and the request goes again."""
        daemon, exchange, incoming = self._daemon, self._exchange, self._incoming
        body = await connection.gathered(daemon.clock.seconds(_GATHER_MS))
        exchange.signals = signals.read(head.fields, daemon.clock.wall_ms())
        exchange.refusal = refusals.read(
            head.status, head.fields, body, daemon.clock.wall_ms(), daemon.settings.upstream.session_header
        )
        verdict = judge(
            Seen(Stage.REFUSED, head.status, refusal=exchange.refusal, rewrote=exchange.rewrote, stream=exchange.stream)
        )
        replayable = (
            verdict.retryable
            and not exchange.replayed
            and not daemon.observing
            and daemon.max_replays > 0
            and incoming.complete
            and incoming.size <= daemon.replay_max_bytes
        )
        start = self._another(verdict) if replayable else None
        if start is None:
            return False
        exchange.verdict = verdict
        exchange.ended = Ended.COMPLETE
        settle.observe(daemon, exchange)
        exchange.start = start
        exchange.bypassed = exchange.refusal.names_session
        exchange.replayed = True
        exchange.refusal = exchange.verdict = exchange.ended = exchange.signals = None
        exchange.status = exchange.head_ms = None
        self._connection = None
        daemon.upstream.release(connection)
        return True

    def _another(self, verdict: Verdict) -> Start | None:
        """What the request goes out on once more: another id, or what its client itself sent."""
        exchange, now = self._exchange, self._daemon.clock.wall_ms()
        if exchange.start is None:
            return None
        if verdict.retires:
            return self._daemon.routes.replace(exchange.start, now)
        names = exchange.refusal is not None and exchange.refusal.names_session
        return unrouted(exchange.start.wish, now) if names else None

    async def _relay(self, connection: Connection, head: ResponseHead) -> bool:
        """Pour the answer. After the first byte of it nothing but its own outcome leaves here."""
        daemon, exchange, request = self._daemon, self._exchange, self._request
        if exchange.signals is None:
            exchange.signals = signals.read(head.fields, exchange.at)
        exchange.head = head
        exchange.tap = tap_for(head, daemon.clock.mono_ms)
        if exchange.tap is None or head.status == 511:  # neither JSON nor events: is it the gateway's at all?
            await network.refuse_page(daemon, exchange, connection, head)
        transport = request.transport
        if transport is None or transport.is_closing():
            exchange.ended = Ended.CLIENT_GONE
            return False
        bare = request.version < (1, 1) and head.framing.delimited
        framed = head.framing.delimited and request.version >= (1, 1)
        keep = framed and request.keep_alive and not daemon.stopping and self._incoming.arrived
        pour = Pour(transport, connection, exchange.tap.feed if exchange.tap is not None else None, bare=bare)
        self._pour = self._client.pour = pour
        extra = self._extra()
        request.writer.output_size = 1
        pour.start(response_head(head, extra, close=not keep, dechunk=bare))
        self._incoming.drop()
        ended = await pour.wait()
        self._client.pour = None
        exchange.ended = ended
        if ended is not Ended.COMPLETE:
            connection.abort()
            await cut(transport, framed=framed)
            return False
        return keep

    def _extra(self) -> tuple[Field, ...]:
        """The fields that ocpool adds to an answer, and no others."""
        daemon, exchange = self._daemon, self._exchange
        allowed = allow_origin(exchange.origin)
        if not daemon.expose or exchange.start is None or exchange.resolved is None:
            return allowed
        return (
            *allowed,
            (b"x-ocpool-conversation", exchange.resolved.conversation.label.encode()),
            (b"x-ocpool-match", (exchange.match or "").encode("latin-1", "replace")),
            (b"x-ocpool-route", exchange.start.source.value.encode()),
        )

    def _timed_out(self, setting: str) -> None:
        """A limit that the user set has passed: before the head a 504, afterwards an abort."""
        if self._pour is not None:
            self._pour.stop(Ended.STOPPED)
        elif self._connection is not None:
            self._connection.fail(UpstreamTimedOut(f"The upstream was silent for longer than {setting}.", written=True))

    def cancelled(self) -> None:
        """The client left, or the daemon's grace ended. An answer that was over already stays over."""
        exchange, pour = self._exchange, self._pour
        if pour is not None and pour.ended is not None:
            exchange.ended = pour.ended
        else:
            exchange.ended = Ended.STOPPED if self._daemon.aborting else Ended.CLIENT_GONE

    def finish(self) -> None:
        """Give the connection back, or drop it, and note what passed."""
        exchange = self._exchange
        if self._timers is not None:
            self._timers.stop()
        if self._pour is not None:
            exchange.bytes_out = self._pour.bytes
        connection, self._connection = self._connection, None
        if connection is not None:
            if self._pour is not None and self._pour.ended is None:
                connection.abort()
            self._daemon.upstream.release(connection)
        exchange.bytes_in = self._incoming.size
        if exchange.verdict is None:
            exchange.verdict = settle.verdict_of(exchange, self._daemon.settings.upstream.session_header)


def _nobody(_value: bytes) -> bytes | None:
    return None
