"""ocpool before a simulated gateway, in this process, on one clock: what happened can be read from both."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from pool.clock import Clock
from pool.model import Start
from proxy.cli import stage
from proxy.daemon import Daemon
from proxy.serve import Service
from proxy.simulator.endpoints import NATIVE_1, NATIVE_2
from proxy.simulator.record import Record
from proxy.simulator.scenarios import Phase, Scenario
from proxy.simulator.server import Gateway

GO = "/zen/go/v1"
GOOD = Scenario("good", "every route is fast until a test says otherwise", (Phase(((NATIVE_1, 1.0), (NATIVE_2, 1.0))),))


@dataclass
class House:
    """One running proxy and the gateway behind it.

    ``searches`` counts the requests that were asked to wait for a probe; at default settings none is.
    """

    gateway: Gateway
    service: Service
    clock: Clock
    searches: int = 0

    @property
    def daemon(self) -> Daemon:
        assert self.service.daemon is not None
        return self.service.daemon

    @property
    def place(self) -> stage.Place:
        return stage.place_of(self.service)

    @property
    def url(self) -> str:
        return self.place.url

    @property
    def live(self) -> list[Record]:
        """What the gateway was asked by clients."""
        return [record for record in self.gateway.log if not record.probe]

    @property
    def probes(self) -> list[Record]:
        """What it was asked by ocpool itself."""
        return [record for record in self.gateway.log if record.probe]

    @property
    def verified(self) -> set[str]:
        """The ids that a probe found fast, as the gateway saw it."""
        return {r.session or "" for r in self.probes if r.status == 200 and r.upstream_ms and r.upstream_ms <= 2500}

    def spares(self) -> set[str]:
        """The verified ids that are ready."""
        return {spare.id for spare in self.daemon.routes.parts.inventory.all()}

    def decisions(self, name: str) -> list[dict[str, Any]]:
        """The events of one name so far."""
        return [noted.line(self.daemon.redactor) for noted in self.daemon.events.recent if noted.event == name]

    def _refilling(self) -> bool:
        cycles = self.daemon.routes.parts.refill.view(self.clock.wall_ms())
        return any(cycle.running for cycle in cycles.values())

    async def status(self) -> dict[str, Any]:
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}/-/status") as answer:
            found: dict[str, Any] = await answer.json()
            return found

    async def until(self, holds: Callable[[], bool], within: float = 15.0) -> None:
        """Wait at most ``within`` real seconds for something to become so."""
        deadline = time.perf_counter() + within
        while not holds():
            assert time.perf_counter() < deadline, (self.decisions("probe")[-5:], self.daemon.problems)
            await asyncio.sleep(0.01)

    def count_searches(self) -> None:
        search = self.daemon.search
        assert search is not None

        async def counted(start: Start) -> Start:
            self.searches += 1
            return await search(start)

        self.daemon.search = counted

    async def stocked(self) -> None:
        """Wait for the pool to be full and at rest; where half of the probes are slow that may take some cycles."""
        await self.until(lambda: len(self.spares()) == self.daemon.settings.pool.size and not self._refilling(), 60)


@asynccontextmanager
async def house(gateway: Gateway, folder: Path, *settings: str) -> AsyncIterator[House]:
    """ocpool before this gateway, on its clock; a second one on the same folder finds the first one's state.

    It is not ``pool.adaptive`` unless the test says so: most are about what the pool does, not about what it has
    learned so far.
    """
    clock = gateway.clock
    if not any(one.startswith("pool.adaptive=") for one in settings):
        settings = ("pool.adaptive=false", *settings)
    assert isinstance(clock, Clock)
    async with stage.proxy(gateway.url, folder, clock, settings) as service:
        made = House(gateway, service, clock)
        made.count_searches()
        yield made


@asynccontextmanager
async def street(
    folder: Path, scenario: str | Scenario = GOOD, *, seed: int = 1, scale: float = 60.0, settings: Iterable[str] = ()
) -> AsyncIterator[House]:
    """A gateway and ocpool before it."""
    async with stage.gateway(scenario, seed, Clock(scale)) as gateway, house(gateway, folder, *settings) as made:
        yield made
