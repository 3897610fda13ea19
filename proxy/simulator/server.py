"""The gateway on sockets: aiohttp reads requests, and replies are written as the exact bytes that were decided."""

import asyncio
import hashlib
import ssl as tls
from collections.abc import Callable

from aiohttp import web

from proxy.simulator.faults import Behaviour, Behaviours, Match
from proxy.simulator.knobs import Clock, Knobs
from proxy.simulator.limits import LIMITS, Window
from proxy.simulator.record import Record
from proxy.simulator.scenarios import Scenario
from proxy.simulator.sending import Sending, read_body
from proxy.simulator.service import Served, Service
from proxy.simulator.world import World


class Gateway:
    """A double of the gateway, on a port of its own.

    Attributes:
        log: One record for each request, in order of arrival; filled as it goes on.
        knobs: May be replaced at any time.
        world: What decides.
        port, url: Where it listens, once started.
    """

    def __init__(
        self,
        scenario: str | Scenario,
        seed: int,
        clock: Clock,
        *,
        knobs: Knobs | None = None,
        on_end: Callable[[Record], None] | None = None,
        keep: int | None = None,
    ) -> None:
        """Nothing runs before `start`.

        Args:
            scenario: A name of `proxy.simulator.scenarios.SCENARIOS`, or one made by hand. ValueError if unknown.
            seed: Which world; the same seed makes the same.
            clock: Simulated time: both latencies and instants are its milliseconds.
            knobs: What is chosen beyond the scenario.
            on_end: Called with each record when nothing more happens to it.
            keep: How many records the log keeps, oldest dropped first; None: all.
        """
        self.log: list[Record] = []
        self.clock = clock
        self.world = World.of(scenario, seed)
        self.url = ""
        self.port = 0
        self._service = Service(self.world, knobs or Knobs())
        self._behaviours = Behaviours()
        self._on_end = on_end
        self._keep = keep
        self._asked = 0
        self._stopping = False
        self._http: web.Server | None = None
        self._server: asyncio.Server | None = None

    @property
    def knobs(self) -> Knobs:
        return self._service.knobs

    @knobs.setter
    def knobs(self, knobs: Knobs) -> None:
        self._service.knobs = knobs

    async def start(self, host: str = "127.0.0.1", port: int = 0, ssl: tls.SSLContext | None = None) -> int:
        """Listen; the world begins now. Returns the port; OSError when it is taken."""
        self._http = web.Server(
            self._handle,
            handler_cancellation=True,
            auto_decompress=False,
            access_log=None,
            keepalive_timeout=75.0,
            max_line_size=70_000,
            max_field_size=70_000,
            max_headers=600,
            read_bufsize=262_144,
        )
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._http, host, port, ssl=ssl, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        self.url = f"{'https' if ssl else 'http'}://{shown}:{self.port}"
        self.world.epoch_ms = float(self.clock.wall_ms())
        self._stopping = False
        return self.port

    async def stop(self) -> None:
        """Close every connection at once."""
        self._stopping = True
        if self._server is None or self._http is None:
            return
        self._server.close()
        for connection in self._http.connections:
            if connection.transport is not None:
                connection.transport.abort()
        await self._http.shutdown(0.1)
        await self._server.wait_closed()
        self._server = self._http = None

    def script(self, match: Match | None, behaviour: Behaviour, *, times: int = 1) -> None:
        """The next ``times`` requests (-1: all) for which ``match(record)`` holds (None: any) get this behaviour.

        The oldest script that matches wins. A record's request part is filled when it is asked. A refusal
        takes the place of the limits; what is checked before them comes first.
        """
        self._behaviours.add(match or (lambda _: True), behaviour, times)

    def limit(self, name: str, for_ms: float, *, model: str | None = None, retry_after_s: int | None = None) -> None:
        """From now on every request (of ``model``) is refused with an entry of `LIMITS`, whatever its session."""
        if name not in LIMITS:
            raise ValueError(f"no limit {name!r}; there are {', '.join(LIMITS)}")
        self._open(Window(name, self._now(), for_ms, model=model, retry_after=retry_after_s))

    def overload(
        self,
        for_ms: float,
        *,
        endpoint: str | None = None,
        status: int = 529,
        retry_after_s: int | None = None,
    ) -> None:
        """From now on one endpoint refuses as overloaded, or all do: then the whole gateway is at fault."""
        window = Window("overloaded", self._now(), for_ms, endpoint=endpoint, status=status, retry_after=retry_after_s)
        self._open(window)

    def calm(self) -> None:
        """End every limit and overload that was opened by hand."""
        self.world.windows.clear()

    def _open(self, window: Window) -> None:
        self.world.windows.append(window)

    def _now(self) -> float:
        return self.clock.wall_ms() - self.world.epoch_ms

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        began = self.clock.mono_ms()
        record = Record(
            number=self._asked,
            at=self.clock.wall_ms(),
            method=request.method,
            path=request.raw_path,
            fields=tuple(request.raw_headers),
            user_agent=request.headers.get("User-Agent", ""),
        )
        self._asked += 1
        self.log.append(record)
        if self._keep is not None:
            del self.log[: -self._keep]
        try:
            return await self._exchange(request, record, began)
        except (asyncio.CancelledError, ConnectionError):
            record.aborted = not self._stopping
            raise
        finally:
            record.ended_ms = self.clock.mono_ms() - began
            record.ended = True
            if self._on_end is not None:
                self._on_end(record)

    async def _exchange(self, request: web.BaseRequest, record: Record, arrived_ms: float) -> web.StreamResponse:
        body = await read_body(request)
        record.body_sha256 = hashlib.sha256(body).hexdigest()
        record.body = body if self.knobs.keep_bodies else b""
        asked = self._service.read(record, body)
        behaviour = self._behaviours.take(record) or self.knobs.every
        began_ms = arrived_ms
        if behaviour.hold is not None:
            await behaviour.hold.wait()
            began_ms = self.clock.mono_ms()
        served = self._service.serve(record, asked, behaviour, float(record.at), http10=request.version < (1, 1))
        sending = Sending(request, record, self.clock, arrived_ms)
        await self._send(sending, record, served, began_ms)
        return await sending.end(served.script.ending)

    async def _send(self, sending: Sending, record: Record, served: Served, began_ms: float) -> None:
        place = 0
        while place < len(served.script.writes):
            place = await sending.write(served.script, began_ms, place)
            if record.ttfb_ms is not None and served.ask is not None and served.plan is not None:
                self.world.served(served.ask, served.plan, float(self.clock.wall_ms()))
                served.ask = None
