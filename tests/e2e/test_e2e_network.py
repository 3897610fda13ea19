"""The way to the gateway is not what it was: a portal, a wrong certificate, another address, a clock that was set."""

import asyncio
import contextlib
import json
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.client import Client, request
from tests.fakes.daemon import COMMAND, Daemon, environment
from tests.fakes.kept import house, relay, ticking, until
from tests.fakes.relay import Relay, Relays
from tests.fakes.supervisor import Supervisor
from tests.fakes.upstream import ROUTED, SSE, UNROUTED, Upstream, play, sized

PAGE = b"<!DOCTYPE html>\n<title>Welcome to the hotel</title>"
HTML = b"Content-Type: text/html"
AWAY = b"Location: http://portal.hotel.example/login"
KEY = [(b"Authorization", b"Bearer sk-test")]
PORTALS = {
    "page": sized(PAGE, b"200 OK", HTML),
    "elsewhere": sized(b"", b"302 Found", HTML, AWAY),
    "511": sized(PAGE, b"511 Network Authentication Required", HTML),
    "endless-page": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + PAGE,
}
FLUENT = b'data: {"choices":[{"delta":{"content":"x"}}]}\n\ndata: [DONE]\n\n'
GOOD = SSE + b"%x\r\n%b\r\n0\r\n\r\n" % (len(FLUENT), FLUENT)


async def status(port: int, host: str = "127.0.0.1") -> dict[str, Any]:
    async with await Client.open(host, port) as client:
        reply = await client.ask(request(b"/-/status", method=b"GET", framing="none"), "GET")
    found: dict[str, Any] = json.loads(reply.data)
    return found


# -- a portal, and a certificate ---------------------------------------------------------------------


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
@pytest.mark.parametrize("portal", PORTALS)
async def test_a_log_in_page_is_a_502_of_its_own_and_blamed_on_nobody(relay: Relay, portal: str, path: bytes):
    """One request went up; no byte of the page comes down; the conversation keeps its id; a banner says it meanwhile."""
    daemon = relay.daemon
    body = b'{"model":"m","stream":true,"messages":[]}'
    session = b"talk-behind-%b-%b" % (portal.encode(), path[-4:])
    good = relay.case(GOOD)
    assert (await relay.ask(good.on(path), body=body, session=session, fields=KEY)).status == 200
    before = len([event for event in daemon.events() if event["event"] == "retire"])

    tail = [] if portal != "endless-page" else [0.3, "fin"]
    case = relay.case(PORTALS[portal], *tail)
    reply = await relay.ask(case.on(path), body=body, session=session, fields=KEY)
    assert (reply.status, reply.all(b"content-type")) == (502, [b"application/json"])
    error = json.loads(reply.data)["error"]
    assert (error["code"], error["type"]) == ("captive_portal", "upstream_error")
    assert b"hotel" not in reply.data
    assert len(case.requests) == 1
    event = await daemon.event("portal")
    assert (event["blame"], event["error"]) == ("none", "captive_portal")
    assert (await status(daemon.port))["problems"]["network"].startswith("No network: ")

    again = await relay.ask(good.on(path), body=body, session=session, fields=KEY)
    assert again.status == 200
    assert "network" not in (await status(daemon.port))["problems"]
    assert len([event for event in daemon.events() if event["event"] == "retire"]) == before
    sent = {exchange.head.all(b"x-opencode-session")[0] for exchange in (*case.requests, *good.requests)}
    assert len(sent) == 1


@pytest.mark.parametrize("status_line", [b"403 Forbidden", b"404 Not Found", b"502 Bad Gateway", b"524 A Timeout"])
async def test_a_page_with_an_error_status_is_passed_on(relay: Relay, status_line: bytes):
    """The network in front of the gateway sends those."""
    reply = await relay.ask(relay.case(sized(PAGE, status_line, HTML)).on(ROUTED))
    assert (reply.status, reply.data) == (int(status_line[:3]), PAGE)


async def test_other_requests_may_well_be_answered_with_a_page(relay: Relay):
    """Only an inference request cannot."""
    reply = await relay.ask(relay.case(sized(PAGE, b"200 OK", HTML)).on(b"/zen/go/v1/models"), "GET", framing="none")
    assert (reply.status, reply.data) == (200, PAGE)


