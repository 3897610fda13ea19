"""The edge: who may come in, where it goes, and the one place where an error becomes a response."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from aiohttp import web

from proxy.daemon import Daemon
from proxy.errors import BadRequest, BadTarget, ClientGone, ProxyError, Stopping, UpgradeRefused
from proxy.exchange import Exchange
from proxy.forward import Forward
from proxy.gateway import paths
from proxy.guard import allow_origin
from proxy.incoming import Incoming, send_continue
from proxy.listener import CLOSED, KEPT, ClientConnection, error_answer
from proxy.wire.head import lower

Control = Callable[[web.BaseRequest, Any], Awaitable[web.StreamResponse]]

# What the edge reads from a request's head, in one pass.
_WATCHED = frozenset(
    (
        b"host",
        b"origin",
        b"sec-fetch-site",
        b"content-length",
        b"transfer-encoding",
        b"content-encoding",
        b"expect",
        b"upgrade",
        b"x-ocpool-token",
        b"access-control-request-method",
    )
)
_OPEN_PAGES = (b"/-/health", b"/-/ready")
_CORS_METHODS = b"GET, POST, OPTIONS"


class Edge:
    """Handles every request of the listener."""

    def __init__(self, daemon: Daemon, control: Control) -> None:
        self._daemon = daemon
        self._control = control
        self._forward = Forward(daemon)
        self._count = 0
        self.connections: set[ClientConnection] = set()  # those with a request, our own pages included
        self.relaying: set[ClientConnection] = set()
        self.quiet = asyncio.Event()  # nothing is being served

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Serve one request. Never raises but for a cancellation."""
        connection = cast("ClientConnection", request.protocol)
        self.connections.add(connection)
        self.quiet.clear()
        try:
            answer = await self._serve(request, connection)
        except ClientGone:
            return CLOSED
        except ProxyError as error:
            return self._refuse(request, error)
        except asyncio.CancelledError:
            raise
        except Exception as exc:  # noqa: BLE001  (whatever it is, the client must not hang and nothing may leak)
            self._daemon.trouble("request_failed", exc)
            return self._refuse(request, ProxyError("ocpool failed on this request; its log has the reason."))
        finally:
            connection.pour = None
            self.connections.discard(connection)
            if not self.connections:
                self.quiet.set()
        return CLOSED if self._daemon.stopping and answer is KEPT else answer

    async def _serve(self, request: web.BaseRequest, connection: ClientConnection) -> web.StreamResponse:
        daemon = self._daemon
        raw = request.raw_headers
        seen = {key: value for name, value in raw if (key := lower(name)) in _WATCHED}
        guard = daemon.guard
        guard.check_host(seen.get(b"host"))
        if b"origin" in seen or b"sec-fetch-site" in seen:
            guard.check_origin(seen)
        target = paths.resolve(
            request.raw_path.encode("utf-8", "surrogateescape"), daemon.default_path, daemon.base_path
        )
        if target.bad is not None or request.method == "CONNECT":
            raise BadTarget(f"This proxy takes paths only: {target.bad or 'CONNECT is not served'}.")
        if b"access-control-request-method" in seen and request.method == "OPTIONS" and guard.origins:
            return self._preflight(request, seen)
        token_scope: str | None = None
        if guard.tokens and not (target.own and target.upstream.partition(b"?")[0] in _OPEN_PAGES):
            sent = target.token.encode() if target.token is not None else seen.get(b"x-ocpool-token")
            token_scope = guard.check_token(sent)
        if b"websocket" in seen.get(b"upgrade", b"").lower():
            raise UpgradeRefused("WebSocket is not served here; use plain HTTP.")
        if target.own:
            return await self._control(request, daemon)
        if daemon.stopping:
            raise Stopping("ocpool is shutting down. Try again in a moment.")
        return await self._relay(request, connection, target, seen, token_scope)

    async def _relay(
        self,
        request: web.BaseRequest,
        connection: ClientConnection,
        target: paths.Target,
        seen: dict[bytes, bytes],
        token_scope: str | None,
    ) -> web.StreamResponse:
        daemon = self._daemon
        self._count += 1
        exchange = Exchange(
            self._count, daemon.clock.wall_ms(), daemon.clock.mono_ms(), request.method.encode("latin-1"), target
        )
        exchange.token_scope = token_scope
        chunked = b"transfer-encoding" in seen
        length = None
        if not chunked and b"content-length" in seen:
            length = _length(seen[b"content-length"])
        incoming = Incoming(request.content, daemon.buffers, length=length, chunked=chunked)
        if seen.get(b"expect", b"").lower() == b"100-continue" and request.version >= (1, 1) and not incoming.arrived:
            send_continue(connection.transport)
        origin = seen.get(b"origin")
        if origin is not None and daemon.guard.allowed_origin(origin):
            exchange.origin = origin
        self.relaying.add(connection)
        try:
            keep = await self._forward.run(request, connection, exchange, incoming, seen)
        finally:
            self.relaying.discard(connection)
            incoming.drop()
        return KEPT if keep else CLOSED

    def _preflight(self, request: web.BaseRequest, seen: dict[bytes, bytes]) -> web.StreamResponse:
        """Answer a preflight from one of ``listen.allowed_origins`` ourselves."""
        headers = request.headers.get("Access-Control-Request-Headers", "").encode("latin-1", "replace")
        answer = (
            b"HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: %b\r\nVary: Origin\r\n"
            b"Access-Control-Allow-Methods: %b\r\nAccess-Control-Allow-Headers: %b\r\n"
            b"Access-Control-Max-Age: 600\r\n\r\n"
        ) % (seen.get(b"origin", b""), _CORS_METHODS, headers)
        return self._write(request, answer, keep=True)

    def _refuse(self, request: web.BaseRequest, error: ProxyError) -> web.StreamResponse:
        """Turn an error into a response, or into a broken connection where one has begun."""
        transport = request.transport
        if request.writer.output_size:
            if transport is not None:
                transport.abort()
            return CLOSED
        self._daemon.refused(error)
        close = (
            self._daemon.stopping
            or not request.keep_alive
            or request.version < (1, 1)
            or not request.content.is_eof()
            or isinstance(error, BadRequest)
        )
        origin = request.headers.get("Origin", "").encode("latin-1", "replace")
        extra = allow_origin(origin if self._daemon.guard.allowed_origin(origin) else None)
        answer = error_answer(error, request.method.encode("latin-1"), extra, close=close)
        return self._write(request, answer, keep=not close)

    def _write(self, request: web.BaseRequest, answer: bytes, *, keep: bool) -> web.StreamResponse:
        transport = request.transport
        if transport is not None and not transport.is_closing():
            transport.write(answer)
            request.writer.output_size = 1
        return KEPT if keep else CLOSED


def _length(value: bytes) -> int:
    if not value.isdigit():
        raise BadRequest("Content-Length is no number.")
    return int(value)
