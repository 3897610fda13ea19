"""Our own pages, everything under ``/-/``: served by aiohttp, one request a connection.

aiohttp takes as long to load as the rest, so it is loaded once the daemon accepts requests, or with the first page.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from proxy.client import ClientConnection
from proxy.daemon import Daemon
from proxy.errors import BadRequest, ProxyError
from proxy.relay import FAILED

Control = Callable[[web.BaseRequest, Any], Awaitable[web.StreamResponse]]


class PageConnection(web.RequestHandler):
    """aiohttp's connection, whose errors repeat nothing of what was sent."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002
        status: int = 500,
        exc: BaseException | None = None,  # noqa: ARG002
        message: str | None = None,  # noqa: ARG002  (it holds what the client sent, a credential perhaps)
    ) -> web.StreamResponse:
        """Answer what the parser refused, or what nobody caught, without repeating any of it."""
        error = ProxyError(FAILED) if status >= 500 else BadRequest("The request is not valid HTTP/1.1.")
        answer = _error(error)
        answer.force_close()
        self.close()
        return answer

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Ours to log; a traceback with request bytes in it is nothing for a log."""


class Pages:
    """Serves the pages on connections that are handed over."""

    def __init__(self, daemon: Daemon, control: Control) -> None:
        self._daemon = daemon
        self._control = control
        self._server = web.Server(self._handle, handler_cancellation=True, access_log=None)

    def take(self, client: ClientConnection, data: bytes) -> None:
        """Make a connection aiohttp's, from the request on whose first bytes are here."""
        transport = client.hand_over()
        if transport is None:
            return
        connection = PageConnection(self._server, loop=asyncio.get_running_loop())
        transport.set_protocol(connection)
        connection.connection_made(transport)
        connection.data_received(data)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            answer = await self._control(request, self._daemon)
        except Exception as exc:  # noqa: BLE001  (whatever it is, the client must not hang and nothing may leak)
            self._daemon.trouble("page_failed", exc)
            answer = _error(ProxyError(FAILED))
        if not answer.prepared:
            answer.force_close()  # the guard looks at the first request of a connection
        return answer

    def close(self) -> None:
        """End what is left."""
        for connection in list(self._server.connections):
            connection.force_close()


def _error(error: ProxyError) -> web.Response:
    return web.Response(status=error.status, body=error.body(), content_type="application/json")
