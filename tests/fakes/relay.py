"""What an end-to-end test talks to: a client's way through ocpool to a scripted upstream, on any event loop, plain or TLS."""

import asyncio
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.fakes.client import Client, Reply, request
from tests.fakes.daemon import Daemon
from tests.fakes.tls import Authority
from tests.fakes.upstream import Case, Script, Upstream, play

DIRECT = (
    os.environ.get("OCPOOL_TEST_DIRECT") == "1"
)  # the client talks to the upstream: are the tests themselves right?

ALL = [("uvloop", "http"), ("uvloop", "https"), ("asyncio", "http"), ("asyncio", "https")]
CROSSED = [("uvloop", "https"), ("asyncio", "http")]
if DIRECT:
    ALL = CROSSED


@dataclass
class Relay:
    """One daemon in front of one upstream."""

    loop: str
    authority: Authority
    upstream: Upstream
    _daemon: Daemon | None = None
    clients: list[Client] = field(default_factory=list)

    @property
    def daemon(self) -> Daemon:
        if self._daemon is None:
            pytest.skip("there is no daemon when the client talks to the upstream itself")
        return self._daemon

    def case(self, *script: Script | bytes | float | str, read: bool = True) -> Case:
        """A case by a script, or by the parts of one (see ``play``)."""
        if len(script) == 1 and callable(script[0]):
            return self.upstream.case(script[0])
        return self.upstream.case(play(*script, read=read))  # type: ignore[arg-type]

    async def connect(self, *, small: bool = False) -> Client:
        if self._daemon is None:
            tls = self.authority.client() if self.upstream.tls else None
            client = await Client.open("127.0.0.1", self.upstream.port, tls, small=small)
        else:
            client = await Client.open(self._daemon.host, self._daemon.port, small=small)
        self.clients.append(client)
        return client

    async def hang_up(self) -> None:
        """Close what a test left open, so that its failure stays its own."""
        for client in self.clients:
            if client.wire.lost_at is None:
                client.wire.cut()
        self.clients.clear()
        await asyncio.sleep(0)

    async def ask(self, target: bytes, method: str = "POST", within: float = 20.0, **parts: object) -> Reply:
        """One request on a connection of its own."""
        async with await self.connect() as client:
            raw = request(target, method=method.encode(), **parts)  # type: ignore[arg-type]
            return await client.ask(raw, method, within)

    def needs_daemon(self) -> None:
        """Skip where the client talks to the upstream itself."""
        assert self.daemon


@dataclass
class Relays:
    """The shared daemons of a test run, made when first needed, and private ones."""

    folder: Path
    authority: Authority
    shared: dict[tuple[str, str], Relay] = field(default_factory=dict)
    private: list[Relay] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    async def get(self, loop: str, scheme: str) -> Relay:
        if (loop, scheme) not in self.shared:
            relay = await self._make(self.folder / f"{loop}-{scheme}", loop, scheme)
            self.shared[loop, scheme] = relay
        relay = self.shared[loop, scheme]
        if relay._daemon is not None and relay._daemon.process.poll() is not None:
            del self.shared[loop, scheme]
            raise AssertionError(f"the shared daemon died: {relay._daemon.log()[-3000:]}")
        return relay

    async def make(self, loop: str = "asyncio", scheme: str = "http", **settings: object) -> Relay:
        """A daemon of the test's own, with its own settings; ``upstream`` may be given."""
        folder = self.folder / f"private-{next(self.numbers)}"
        relay = await self._make(folder, loop, scheme, **settings)
        self.private.append(relay)
        return relay

    async def _make(
        self,
        folder: Path,
        loop: str,
        scheme: str,
        *arguments: str,
        env: dict[str, str] | None = None,
        upstream: Upstream | None = None,
        **settings: object,
    ) -> Relay:
        if upstream is None:
            upstream = await Upstream(self.authority.server() if scheme == "https" else None).start()
        if DIRECT:
            return Relay(loop, self.authority, upstream)
        if scheme == "https":
            settings.setdefault("upstream__ca_file", self.authority.file)
        try:
            daemon = await Daemon.start(
                folder, "--upstream", upstream.url, *arguments, env=env, listen__loop=loop, **settings
            )
        except BaseException:
            await upstream.stop()
            raise
        return Relay(loop, self.authority, upstream, daemon)

    async def stop_private(self) -> None:
        for relay in self.private:
            await self._stop(relay)
        self.private.clear()

    async def stop(self) -> None:
        await self.stop_private()
        for relay in self.shared.values():
            await self._stop(relay)

    async def _stop(self, relay: Relay) -> None:
        await relay.hang_up()
        if relay._daemon is not None:
            await relay._daemon.stop()
        await relay.upstream.stop()