async def test_a_wrong_certificate_is_said_and_passes(relays: Relays, tmp_path: Path):
    """As a portal in front of an https upstream looks: its own code, a banner, and nothing sent to it."""
    wrong = await Upstream(relays.authority.server("portal.hotel.example")).start()
    relay = await relays.make(scheme="https", upstream=wrong)
    daemon = relay.daemon
    reply = await relay.ask(wrong.case(play(GOOD)).on(ROUTED), session=b"talk-of-trust", fields=KEY)
    assert (reply.status, json.loads(reply.data)["error"]["code"]) == (502, "upstream_tls_failed")
    assert (await status(daemon.port))["problems"]["network"].startswith("No network: The certificate of ")
    assert (await daemon.event("tls_failed"))["blame"] == "upstream"
    port = wrong.port
    await wrong.stop()
    right = await Upstream(relays.authority.server()).start(port=port)
    try:
        good = right.case(play(GOOD)).on(ROUTED)
        async with await Client.open(daemon.host, daemon.port) as client:
            assert (await client.ask(request(good, session=b"talk-of-trust", fields=KEY))).status == 200
        assert (await status(daemon.port))["problems"] == {}
    finally:
        await right.stop()


# -- another address ---------------------------------------------------------------------------------

NETWORK = "ip link set lo up && ip addr add 10.1.1.1/32 dev lo && ip route add default dev lo src 10.1.1.1 && echo up; sleep 600"
MOVED = "ip addr add 10.2.2.2/32 dev lo && ip route replace default dev lo src 10.2.2.2"


@dataclass
class Place:
    """A network of its own, whose address towards the internet a test can change."""

    process: subprocess.Popen[bytes]

    def inside(self, *command: str) -> list[str]:
        return ["nsenter", "-t", str(self.process.pid), "-n", *command]

    def move(self) -> None:
        subprocess.run(self.inside("sh", "-c", MOVED), check=True, capture_output=True)


