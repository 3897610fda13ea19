"""The simulated gateway and ocpool in one process: real sockets, free ports, one clock, nothing of the user's.

ocpool runs as it would anywhere, at its default settings but for the few that put it here; `changed` lists those.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from config.load import Loaded, load
from config.settings import Settings
from config.view import values
from pool.clock import Clock
from proxy.control.routes import control
from proxy.serve import Service
from proxy.simulator.scenarios import Scenario
from proxy.simulator.server import Gateway
from proxy.sockets import bind

LOOPBACK = "127.0.0.1"


class Place(NamedTuple):
    """Where a server listens."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """Its base URL, without a path."""
        return f"http://{self.host}:{self.port}"


class Change(NamedTuple):
    """A setting that is not at its default."""

    key: str
    default: Any
    value: Any


@asynccontextmanager
async def gateway(scenario: str | Scenario, seed: int, clock: Clock) -> AsyncIterator[Gateway]:
    """A simulated gateway on a free port until the block ends."""
    started = Gateway(scenario, seed, clock)
    await started.start(LOOPBACK)
    try:
        yield started
    finally:
        await started.stop()


@asynccontextmanager
async def proxy(upstream: str, folder: Path, clock: Clock, settings: Iterable[str] = ()) -> AsyncIterator[Service]:
    """The product on a free port before ``upstream``, its state in ``folder``, until the block ends.

    Args:
        upstream: the base URL that requests go to.
        folder: where state, secret and events are kept; it must exist.
        clock: the gateway's own, if the two are to agree about time.
        settings: more of them, as ``section.key=value``.

    Raises:
        RuntimeError: it did not start.
        SettingsError: the settings are refused.
    """
    sockets = bind(LOOPBACK, 0)
    with ExitStack() as unused:
        for sock in sockets:
            unused.callback(sock.close)
        place = Place(*sockets[0].getsockname()[:2])
        loaded = _settings(place, upstream, folder, settings)
        service = Service(loaded, sockets, lambda: control, None, clock=clock, embedded=True)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(service.run(), name="proxy")
            running.add_done_callback(lambda _: service.accepting.set())
            await service.accepting.wait()
            if running.done():
                raise RuntimeError("ocpool did not start")
            unused.pop_all()  # the service closes them
            try:
                yield service
            finally:
                service.stop()
                await running


def place_of(service: Service) -> Place:
    """Where a started proxy listens."""
    assert service.daemon is not None
    host, _, port = service.daemon.address.rpartition("://")[2].rpartition(":")
    return Place(host, int(port))


def changed(loaded: Loaded) -> list[Change]:
    """The settings that differ from their defaults, both values in JSON's types."""
    defaults, now = values(Settings()), values(loaded.settings)
    return [Change(key, defaults.get(key), value) for key, value in now.items() if value != defaults.get(key)]


def _settings(place: Place, upstream: str, folder: Path, more: Iterable[str]) -> Loaded:
    """Settings from here alone: neither the user's file nor the environment has a say."""
    chosen = (f"listen.port={place.port}", f"upstream.base_url={upstream}", f"state.path={folder / 'state.json'}")
    return load(None, [*chosen, *more], _nowhere(folder))


def _nowhere(folder: Path) -> Mapping[str, str]:
    return {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_STATE_HOME": str(folder)}
