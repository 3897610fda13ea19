"""One request on its way: not routed, it streams through; routed, it is given its conversation's id.

This is the only file that knows the order of the steps. What decides lives in ``gateway``, ``conversation``, ``pool``
and ``verdict``; what moves bytes lives in ``wire``, ``incoming`` and ``pour``.
"""

import asyncio

from aiohttp import web

from pool.model import Source, Wish
from proxy import settle
from proxy.attempts import Attempts
from proxy.conversation import body, ids
from proxy.conversation.scopes import scope_of
from proxy.daemon import Daemon
from proxy.errors import ClientGone, ProxyError
from proxy.exchange import Exchange
from proxy.gateway import fields
from proxy.incoming import Incoming
from proxy.listener import ClientConnection
from proxy.wayout import unrouted
from proxy.wire.head import Field


class Forward:
    """Relays requests for one daemon."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    async def run(
        self,
        request: web.BaseRequest,
        client: ClientConnection,
        exchange: Exchange,
        incoming: Incoming,
        seen: dict[bytes, bytes],
    ) -> bool:
        """Relay one request to its end. Returns whether the client's connection can be used again.

        Raises:
            ProxyError: nothing has been written to the client; the edge answers.
        """
        daemon = self._daemon
        raw = list(request.raw_headers)
        exchange.routed = daemon.routed(exchange.target)
        attempts = Attempts(daemon, request, client, exchange, incoming)
        try:
            if exchange.routed:
                if not incoming.read_ready():
                    await incoming.read(daemon.max_body_bytes)
                try:
                    self._identify(exchange, incoming, raw, seen)
                    self._start(exchange, raw)
                except Exception as exc:  # noqa: BLE001  (no fault of ours in choosing an id may fail a request)
                    daemon.trouble("route_not_chosen", exc)
                    exchange.start = None
                    self._fill(exchange, raw)
                if exchange.start is not None and exchange.start.budget_ms > 0 and daemon.search is not None:
                    exchange.start = await daemon.search(exchange.start)
            else:
                incoming.read_ready()
                self._fill(exchange, raw)
            return await attempts.run(raw)
        except ClientGone:
            attempts.cancelled()
            raise
        except ProxyError as error:
            exchange.error = error
            raise
        except asyncio.CancelledError:
            attempts.cancelled()
            raise
        finally:
            attempts.finish()
            settle.settle(daemon, exchange)

    def _identify(self, exchange: Exchange, incoming: Incoming, raw: list[Field], seen: dict[bytes, bytes]) -> None:
        """Which conversation is this?"""
        daemon = self._daemon
        exchange.bytes_in = incoming.size
        encoded = seen.get(b"content-encoding", b"identity").strip().lower() != b"identity"
        if incoming.complete:
            exchange.facts = body.read(incoming.chunks, incoming.size, encoded, daemon.registry.prefixes)
        exchange.scope = scope_of(exchange.token_scope, raw, daemon.secret)
        reading = ids.read_ids(
            raw, exchange.target.named, exchange.facts, daemon.rules, exchange.target.upstream.decode("latin-1")
        )
        exchange.resolved = daemon.registry.resolve(
            reading, exchange.scope, exchange.target.provider, exchange.facts, exchange.at
        )
        exchange.match = exchange.resolved.match

    def _start(self, exchange: Exchange, raw: list[Field]) -> None:
        """The id it goes out on: local memory only, never a wait."""
        daemon = self._daemon
        resolved = exchange.resolved
        assert resolved is not None
        conversation = resolved.conversation
        model = exchange.model
        wish = Wish(
            conversation.label,
            exchange.scope,
            exchange.target.provider,
            model or "",
            conversation.shape,
            conversation.natural,
            turn=resolved.turn and model is not None and daemon.serves_model(model),
        )
        exchange.bypassed = not daemon.observing and daemon.way_out.bypasses(wish.provider, exchange.at)
        exchange.start = unrouted(wish, exchange.at) if exchange.bypassed else daemon.routes.start(wish, exchange.at)
        if resolved.side and not exchange.bypassed:
            existing = daemon.routes.route_of(conversation.label, exchange.target.provider, None)
            if existing is not None and existing != exchange.start.routed_id:
                exchange.start.routed_id = existing
                exchange.start.source = Source.SPARE
        if model is not None:
            daemon.targets.remember(exchange.target, model, raw, exchange.scope)

    def _fill(self, exchange: Exchange, raw: list[Field]) -> None:
        """What is not routed keeps its session fields; an inference POST without any is given a minted one."""
        daemon = self._daemon
        if not (daemon.fill_missing and exchange.target.inference and exchange.method == b"POST"):
            return
        if fields.has_session_field(raw):
            return
        exchange.scope = scope_of(exchange.token_scope, raw, daemon.secret)
        unnamed = daemon.registry.unnamed(exchange.scope, exchange.target.provider, exchange.at)
        raw.append((daemon.session_header, unnamed.natural.value.encode("latin-1")))
