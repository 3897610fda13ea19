"""Several ``ocpool serve`` processes on one state file, load, and sudden deaths; ``judged.py`` says what came of it."""

import asyncio
import random
import signal
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import orjson

from pool.clock import Clock
from pool.ids import new_id
from pool.model import Shape
from proxy.simulator.endpoints import Centred, Endpoint, Spread
from proxy.simulator.faults import Behaviour
from proxy.simulator.knobs import Knobs
from proxy.simulator.scenarios import Phase, Scenario
from proxy.simulator.server import Gateway
from tests.fakes.daemon import Daemon
from tests.fakes.judged import WHO

GO, ZEN = "/zen/go/v1", "/zen/v1"
MODELS = ((GO, "kimi-k3"), (GO, "glm-5.3"), (GO, "mimo-v2.5"), (ZEN, "kimi-k3"), (ZEN, "deepseek-v4-pro"))
KEYS = ("sk-fleet-first-key", "sk-fleet-other-key")

QUICK = Endpoint("quick", Centred(10, 30, 0.1), prefill_tps=1e6, tokens_per_s=1e4)
TURNING = Endpoint("turning", Spread((10, 12, 14, 16, 20, 25, 30, 400)), prefill_tps=1e6, tokens_per_s=1e4, bad=True)
TIRED = Endpoint("tired", Centred(10, 30, 0.1), prefill_tps=1e6, tokens_per_s=1e4, refuses=0.15)
CRAWLING = Endpoint("crawling", Centred(310, 500, 0.1), prefill_tps=1e6, tokens_per_s=1e4, bad=True)
CALM = Scenario("calm", "every id is fast", (Phase(((QUICK, 1.0),)),))
UNEASY = Scenario(
    "uneasy",
    "a sticky day on which ids turn slow, are refused, or were never fast",
    (Phase(((QUICK, 5.0), (TURNING, 3.0), (TIRED, 2.0), (CRAWLING, 1.0))),),
)
SETTINGS: dict[str, object] = {
    "probe__enabled": True,
    "probe__max_upstream_ms": 200,
    "probe__min_interval_ms": 20,
    "pool__size": 2,
    "pool__refill_delay_ms": 50,
    "pool__refresh_interval_ms": 1_000,
    "pool__max_probes_per_hour": 1_000,
    "quarantine__degrade_ms": 250,
    "quarantine__quarantine_ms": 300,
    "binding__max_count": 20_000,
    "listen__drain_ms": 500,
}


async def uneasy_gateway(scenario: Scenario = UNEASY, seed: int = 1) -> Gateway:
    """A gateway that answers in a few tokens; its caller stops it."""
    gateway = Gateway(scenario, seed, Clock(), knobs=Knobs(every=Behaviour(tokens=3, first_token_ms=1.0)))
    await gateway.start()
    return gateway


@dataclass
class Talk:
    """One conversation: what it is called, and how its client says so."""

    name: str
    path: str
    model: str
    key: str
    fields: dict[str, str]
    label: str | None = None  # ocpool's name for it, once an answer told

    @property
    def provider(self) -> str:
        return "opencode-go" if self.path.startswith(GO) or f"/{GO}" in self.path else "opencode"


def talks(chance: random.Random) -> Iterator[Talk]:
    """Conversations without end: by a client's id, by OpenCode's, by a name in the path, and one value of two callers."""
    while True:
        for kind in ("affinity", "opencode", "named", "shared"):
            name, (path, model) = f"talk-{uuid.UUID(int=chance.getrandbits(128))}", chance.choice(MODELS)
            key = chance.choice(KEYS)
            if kind == "affinity":
                yield Talk(name, path, model, key, {"x-session-affinity": f"client-{name}"})
            elif kind == "opencode":
                yield Talk(name, path, model, key, {"x-opencode-session": new_id(Shape.SES)})
            elif kind == "named":
                yield Talk(name, f"/s/{name}{path}", model, key, {})
            else:
                for number, each in enumerate(KEYS):
                    yield Talk(f"{name}-{number}", path, model, each, {"x-session-id": f"both-{name}"})


