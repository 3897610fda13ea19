"""A client connection as soon as it is made."""

import asyncio
import socket
from types import SimpleNamespace
from typing import Any, cast

import pytest
import uvloop

from proxy.client import ClientConnection
from proxy.sockets import bind


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_nothing_that_is_written_waits_for_what_follows(factory):
    """Nagle's algorithm is off on what our own listening sockets accept: an event would come 40 ms late."""

    async def options() -> tuple[int, int]:
        made: asyncio.Future[ClientConnection] = asyncio.get_running_loop().create_future()
        edge = cast("Any", SimpleNamespace(clients=set(), ticks=0))

        class Watched(ClientConnection):
            __slots__ = ()

            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                super().connection_made(transport)
                made.set_result(self)

        [sock, *others] = bind("127.0.0.1", 0)
        for other in others:
            other.close()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Watched(edge, loop), sock=sock)
        _, writer = await asyncio.open_connection(*sock.getsockname()[:2])
        client = await made
        assert client.transport is not None
        its = client.transport.get_extra_info("socket")
        found = (
            its.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY),
            its.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
        )
        writer.close()
        client.close()
        server.close()
        return found

    with asyncio.Runner(loop_factory=factory) as runner:
        assert all(runner.run(options()))
