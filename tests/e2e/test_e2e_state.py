"""The state file in every bad condition, with a real daemon: traffic flows, one line says what is wrong, no secret leaks."""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fakes import daemon as fake
from tests.fakes.client import Client, request
from tests.fakes.daemon import Daemon, environment
from tests.fakes.fleet import CALM, SETTINGS, uneasy_gateway
from tests.fakes.upstream import ROUTED, SSE, Upstream, chunk

LINUX_ROOT = sys.platform == "linux" and os.geteuid() == 0
KEY = b"sk-canary-0123456789"
HOLD = "import fcntl, sys, time; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); time.sleep(float(sys.argv[2]))"
SHIM = """
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
int flock(int fd, int operation) {
    if (operation & 8) return 0;
    const char *wanted = getenv("SHIM_ERRNO");
    if (!wanted) { sleep(60); return 0; }
    errno = atoi(wanted);
    return -1;
}
"""


@contextlib.asynccontextmanager
async def house(folder: Path, *, env=None, ready=True, **settings):
    """A daemon before a gateway on which every id is fast; its state file is in ``folder / "kept"``."""
    gateway = await uneasy_gateway(CALM)
    state = settings.pop("state__path", folder / "kept" / "state.json")
    daemon = Daemon.launch(folder, "--upstream", gateway.url, env=env, **{**SETTINGS, "state__path": state, **settings})
    daemon.gateway = gateway
    try:
        if ready:
            await daemon.ready()
        yield daemon
    finally:
        await daemon.stop()
        await gateway.stop()


async def say(daemon: Daemon, name: str, key: bytes = KEY) -> str:
    """One turn of a conversation; returns the id that it was sent on."""
    fields = [(b"Authorization", b"Bearer " + key), (b"User-Agent", b"state/1")]
    body = b'{"model":"kimi-k3","stream":true,"messages":[{"role":"user","content":"hi"}]}'
    async with await Client.open(daemon.host, daemon.port) as client:
        reply = await client.ask(request(ROUTED, body, fields, session=name.encode()))
    assert (reply.status, reply.complete) == (200, True), reply
    return next(r for r in reversed(daemon.gateway.log) if not r.probe).session


async def talks_on(daemon: Daemon, count: int = 3) -> None:
    """Conversations are served, new and old."""
    for number in range(count):
        first = await say(daemon, f"talk-{number}-{time.perf_counter()}-of-state")
        assert first
    assert await say(daemon, "steady-conversation") == await say(daemon, "steady-conversation")


async def status(daemon: Daemon) -> dict:
    async with await Client.open(daemon.host, daemon.port) as client:
        reply = await client.ask(request(b"/-/status", b"", method=b"GET"), "GET")
    return json.loads(reply.data)


def said(daemon: Daemon, *words: str) -> list[dict]:
    """The log's lines with all of these words."""
    return [json.loads(line) for line in daemon.log().splitlines() if all(word in line for word in words)]


async def until(holds, within=10.0):
    deadline = time.perf_counter() + within
    while not holds():
        assert time.perf_counter() < deadline, "it did not happen"
        await asyncio.sleep(0.05)


def kept(path: Path) -> dict:
    """The state file's document."""
    return json.loads(path.read_bytes())


async def written(path: Path, within=10.0) -> dict:
    """The state file once it is there and holds a binding."""
    await until(lambda: path.is_file() and path.stat().st_size and kept(path).get("bindings"), within)
    return kept(path)


async def troubled(daemon: Daemon, *words: str) -> None:
    """Traffic goes on, exactly one line says what is wrong, and status shows it."""
    await talks_on(daemon)
    await until(lambda: said(daemon, *words))
    await asyncio.sleep(2.5)
    await talks_on(daemon)
    assert len(said(daemon, *words)) == 1, daemon.log()
    found = await status(daemon)
    assert all(word in json.dumps(found["problems"]) for word in words), found["problems"]
    assert found["state"]["problem"]


