"""One version follows another: nobody is refused, no stream is cut, no version is mixed with another."""

import asyncio
import contextlib
import json
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
import pytest_asyncio

import proxy
from tests.fakes.client import Client, Reply, request
from tests.fakes.daemon import Daemon, environment
from tests.fakes.kept import TICK, ticking, until
from tests.fakes.supervisor import Supervisor, tree
from tests.fakes.upstream import ROUTED, UNROUTED, Upstream, play, sized

NEXT = "99.1.0"
EVERY_S = 0.02  # 50 requests a second


@dataclass
class Street:
    """A supervisor's sockets before a scripted upstream."""

    supervisor: Supervisor
    upstream: Upstream
    daemons: list[Daemon] = field(default_factory=list)

    async def start(self, name: str, *arguments: object, **settings: object) -> Daemon:
        """A daemon that has told that it is ready."""
        ready = self.supervisor.heard().count("READY=1")
        settings = {"upstream__base_url": self.upstream.url, "listen__drain_ms": 10_000, **settings}
        daemon = self.supervisor.launch(name, *arguments, **settings)
        self.daemons.append(daemon)
        await self.supervisor.hears("READY=1", ready + 1)
        return daemon

    async def ask(self, target: bytes, method: bytes = b"POST", **parts: object) -> Reply:
        """One request on a connection of its own."""
        async with await Client.open("127.0.0.1", self.supervisor.port) as client:
            return await client.ask(request(target, method=method, **parts), method.decode())

    async def serving(self) -> str:
        """The version that answers."""
        return json.loads((await self.ask(b"/-/health", b"GET", framing="none")).data)["version"]


@pytest_asyncio.fixture(loop_scope="session")
async def street(tmp_path) -> AsyncIterator[Street]:
    supervisor = Supervisor(tmp_path / "d")
    upstream = await Upstream().start()
    made = Street(supervisor, upstream)
    yield made
    for daemon in made.daemons:
        daemon.kill()
    await upstream.stop()
    supervisor.close()


async def load(street: Street, target: bytes, waits: list[float]) -> None:
    """50 requests a second, each on a connection of its own, until cancelled; the last ones are waited for."""

    async def one() -> None:
        started = time.perf_counter()
        reply = await street.ask(target)
        assert (reply.status, reply.data) == (200, b"ok"), reply.head
        waits.append(time.perf_counter() - started)

    async with asyncio.TaskGroup() as group:
        with contextlib.suppress(asyncio.CancelledError):
            while True:
                group.create_task(one())
                await asyncio.sleep(EVERY_S)


@pytest.mark.parametrize(("loop", "path"), [("uvloop", ROUTED), ("asyncio", UNROUTED)])
async def test_the_next_version_takes_over_without_a_refused_request_or_a_cut_stream(street, tmp_path, loop, path):
    """As ``systemctl restart`` does it: the old one ends before the new one starts, and the sockets outlive both."""
    state = {"state__path": tmp_path / "state.json", "listen__loop": loop}
    old = await street.start("old", **state)
    assert await street.serving() == proxy.__version__
    stream = street.upstream.case(lambda exchange: ticking(exchange, 40))
    waits: list[float] = []
    quick = street.upstream.case(play(sized(b"ok"))).on(path)
    async with await Client.open("127.0.0.1", street.supervisor.port) as client, asyncio.TaskGroup() as group:
        await client.send(request(stream.on(path)))
        head = await client.head()
        running = group.create_task(load(street, quick, waits))
        await asyncio.sleep(0.5)
        told = time.perf_counter()
        old.tell(signal.SIGTERM)
        reply = await client.rest(head)
        assert (reply.complete, reply.data) == (True, TICK * 40)
        assert await old.exit() == 0
        before = len(waits)
        await street.start("new", tree(tmp_path / "next", NEXT), **state)
        gap = time.perf_counter() - told
        assert await street.serving() == NEXT
        await asyncio.sleep(0.5)
        running.cancel()
    assert 10 < before < len(waits) - 50
    assert max(waits) < gap + 3, "nobody waits for more than the end of the old one and the start of the new one"
    assert {exchange.failure for exchange in stream.requests} == {None}
    told = [line for line in street.supervisor.heard() if not line.startswith("STATUS=")]
    assert told == ["READY=1", "STOPPING=1", "READY=1"]
    assert "error" not in old.log()