@pytest.fixture
def place() -> Iterator[Place]:
    if sys.platform != "linux" or not all(map(shutil.which, ("unshare", "nsenter", "ip"))):
        pytest.skip("NOT CHECKED: a change of addresses takes Linux, unshare, nsenter and ip")
    process = subprocess.Popen(["unshare", "-n", "sh", "-c", NETWORK], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        if process.stdout.readline() != b"up\n":
            process.kill()
            pytest.skip(f"NOT CHECKED: no network of our own here: {process.stderr.read().decode().strip()}")
        yield Place(process)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


@contextlib.asynccontextmanager
async def gateway_in(place: Place, folder: Path) -> AsyncIterator[str]:
    """The simulated gateway inside that network; every id is fast there."""
    arguments = ["simulate", "--json", "--scenario", "balanced", "--time-scale", "30"]
    with (folder / "gateway").open("wb") as out:
        process = subprocess.Popen(
            place.inside(*COMMAND, *arguments), stdout=out, stderr=subprocess.STDOUT, env=environment(folder)
        )
    try:
        await until(lambda: (folder / "gateway").read_bytes().count(b"\n"), 30)
        yield json.loads((folder / "gateway").read_text().splitlines()[0])["address"]
    finally:
        process.terminate()
        process.wait()


async def test_after_a_change_of_addresses_nothing_old_is_used(place: Place, tmp_path: Path):
    """A VPN came up: idle connections go, spares count as stale and are not probed at once, the next request is served."""
    supervisor = Supervisor(tmp_path / "d")
    async with gateway_in(place, tmp_path) as url:
        daemon = supervisor.launch(
            "it",
            before=place.inside(),
            upstream__base_url=url,
            upstream__keepalive_ms=600_000,
            probe__enabled=True,
            probe__min_interval_ms=20,
            pool__refill_delay_ms=50,
            pool__refresh_interval_ms=1_000,
        )
        try:
            await supervisor.hears("READY=1")
            await turn(supervisor.port, b"first-talk-of-the-day")
            await until_async(lambda: spares(supervisor.port, fresh=3))
            assert (await status(supervisor.port))["upstream"]["idle"] > 0
            place.move()
            moved = time.perf_counter()
            event = await daemon.event("disturbed", within=10)
            assert (event["what"], event["spares"]) == ("address", 3)
            assert time.perf_counter() - moved < 8
            seen = await status(supervisor.port)
            assert seen["upstream"]["idle"] == 0
            assert (seen["pool"][0]["fresh"], seen["pool"][0]["stale"]) == (0, 3)
            assert [pause["reason"] for pause in seen["pauses"]] == ["disturbed"]
            await turn(supervisor.port, b"other-talk-of-the-day")
            await until(lambda: "natural" in since(daemon, event), 10)
            await asyncio.sleep(3)
            assert "probe" not in since(daemon, event)
        finally:
            await daemon.stop()
            supervisor.close()


def since(daemon: Daemon, event: dict[str, Any]) -> list[str]:
    """What happened after it."""
    return [later["event"] for later in daemon.events() if later["at"] > event["at"]]


async def turn(port: int, session: bytes) -> None:
    body = b'{"model":"glm-5.3","stream":true,"messages":[{"role":"user","content":"hi"}]}'
    async with await Client.open("127.0.0.1", port) as client:
        fields = [*KEY, (b"User-Agent", b"network-test/1"), (b"Content-Type", b"application/json")]
        reply = await client.ask(request(ROUTED, body, fields, session=session))
        assert (reply.status, reply.complete) == (200, True), reply.data


async def spares(port: int, fresh: int) -> bool:
    return any(pool["fresh"] >= fresh for pool in (await status(port))["pool"])


async def until_async(holds: Any, within: float = 20.0) -> None:
    deadline = time.perf_counter() + within
    while not await holds():
        assert time.perf_counter() < deadline, "it did not happen"
        await asyncio.sleep(0.1)


# -- a clock that was set ----------------------------------------------------------------------------

SHIM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static volatile int64_t *offset;
__attribute__((constructor)) static void open_offset(void) {
    int fd = open(getenv("CLOCK_OFFSET"), O_RDONLY);
    offset = mmap(0, 8, PROT_READ, MAP_SHARED, fd, 0);
}
int clock_gettime(clockid_t which, struct timespec *at) {
    int result = syscall(SYS_clock_gettime, which, at);
    if (which == CLOCK_REALTIME) at->tv_sec += *offset;
    return result;
}
"""


# A busy machine is no slow route.
UNHURRIED = {"probe__max_upstream_ms": 9_000, "quarantine__degrade_ms": 60_000, "quarantine__quarantine_ms": 60_000}


@dataclass
class WallClock:
    """The wall clock of processes with this environment; ``set`` moves it, in seconds from the true time."""

    file: Path
    library: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.library), "CLOCK_OFFSET": str(self.file)}

    def set(self, seconds: int) -> None:
        with self.file.open("r+b") as file:
            file.write(struct.pack("=q", seconds))


@pytest.fixture
def wall(tmp_path: Path) -> WallClock:
    if not shutil.which("gcc") or sys.platform != "linux":
        pytest.skip("NOT CHECKED: a clock that can be set takes Linux and gcc")
    (tmp_path / "clock.c").write_text(SHIM)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "clock.so", "clock.c"], cwd=tmp_path, check=True)
    (tmp_path / "offset").write_bytes(bytes(8))
    return WallClock(tmp_path / "offset", tmp_path / "clock.so")


@pytest.mark.parametrize("step_s", [3_600, -3_600, -40 * 86_400], ids=["ahead", "back", "weeks-back"])
async def test_a_clock_that_was_set_ends_nothing_and_blames_nobody(tmp_path: Path, wall: WallClock, step_s: int):
    """A stream goes on, ids stay, nothing is retired, and refilling does not wait for the old time to come again."""
    env = environment(tmp_path, **wall.environment)
    async with house(tmp_path, env=env, **UNHURRIED) as daemon:
        bound = await daemon.say("talk-across-the-step")
        await daemon.say("talk-across-the-step")
        await until_async(lambda: spares(daemon.port, fresh=2))
        await daemon.written()
        true = time.time() * 1000
        wall.set(step_s)
        event = await daemon.event("disturbed", within=5)
        assert event["what"] == "clock"
        assert abs(event["gap_ms"] - step_s * 1000) < 5_000
        assert abs(event["at"] - (true + step_s * 1000)) < 10_000
        assert await daemon.say("talk-across-the-step") == bound
        seen = await daemon.status()
        assert seen["upstream"]["idle"] >= 1
        assert [pool["fresh"] <= 1 for pool in seen["pool"]] == [True], "but for a probe that was under way"
        [pause] = [pause for pause in seen["pauses"] if pause["reason"] == "disturbed"]
        assert 0 < pause["until"] - seen["now"] <= 15_000
        assert all(row["next_at"] - seen["now"] < 60_000 for pool in seen["pool"] for row in pool["demand"])
        await daemon.say("talk-after-the-step")
        assert [event for event in daemon.events() if event["event"] == "retire"] == []
        wall.set(0)
        await until(lambda: len([e for e in daemon.events() if e["event"] == "disturbed"]) == 2, 5)
        assert await daemon.say("talk-across-the-step") == bound
        assert "Traceback" not in daemon.log()


async def test_a_stream_that_the_clock_jumps_under_is_whole_and_not_judged(tmp_path: Path, wall: WallClock):
    """What it seemed to take says nothing about its route."""
    async with relay(tmp_path, env=environment(tmp_path, **wall.environment)) as (daemon, upstream):
        case = upstream.case(lambda exchange: ticking(exchange, 20)).on(ROUTED)
        body = b'{"model":"m","stream":true,"messages":[]}'
        async with await Client.open(daemon.host, daemon.port) as client:
            await client.send(request(case, body, KEY, session=b"talk-under-the-jump"))
            head = await client.head()
            wall.set(30)
            reply = await client.rest(head)
        assert (reply.status, reply.complete) == (200, True)
        event = await daemon.event("request")
        assert event["total_ms"] < 10_000
        assert [event for event in daemon.events() if event["event"] in {"strike", "mark", "retire"}] == []
