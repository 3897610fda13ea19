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
from proxy.exchange import Exchange
from proxy.incoming import Incoming
from proxy.pour import Ended
from proxy.recall import Recall

if TYPE_CHECKING:
    from proxy.edge import Edge

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

FAILED = "ocpool failed on this request; its log has the reason."


class Relay(Attempts):
    """Serves one request of one client connection."""

    __slots__ = ("_gathering",)

    def __init__(self, edge: "Edge", client: ClientConnection, entry: Entry, incoming: Incoming, number: int) -> None:
        daemon, head = edge.daemon, entry.head
        clock = daemon.clock
        self.edge = edge
        self.daemon = daemon
        self.client = client
        self.entry = entry
        self.incoming = incoming
        self.exchange = Exchange(number, clock.wall_ms(), clock.mono_ms(), head.method, entry.target, entry.scope)
        self._gathering = entry.routed
        self.pour = self._connection = self._upload = self._timers = self._task = None

    # -- what the client connection calls -------------------------------------------------------------
    def begin(self, rest: bytes) -> None:
        """Take the request on, with what came of its body so far."""
        incoming = self.incoming
        try:
            if self._gathering:
                incoming.gather(self.daemon.max_body_bytes)
            if not incoming.arrived:
                self.client.body(incoming, rest)
                if self.client.incoming is not None and not incoming.size and self.entry.head.expects:
                    self.client.write(_CONTINUE)
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
        if not self._gathering:
            self.send()
            return
        incoming = self.incoming
        if not incoming.arrived and incoming.kept:
            return
        self._gathering = False
        recall = self.daemon.recall
        if recall is not None and (self.entry.reading or self.entry.read(None)).kind is not Kind.OWNER:
            self.spawn(self._recall(recall))
        else:
            self._choose()

    async def _recall(self, recall: Recall) -> None:
        """Right after the start: wait until conversations of earlier runs can be recognised."""
        await recall.wait()
        self._choose()

    def _choose(self) -> None:
        start = forward.choose(self.daemon, self.exchange, self.entry, self.incoming)
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

    def stop_waiting(self) -> None:
        """End what runs beside the wait for the answer."""
        task, self._task = self._task, None
        if task is not None and task is not asyncio.current_task():
            task.cancel()
        if self._timers is not None:
            self._timers.stop()
            self._timers = None
        if self._upload is not None:
            self._upload.stop()
            self._upload = None

    # -- the end ---------------------------------------------------------------------------------------
    def crash(self, exc: Exception) -> None:
        """What should not have happened; the client must not hang, and nothing may leak."""
        self.daemon.trouble("request_failed", exc)
        self.refuse(ProxyError(FAILED))

    def refuse(self, error: ProxyError) -> None:
        """Answer with an error of ours, or break the connection where an answer has begun."""
        if self.client.relay is not self:
            return
        self.exchange.error = error
        if self.pour is not None:
            self.client.abort()
            self.finish(keep=False)
            return
        keep = self.entry.head.keep_alive and self.incoming.arrived
        self.finish(keep=self.edge.refuse(self.client, error, self.entry, keep=keep))
