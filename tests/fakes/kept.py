"""One daemon on a state file of the test's own, before a gateway on which every id is fast; and what it says of its state."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from proxy.simulator.server import Gateway
from tests.fakes.client import Client, Reply, request
from tests.fakes.daemon import Daemon
from tests.fakes.fleet import CALM, SETTINGS, uneasy_gateway
from tests.fakes.upstream import END, ROUTED, SSE, Exchange, Upstream, chunk

KEY = b"sk-canary-0123456789"
TICK = b"data: {}\n\n"


class Kept(Daemon):
    """A daemon and its gateway; the state file is in a folder of its own."""

    gateway: Gateway
    state: Path

    async def ask(self, target: bytes, body: bytes = b"", fields=None, *, method: str = "POST", session=b"") -> Reply:
        """One request on a connection of its own."""
        async with await Client.open(self.host, self.port) as client:
            raw = request(target, body, fields, method=method.encode(), session=session)
            return await client.ask(raw, method)

    async def say(self, name: str, key: bytes = KEY) -> str:
        """One turn of a conversation; returns the id that it was sent on."""
        fields = [(b"Authorization", b"Bearer " + key), (b"User-Agent", b"state/1")]
        body = b'{"model":"kimi-k3","stream":true,"messages":[{"role":"user","content":"hi"}]}'
        reply = await self.ask(ROUTED, body, fields, session=name.encode())
        assert (reply.status, reply.complete) == (200, True), reply
        return str(next(record for record in reversed(self.gateway.log) if not record.probe).session)

    async def talks_on(self, count: int = 2) -> None:
        """Conversations are served, new ones and an old one."""
        for number in range(count):
            await self.say(f"talk-{number}-{time.perf_counter()}-of-state")
        assert await self.say("steady-conversation") == await self.say("steady-conversation")

    async def status(self) -> dict[str, Any]:
        """What ``/-/status`` says."""
        found: dict[str, Any] = json.loads((await self.ask(b"/-/status", method="GET")).data)
        return found

    def said(self, *words: str) -> list[dict[str, Any]]:
        """The log's lines about the state that have all of these words."""
        lines = [json.loads(line) for line in self.log().splitlines() if all(word in line for word in words)]
        return [line for line in lines if line.get("part") == "state"]

    def kept(self) -> dict[str, Any]:
        """The state file's document."""
        found: dict[str, Any] = json.loads(self.state.read_bytes())
        return found

    async def written(self, within: float = 10.0) -> dict[str, Any]:
        """The document once the file is there and holds a binding."""
        await until(lambda: self.state.is_file() and self.state.stat().st_size and self.kept().get("bindings"), within)
        return self.kept()

    async def troubled(self, *words: str) -> None:
        """Traffic goes on, exactly one line says what is wrong, and status shows it."""
        await self.talks_on()
        await until(lambda: self.said(*words))
        await asyncio.sleep(1.5)
        await self.talks_on()
        assert len(self.said(*words)) == 1, self.log()
        problems = (await self.status())["problems"]
        assert all(word in problems["state"] for word in words), problems


@contextlib.asynccontextmanager
async def house(
    folder: Path,
    *,
    gateway: Gateway | None = None,
    arguments: tuple[str, ...] = (),
    env: dict[str, str] | None = None,
    **settings: object,
) -> AsyncIterator[Kept]:
    """A daemon before a gateway, which is stopped after it; its state file is in ``folder / "kept"`` unless ``state__path`` says otherwise."""
    gateway = gateway or await uneasy_gateway(CALM)
    state = settings.pop("state__path", folder / "kept" / "state.json")
    more = {**SETTINGS, "state__path": state, **settings}
    daemon = Kept.launch(folder, "--upstream", gateway.url, *arguments, env=env, **more)
    assert isinstance(daemon, Kept)
    daemon.gateway, daemon.state = gateway, Path(str(state))
    try:
        await daemon.ready()
        yield daemon
    finally:
        await daemon.stop()
        await gateway.stop()


async def until(holds: Callable[[], object], within: float = 10.0) -> None:
    """Wait for something to become so."""
    deadline = time.perf_counter() + within
    while not holds():
        assert time.perf_counter() < deadline, "it did not happen"
        await asyncio.sleep(0.05)


async def ticking(exchange: Exchange, ticks: int, gap: float = 0.05) -> None:
    """An event stream that takes its time."""
    await exchange.read()
    await exchange.send(SSE)
    for _ in range(ticks):
        await exchange.send(chunk(TICK))
        await asyncio.sleep(gap)
    await exchange.send(END)


@contextlib.asynccontextmanager
async def relay(
    folder: Path, *arguments: str, env: dict[str, str] | None = None, **settings: object
) -> AsyncIterator[tuple[Daemon, Upstream]]:
    """A daemon before a scripted upstream."""
    upstream = await Upstream().start()
    daemon = Daemon.launch(folder, "--upstream", upstream.url, *arguments, env=env, **settings)
    try:
        await daemon.ready()
        yield daemon, upstream
    finally:
        await daemon.stop()
        await upstream.stop()


async def ask(daemon: Daemon, target: bytes, **parts: Any) -> Reply:
    """One request on a connection of its own."""
    async with await Client.open(daemon.host, daemon.port) as client:
        method = parts.get("method", b"POST").decode()
        return await client.ask(request(target, **parts), method)