BAD = {
    "empty": b"",
    "half": b'{"version": 1, "entries": [{"id": "a", "prov',
    "list": b"[1, 2, 3]",
    "shape": b'{"version": 1, "entries": 7, "bindings": []}',
    "binary": bytes(range(256)) * 8,
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
async def test_a_corrupt_file_is_put_aside_at_the_start(tmp_path, content):
    """It counts as empty, its bytes are kept, one line says so, and a new one is written."""
    path = tmp_path / "kept" / "state.json"
    path.parent.mkdir()
    path.write_bytes(content)
    async with house(tmp_path) as daemon:
        await talks_on(daemon)
        await written(path)
        [aside] = path.parent.glob("state.json.corrupt-*")
        assert aside.read_bytes() == content
        await until(lambda: said(daemon, "state.json"))
        [line] = said(daemon, "state.json")
        assert aside.name in json.dumps(line)
        assert not list(path.parent.glob(".*.tmp"))


async def test_a_directory_in_its_place_is_said_and_traffic_goes_on(tmp_path):
    """Nothing is deleted."""
    path = tmp_path / "kept" / "state.json"
    path.mkdir(parents=True)
    (path / "precious").write_text("x")
    async with house(tmp_path) as daemon:
        await troubled(daemon, "state.json", "directory")
    assert (path / "precious").read_text() == "x"


async def test_a_link_that_leads_to_itself_is_said_and_traffic_goes_on(tmp_path):
    """It can never be opened, whoever one is."""
    path = tmp_path / "kept" / "state.json"
    path.parent.mkdir()
    path.symlink_to(path)
    async with house(tmp_path) as daemon:
        await troubled(daemon, "state.json")


@pytest.fixture
def obeying(monkeypatch):
    """Daemons that file modes hold for: root's are started without the capability to ignore them."""
    if os.geteuid() != 0:
        return
    if not shutil.which("setpriv"):
        pytest.skip("root ignores file modes, and there is no setpriv to make it obey")
    bound = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
    monkeypatch.setattr(fake, "COMMAND", [*bound, *fake.COMMAND])


async def test_an_unreadable_file_is_said_and_left_alone(tmp_path, obeying):
    """Mode 0000."""
    path = tmp_path / "kept" / "state.json"
    path.parent.mkdir()
    path.write_text('{"version": 1, "entries": [], "bindings": {}}')
    path.chmod(0)
    async with house(tmp_path) as daemon:
        await troubled(daemon, "state.json")
        assert path.stat().st_mode & 0o777 == 0
    path.chmod(0o600)
    assert kept(path) == {"version": 1, "entries": [], "bindings": {}}


async def test_a_folder_that_cannot_be_written_is_said_and_traffic_goes_on(tmp_path, obeying):
    """Mode 0500."""
    folder = tmp_path / "kept"
    folder.mkdir(mode=0o500)
    async with house(tmp_path) as daemon:
        await troubled(daemon, str(folder / "state.json"))
    assert list(folder.iterdir()) == []


@contextlib.contextmanager
def tmpfs(folder: Path, size: str):
    """A file system of its own; its user may remount it."""
    folder.mkdir()
    if not LINUX_ROOT:
        pytest.skip("only root can mount a file system of a given size")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], capture_output=True)
    if done.returncode:
        pytest.skip(f"cannot mount a tmpfs here: {done.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


async def test_a_read_only_file_system_is_said_and_a_writable_one_is_used_again(tmp_path):
    """What was decided meanwhile is written then."""
    folder = tmp_path / "kept"
    with tmpfs(folder, "1m"):
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        async with house(tmp_path) as daemon:
            await troubled(daemon, str(folder))
            subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
            assert (await written(folder / "state.json", 40))["bindings"]
            assert (await status(daemon))["state"]["problem"] is None


async def test_a_full_disk_keeps_the_old_file_and_traffic_flows(tmp_path):
    """64 kB, filled to the brim; when there is room again, it is written."""
    folder = tmp_path / "kept"
    path = folder / "state.json"
    with tmpfs(folder, "64k"):
        async with house(tmp_path) as daemon:
            await talks_on(daemon)
            await written(path)
            with (folder / "filler").open("wb") as filler, contextlib.suppress(OSError):
                while True:
                    filler.write(b"x" * 256)
                    filler.flush()
            before = path.read_bytes()
            await troubled(daemon, "state.json", "space")
            assert path.read_bytes() == before
            assert not list(folder.glob(".*.tmp"))
            (folder / "filler").unlink()
            await until(lambda: len(kept(path)["bindings"]) > len(json.loads(before)["bindings"]), 40)


async def test_a_newer_file_is_read_and_never_written(tmp_path):
    """Version 2, with keys that nobody knows yet."""
    path = tmp_path / "kept" / "state.json"
    path.parent.mkdir()
    path.write_text('{"version": 2, "entries": [], "bindings": {}, "future": {"a": [1]}}\n')
    before = path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino
    async with house(tmp_path) as daemon:
        await troubled(daemon, "state.json", "newer")
    assert (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) == before


@pytest.mark.parametrize("harm", ["deleted", "folder deleted", "garbage", "empty"])
async def test_a_running_daemon_writes_its_memory_over_a_loss(tmp_path, harm):
    """Its conversations stay on their ids, and are in the new file."""
    path = tmp_path / "kept" / "state.json"
    async with house(tmp_path) as daemon:
        sent_on = await say(daemon, "steady-conversation")
        assert await say(daemon, "steady-conversation") == sent_on
        before = (await written(path))["bindings"]
        if harm == "deleted":
            path.unlink()
        elif harm == "folder deleted":
            shutil.rmtree(path.parent)
        else:
            path.write_bytes(b"\x00garbage" if harm == "garbage" else b"")
        assert await say(daemon, "steady-conversation") == sent_on
        await until(lambda: path.is_file() and path.read_bytes()[:1] == b"{" and kept(path)["bindings"])
        assert {k: b["routedId"] for k, b in before.items()}.items() <= {
            k: b["routedId"] for k, b in kept(path)["bindings"].items()
        }.items()
        assert await say(daemon, "steady-conversation") == sent_on
        await talks_on(daemon)
        asides = list(path.parent.glob("state.json.corrupt-*"))
        assert len(asides) == (harm in {"garbage", "empty"})
        assert len(said(daemon, "corrupt-")) == len(asides)


async def test_a_lock_held_for_20_seconds_holds_up_nobody(tmp_path):
    """Five streams tick on, requests are forwarded, and afterwards the state is written."""
    path = tmp_path / "kept" / "state.json"
    upstream = await Upstream().start()

    async def ticking(exchange):
        await exchange.read()
        await exchange.send(SSE)
        for _ in range(450):
            await exchange.send(chunk(b"data: {}\n\n"))
            await asyncio.sleep(0.05)
        await exchange.send(b"0\r\n\r\n")

    streams = upstream.case(ticking)
    async with house(tmp_path) as daemon, contextlib.AsyncExitStack() as stack:
        relay = await Daemon.start(tmp_path / "ticking", "--upstream", upstream.url, state__path=path)
        stack.push_async_callback(upstream.stop)
        stack.push_async_callback(relay.stop)
        await talks_on(daemon)
        await written(path)
        clients = [await stack.enter_async_context(await Client.open(relay.host, relay.port)) for _ in range(5)]
        for number, client in enumerate(clients):
            await client.send(request(streams.on(ROUTED), session=b"ticking-conversation-%d" % number))
        replies = [await client.head() for client in clients]
        holder = subprocess.Popen([sys.executable, "-c", HOLD, f"{path}.guard", "20"], stdout=subprocess.PIPE)
        stack.callback(holder.wait)
        stack.callback(holder.kill)
        holder.stdout.readline()
        before = path.read_bytes()
        end = time.perf_counter() + 18
        while time.perf_counter() < end:
            began = time.perf_counter()
            await say(daemon, f"talk-{began}-under-lock")
            assert time.perf_counter() - began < 2
            await asyncio.sleep(0.5)
        assert path.read_bytes() == before
        assert len(said(daemon, "locked")) == 1
        assert "locked" in (await status(daemon))["state"]["problem"]
        gaps = [gap for case, client in zip(streams.requests, clients, strict=True) for gap in late(case, client)]
        assert max(gaps) < 0.15, f"a tick came {max(gaps)} s late"
        for client, reply in zip(clients, replies, strict=True):
            assert (await client.rest(reply, 15)).complete
        holder.wait()
        await until(lambda: path.read_bytes() != before, 40)
        await until(lambda: said(daemon, "works again"), 40)
    holder.stdout.close()


def late(exchange, client):
    """How late each tick came: between the upstream's send and the client's receipt."""
    sent = [at for at, data in exchange.wire.sent if b"data:" in data]
    came = [at for _, at in client.wire.arrivals][-len(sent) :]
    return [max(0.0, there - here) for here, there in zip(sent[-len(came) :], came, strict=True)]


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    """A library to preload in which flock fails, or hangs."""
    if not shutil.which("gcc") or sys.platform != "linux":
        pytest.skip("no gcc to make the failing flock with")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "shim.so", "shim.c"], cwd=folder, check=True)
    return folder / "shim.so"


@pytest.mark.parametrize("name", ["ENOSYS", "ENOLCK", "EOPNOTSUPP"])
async def test_a_file_system_without_locks_is_said_and_traffic_goes_on(tmp_path, shim, name):
    """Without a lock nothing is written."""
    import errno

    env = environment(tmp_path, LD_PRELOAD=str(shim), SHIM_ERRNO=str(getattr(errno, name)))
    async with house(tmp_path, env=env) as daemon:
        await troubled(daemon, "state.json", "no locks")
        assert not (tmp_path / "kept" / "state.json").exists()


async def test_a_lock_call_that_hangs_delays_the_start_by_seconds_and_no_request(tmp_path, shim):
    """An unreachable network file system, say."""
    began = time.perf_counter()
    async with house(tmp_path, env=environment(tmp_path, LD_PRELOAD=str(shim))) as daemon:
        assert time.perf_counter() - began < 10
        await troubled(daemon, "state")
        began = time.perf_counter()
        await say(daemon, "steady-conversation")
        assert time.perf_counter() - began < 2