async def test_requests_that_the_old_one_had_accepted_are_served_by_it(street, tmp_path):
    """A connection that was made just before the signal and speaks just after it."""
    old = await street.start("old")
    case = street.upstream.case(play(sized(b"ok"))).on(ROUTED)
    clients = [await Client.open("127.0.0.1", street.supervisor.port) for _ in range(20)]
    await asyncio.sleep(0.05)
    old.tell(signal.SIGTERM)
    await asyncio.sleep(0.05)
    for client in clients:
        await client.send(request(case))
    assert {(await client.reply()).data for client in clients} == {b"ok"}
    assert await old.exit() == 0
    for client in clients:
        client.wire.cut()


async def test_two_versions_at_once_on_one_state_file_keep_every_binding(street, tmp_path):
    """The older one neither loses what the newer one wrote nor its own."""
    shared = {"state__path": tmp_path / "state.json"}
    old = await street.start("old", **shared)
    new = Daemon.launch(
        tmp_path / "new",
        env={**environment(tmp_path), "PYTHONPATH": str(tree(tmp_path / "next", NEXT))},
        upstream__base_url=street.upstream.url,
        **shared,
    )
    street.daemons.append(new)
    await new.ready()
    case = street.upstream.case(lambda exchange: ticking(exchange, 1, 0)).on(ROUTED)
    for number in range(12):
        port = street.supervisor.port if number % 2 else new.port
        async with await Client.open("127.0.0.1", port) as client:
            asked = request(case, fields=[(b"Authorization", b"Bearer sk-k")], session=b"shared-talk-%d" % number)
            for _ in range(2):  # a conversation's own id is written on its second turn
                assert (await client.ask(asked)).status == 200

    def bound() -> int:
        return len(json.loads((tmp_path / "state.json").read_bytes())["bindings"])

    await until(lambda: (tmp_path / "state.json").exists() and bound() == 12)
    for daemon in (old, new):
        daemon.tell(signal.SIGTERM)
        assert await daemon.exit() == 0
    assert bound() == 12
    assert not list(tmp_path.glob("*.corrupt-*"))


async def test_an_upgrade_in_place_never_mixes_versions(street, tmp_path):
    """Every module of the running version is replaced by one that cannot be loaded; nothing is missed until the end."""
    installed = tree(tmp_path / "installed")
    config = tmp_path / "config.toml"
    config.write_text("[pool]\nsize = 2\n")
    daemon = await street.start("it", installed, "--config", str(config), env={"PYTHONPROFILEIMPORTTIME": "1"})
    await until(lambda: "structlog" in imported(daemon.log()), 20)  # half a second after the start
    await asyncio.sleep(1.5)
    loaded = len(daemon.log())
    for module in installed.rglob("*.py"):
        module.write_text("raise SystemError('two versions in one process')\n")
    case = street.upstream.case(play(sized(b"ok")))
    refused = street.upstream.case(play(sized(b'{"error":{"message":"x"}}', b"429 Too Many Requests")))
    for target in (ROUTED, UNROUTED):
        assert (await street.ask(case.on(target), session=b"talk-in-place")).data == b"ok"
        assert (await street.ask(refused.on(target), session=b"talk-in-place")).status == 429
    for page in ("", "health", "ready", "status", "metrics", "nothing"):
        reply = await street.ask(b"/-/" + page.encode(), b"GET", framing="none")
        assert reply.status == (404 if page == "nothing" else 200)
    for page in (b"/-/repin", b"/-/refresh"):
        assert (await street.ask(page, framing="length", body=b"")).status in (200, 202)
    config.write_text("[pool]\nsize = 4\n")
    daemon.tell(signal.SIGHUP)
    await daemon.event("reloaded")
    config.write_text("[pool]\nsize = 400\n")
    daemon.tell(signal.SIGHUP)
    await daemon.event("reload_refused")
    daemon.tell(signal.SIGTERM)
    assert await daemon.exit(8) == 0
    assert imported(daemon.log()[loaded:]) == set(), "neither ours nor a library's, nor Python's own"
    assert "two versions" not in daemon.log()
    assert "Traceback" not in daemon.log()