@dataclass
class Fleet:
    """The processes, and what was done to them."""

    folder: Path
    url: str
    size: int = 4
    settings: dict[str, object] = field(default_factory=dict)
    daemons: list[Daemon] = field(default_factory=list)
    kills: int = 0
    stops: int = 0
    commands: int = 0
    failed: int = 0  # requests that no process answered

    @property
    def state(self) -> Path:
        return self.folder / "shared" / "state.json"

    async def start(self) -> "Fleet":
        self.state.parent.mkdir(mode=0o700)
        self.daemons = [self._launch(number) for number in range(self.size)]
        await asyncio.gather(*(daemon.ready() for daemon in self.daemons))
        return self

    def _launch(self, number: int) -> Daemon:
        settings = {**SETTINGS, **self.settings, "state__path": self.state}
        return Daemon.launch(self.folder / f"process-{number}", "--upstream", self.url, **settings)

    async def restart(self, number: int, *, clean: bool = False, pause: float = 0.0) -> None:
        """End one process, by SIGKILL unless ``clean``, and start it anew."""
        daemon = self.daemons[number]
        if clean:
            self.stops += 1
            daemon.tell(signal.SIGTERM)
            assert await daemon.exit() == 0, daemon.log()[-2000:]
        else:
            self.kills += 1
            daemon.kill()
        await asyncio.sleep(pause)
        self.daemons[number] = fresh = self._launch(number)
        await fresh.ready()

    async def restart_all(self) -> None:
        """SIGKILL them all at once."""
        await asyncio.gather(*(self.restart(number) for number in range(self.size)))

    async def stop(self) -> None:
        for daemon in self.daemons:
            if daemon.process.poll() is None:
                daemon.tell(signal.SIGTERM)
        for daemon in self.daemons:
            await daemon.exit()

    async def turn(self, session: aiohttp.ClientSession, talk: Talk, number: int) -> str | None:
        """One turn at one process: its route, the status of a refusal, None when the process was not there to the end."""
        daemon = self.daemons[number]
        fields = {
            "authorization": f"Bearer {talk.key}",
            "user-agent": "fleet/1",
            WHO.decode(): talk.name,
            **talk.fields,
        }
        body = {"model": talk.model, "stream": True, "messages": [{"role": "user", "content": f"I am {talk.name}"}]}
        url = f"http://127.0.0.1:{daemon.port}{talk.path}/chat/completions"
        try:
            async with session.post(url, json=body, headers=fields) as answer:
                await answer.read()
                talk.label = answer.headers.get("x-ocpool-conversation", talk.label)
                return answer.headers.get("x-ocpool-route", "none") if answer.status == 200 else str(answer.status)
        except (aiohttp.ClientError, OSError):
            return None

    async def repin(self, session: aiohttp.ClientSession, talk: Talk, number: int) -> None:
        """Have one process leave the conversation's route."""
        if talk.label is None:
            return
        url = f"http://127.0.0.1:{self.daemons[number].port}/-/repin?conversation={talk.label}"
        try:
            async with session.post(url) as answer:
                self.commands += answer.status == 200
        except (aiohttp.ClientError, OSError):
            return

    def bound(self) -> dict[str, str]:
        """Binding key -> routed id, as the file says."""
        bindings = orjson.loads(self.state.read_bytes())["bindings"]
        return {key: raw["routedId"] for key, raw in bindings.items() if raw["source"] != "natural"}


@dataclass
class Load:
    """Clients that start conversations, go on with them at any process, and sometimes at two at once."""

    fleet: Fleet
    chance: random.Random
    every: float = 0.25  # seconds between two turns of one client
    begun: list[Talk] = field(default_factory=list)
    routes: Counter[str] = field(default_factory=Counter)

    async def client(self, session: aiohttp.ClientSession, source: Iterator[Talk]) -> None:
        chance, fleet = self.chance, self.fleet
        mine: list[Talk] = []
        while True:
            if not mine or (len(mine) < 40 and chance.random() < 0.3):
                mine.append(next(source))
                self.begun.append(mine[-1])
            talk = chance.choice(mine[-6:] if chance.random() < 0.8 else mine)
            first = chance.randrange(fleet.size)
            places = [first] if chance.random() < 0.75 else [first, (first + 1) % fleet.size]
            for route in await asyncio.gather(*(fleet.turn(session, talk, place) for place in places)):
                self.routes[route or "unanswered"] += 1
            await asyncio.sleep(self.every * chance.uniform(0.5, 1.5))

    async def operator(self, session: aiohttp.ClientSession, every: float) -> None:
        """Repins now and then, so that much is retired."""
        while True:
            await asyncio.sleep(every)
            if self.begun:
                await self.fleet.repin(
                    session, self.chance.choice(self.begun[-60:]), self.chance.randrange(self.fleet.size)
                )

    async def chaos(self, for_s: float, every: float, enough: Callable[[], bool]) -> None:
        """Kill, and sometimes stop, a process at random and start it again, two at a time if it comes to that.

        A busy machine does less in the same time, so it goes on until there was enough of it, for twice ``for_s`` at most.
        """
        loop = asyncio.get_running_loop()
        begun = loop.time()
        idle = set(range(self.fleet.size))

        async def once(number: int) -> None:
            clean = (self.fleet.kills + self.fleet.stops) % 4 == 3  # its spares go back for others to take
            await self.fleet.restart(number, clean=clean, pause=self.chance.uniform(0, 0.3))
            idle.add(number)

        async with asyncio.TaskGroup() as group:
            while (spent := loop.time() - begun) < for_s or (spent < 2 * for_s and not enough()):
                await asyncio.sleep(self.chance.uniform(0.3, 1.7) * every)
                if len(idle) > 2:
                    number = self.chance.choice(sorted(idle))
                    idle.discard(number)
                    group.create_task(once(number))
