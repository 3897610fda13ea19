"""The connections to one upstream: the idle ones kept as a stack, any number open at once."""

import asyncio
from pathlib import Path
from typing import NamedTuple

from pool.clock import Clock
from proxy.wire.connection import Connection
from proxy.wire.dial import Origin, dial
from proxy.wire.head import Field, Noting, request_head
from proxy.wire.tls import client_context


class Reply(NamedTuple):
    """A whole small answer."""

    status: int
    fields: list[Field]
    body: bytes


class Upstream:
    """One origin. Nothing but ``upstream.base_url`` is ever contacted through it, and no redirect is followed.

    ``asked`` are the fields of an answer that its head notes, in lower case.
    """

    def __init__(
        self,
        base_url: str,
        *,
        clock: Clock,
        connect_timeout_ms: float = 10_000,
        keepalive_ms: float = 15_000,
        ca_file: Path | None = None,
        proxy: str | None = None,
        asked: frozenset[bytes] = frozenset(),
    ) -> None:
        self._noted = Noting(asked)
        self.origin = Origin(base_url)
        self._clock = clock
        self._connect_timeout_ms = connect_timeout_ms
        self._keepalive_ms = keepalive_ms
        self._proxy = proxy
        self._context = client_context(ca_file) if self.origin.tls else None
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()

    @property
    def open(self) -> int:
        """Connections that exist."""
        return len(self._open)

    @property
    def idle(self) -> int:
        """Connections that wait for a request."""
        return len(self._idle)

    def take_idle(self, now_ms: float) -> Connection | None:
        """The idle connection used last, if it is young enough at this monotonic instant and not closed by its peer."""
        oldest = now_ms - self._keepalive_ms
        while self._idle:
            connection = self._idle.pop()
            if connection.idle_since >= oldest and connection.alive():
                return connection
            self._drop(connection)
        return None

    async def acquire(self) -> Connection:
        """An idle connection or a new one. Raises UpstreamError when none can be made."""
        connection = self.take_idle(self._clock.mono_ms())
        if connection is not None:
            return connection
        loop = asyncio.get_running_loop()
        connection = await dial(
            self.origin,
            lambda: Connection(loop, self._lost, self._noted),
            self._context,
            self._proxy,
            self._connect_timeout_ms / 1000.0,
        )
        self._open.add(connection)
        return connection

    def release(self, connection: Connection) -> None:
        """Give a connection back after its exchange: kept if it ended cleanly, dropped at once otherwise."""
        if connection.reusable and self._keepalive_ms > 0:
            connection.rest(self._clock.mono_ms())
            self._idle.append(connection)
        else:
            self._drop(connection)

    def expire(self) -> None:
        """Close the idle connections that are too old to be taken again."""
        oldest = self._clock.mono_ms() - self._keepalive_ms
        stale = [connection for connection in self._idle if connection.idle_since < oldest]
        for connection in stale:
            self._idle.remove(connection)
            self._drop(connection)

    def drop_idle(self) -> None:
        """Forget every idle connection, as after a suspend or a change of addresses."""
        idle, self._idle = self._idle, []
        for connection in idle:
            self._drop(connection)

    def close(self) -> None:
        """Abort everything."""
        self._idle.clear()
        for connection in list(self._open):
            self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        self._open.discard(connection)
        connection.abort()

    def _lost(self, connection: Connection) -> None:
        """An idle connection ended by itself."""
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    async def fetch(self, method: bytes, target: bytes, fields: list[Field], body: bytes, limit: int = 65_536) -> Reply:
        """One small exchange of our own, answer read whole.

        Raises:
            UpstreamError: ``written`` says whether any byte of the request left.
        """
        connection = await self.acquire()
        try:
            head = request_head(method, target, self.origin.host_field, fields, chunked=False)
            connection.send(method, head, (body,) if body else ())
            answer = await connection.head()
            return Reply(answer.status, answer.fields, await connection.read_all(limit))
        finally:
            self.release(connection)