def imported(log: str) -> set[str]:
    """The modules that Python says it has loaded."""
    return {line.rpartition("|")[2].strip() for line in log.splitlines() if line.startswith("import time:")}


async def test_the_service_manager_hears_of_reloads_and_that_we_live(street, tmp_path):
    """RELOADING comes with the time, READY ends it; WATCHDOG comes twice in the time that the unit allows."""
    daemon = await street.start("it", env={"WATCHDOG_USEC": "400000"})
    await street.supervisor.hears("WATCHDOG=1", 4, within=3)
    beats = [at for at, line in street.supervisor.told if line == "WATCHDOG=1"]
    assert all(later - earlier < 0.4 for earlier, later in zip(beats, beats[1:]))
    ready = street.supervisor.heard().count("READY=1")
    daemon.tell(signal.SIGHUP)
    await street.supervisor.hears("READY=1", ready + 1)
    told = street.supervisor.heard()
    assert any(line.startswith("MONOTONIC_USEC=") for line in told)
    assert told.index("RELOADING=1") < len(told) - told[::-1].index("READY=1")
    assert f"STATUS=ocpool {proxy.__version__} listens on http://127.0.0.1:{street.supervisor.port}" in told


async def test_a_socket_open_to_others_needs_a_token(tmp_path):
    """As if listen.host had said so."""
    supervisor = Supervisor(tmp_path / "d", "0.0.0.0")
    try:
        daemon = supervisor.launch("bare")
        assert await daemon.exit() == 2
        assert "listen.token" in daemon.log()
        guarded = supervisor.launch("guarded", listen__token="let-me-in-please")
        await supervisor.hears("READY=1")
        guarded.tell(signal.SIGTERM)
        assert await guarded.exit() == 0
    finally:
        supervisor.close()


async def test_sockets_meant_for_another_process_are_left_alone(tmp_path):
    """LISTEN_PID says whose they are."""
    daemon = await Daemon.start(tmp_path, env=environment(tmp_path, LISTEN_FDS="1", LISTEN_PID="1"))
    assert daemon.port
    await daemon.stop()


@pytest.mark.parametrize(
    ("loop", "way", "stopped_s", "settings"),
    [
        ("uvloop", "deaf", 2, {"upstream__keepalive_ms": 1_500}),
        ("uvloop", "rst", 2, {"upstream__keepalive_ms": 1_500}),
        ("asyncio", "deaf", 2, {"upstream__keepalive_ms": 1_500}),
        pytest.param("uvloop", "deaf", 60, {}, marks=pytest.mark.slow),
        pytest.param("asyncio", "rst", 60, {}, marks=pytest.mark.slow),
    ],
)
async def test_after_a_stop_the_next_request_goes_out_on_a_live_connection(tmp_path, loop, way, stopped_s, settings):
    """Stopped for longer than idle connections live, which died meanwhile, seen or unseen."""
    upstream = await Upstream().start()
    daemon = await Daemon.start(tmp_path, "--upstream", upstream.url, listen__loop=loop, **settings)
    try:
        first = upstream.case(play(0.1, sized(b"ok"), *(["deaf"] if way == "deaf" else [])))
        second = upstream.case(play(sized(b"ok")))
        clients = [await Client.open(daemon.host, daemon.port) for _ in range(4)]
        await asyncio.gather(*(client.ask(request(first.on(ROUTED))) for client in clients))
        pooled = {exchange.connection for exchange in first.requests}
        assert len(pooled) == 4
        await asyncio.sleep(0.3)  # they are idle when the daemon itself has seen the end of each
        daemon.tell(signal.SIGSTOP)
        for exchange in first.requests:
            if way == "rst":
                exchange.wire.rst()
        await asyncio.sleep(stopped_s)
        await clients[0].send(request(second.on(ROUTED)))
        daemon.tell(signal.SIGCONT)
        woken = time.perf_counter()
        reply = await clients[0].reply()
        assert (reply.status, reply.data) == (200, b"ok")
        assert time.perf_counter() - woken < 2
        assert second.requests[0].connection not in pooled
        for client in clients:
            client.wire.cut()
    finally:
        daemon.tell(signal.SIGCONT)
        await daemon.stop()
        await upstream.stop()
