"""One request from its head to its end: gathered, given its id, sent, answered, settled.

Everything here runs in the callbacks that bring the bytes; only what has to wait (a new connection, a refusal to be
read, a budgeted search) is a task. Whatever fails on the way becomes a response in one place, or a broken connection
where one has begun.
"""

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from proxy import forward
from proxy.attempts import Attempts
from proxy.client import ClientConnection
from proxy.conversation.precedence import Kind
from proxy.entry import Entry
from proxy.errors import ProxyError
from proxy.pour import Ended
from proxy.recall import Recall

if TYPE_CHECKING:
    from proxy.edge import Edge

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

FAILED = "ocpool failed on this request; its log has the reason."


class Relay(Attempts):
    """Serves one request of one client connection."""

    __slots__ = ("_edge", "_gathering", "_over", "_task")

    def __init__(self, edge: "Edge", client: ClientConnection, entry: Entry, length: int | None, number: int) -> None:
        super().__init__(edge.daemon, client, entry, length, number)
        self._edge = edge
        self._gathering = False
        self._over = False
        self._task: asyncio.Task[None] | None = None

    # -- what the client connection calls -------------------------------------------------------------
    def begin(self, rest: bytes) -> None:
        """Take the request on, with what came of its body so far."""
        incoming, client = self.incoming, self.client
        try:
            if self.exchange.routed:
                incoming.gather(self.daemon.max_body_bytes, self.length)
                self._gathering = True
            client.body(incoming, rest)
            if not incoming.arrived and not incoming.size and self.entry.head.expects:
                client.write(_CONTINUE)
            self._go_when_ready()
        except ProxyError as error:
            self.refuse(error)
        except Exception as exc:  # noqa: BLE001  (whatever it is, the client must not hang and nothing may leak)
            self.crash(exc)

    def fed(self) -> None:
        """More of the body has come."""
        try:
            if self._gathering:
                self._go_when_ready()
            else:
                self.stream()
        except ProxyError as error:
            self.refuse(error)
        except Exception as exc:  # noqa: BLE001
            self.crash(exc)

    def gone(self) -> None:
        """The client left. An answer that was over already stays over."""
        exchange = self.exchange
        if exchange.ended is None:
            exchange.ended = Ended.STOPPED if self.daemon.aborting else Ended.CLIENT_GONE
        self.finish(keep=False)

    # -- the way ---------------------------------------------------------------------------------------
    def _go_when_ready(self) -> None:
        incoming = self.incoming
        if self._gathering and not incoming.arrived and incoming.kept:
            return
        self._gathering = False
        recall = self.daemon.recall
        if recall is not None and self.exchange.routed and self.entry.reading(None).kind is not Kind.OWNER:
            self.spawn(self._recall(recall))
        else:
            self._choose()

    async def _recall(self, recall: Recall) -> None:
        """Right after the start: wait until conversations of earlier runs can be recognised."""
        await recall.wait()
        self._choose()

    def _choose(self) -> None:
        incoming = self.incoming
        start = forward.prepare(self.daemon, self.exchange, self.entry, incoming)
        if start is not None and start.budget_ms > 0 and self.daemon.search is not None:
            self.spawn(self._search())
        else:
            self.send()

    async def _search(self) -> None:
        """Wait for a fast id as long as the configured budget allows."""
        exchange = self.exchange
        assert self.daemon.search is not None
        assert exchange.start is not None
        exchange.start = await self.daemon.search(exchange.start)
        self.send()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do what has to wait in a task of the daemon's; it ends with the request."""
        self._task = self.daemon.spawn(self._guarded(work))

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except ProxyError as error:
            self.refuse(error)
        except Exception as exc:  # noqa: BLE001
            self.crash(exc)

    # -- the end ---------------------------------------------------------------------------------------
    def crash(self, exc: Exception) -> None:
        """What should not have happened; the client must not hang, and nothing may leak."""
        self.daemon.trouble("request_failed", exc)
        self.refuse(ProxyError(FAILED))

    def refuse(self, error: ProxyError) -> None:
        """Answer with an error of ours, or break the connection where an answer has begun."""
        if self._over:
            return
        self.exchange.error = error
        if self.begun:
            self.client.abort()
            self.finish(keep=False)
            return
        keep = self.entry.head.keep_alive and self.incoming.arrived
        self.finish(keep=self._edge.refuse(self.client, error, self.entry, keep=keep))

    def finish(self, *, keep: bool, close: bool = True) -> None:
        """The request is over: everything is given back, and the client's connection goes on or ends.

        Without ``close`` somebody else ends it.
        """
        if self._over:
            return
        self._over = True
        task, self._task = self._task, None
        if task is not None and task is not asyncio.current_task():
            task.cancel()
        self.end()
        self.incoming.drop()
        self._edge.relayed(self, keep=keep, close=close)
