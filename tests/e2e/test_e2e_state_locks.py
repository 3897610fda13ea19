"""The lock of the state file held by somebody else, failing, or hanging: requests never wait for it."""

import asyncio
import contextlib
import errno
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fakes.client import Client, request
from tests.fakes.daemon import Daemon, environment
from tests.fakes.kept import house, until
from tests.fakes.upstream import ROUTED, SSE, Upstream, chunk

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
        await daemon.talks_on()
        await daemon.written()
        clients = [await stack.enter_async_context(await Client.open(relay.host, relay.port)) for _ in range(5)]
        for number, client in enumerate(clients):
            await client.send(request(streams.on(ROUTED), session=b"ticking-conversation-%d" % number))
        replies = [await client.head() for client in clients]
        holder = hold(stack, path, 20)
        before = path.read_bytes()
        end = time.perf_counter() + 18
        while time.perf_counter() < end:
            began = time.perf_counter()
            await daemon.say(f"talk-{began}-under-lock")
            assert time.perf_counter() - began < 2
            await asyncio.sleep(0.5)
        assert path.read_bytes() == before
        assert len(daemon.said("locked")) == 1
        assert "locked" in (await daemon.status())["state"]["problem"]
        gaps = [gap for case, client in zip(streams.requests, clients, strict=True) for gap in late(case, client)]
        assert max(gaps) < 0.15, f"a tick came {max(gaps)} s late"
        for client, reply in zip(clients, replies, strict=True):
            assert (await client.rest(reply, 15)).complete
        holder.wait()
        await until(lambda: path.read_bytes() != before, 40)
        await until(lambda: daemon.said("works again"), 40)


async def test_a_lock_that_is_held_delays_the_exit_by_seconds_at_most(tmp_path):
    """SIGTERM ends it with 0 all the same; the file stays as it was."""
    async with house(tmp_path) as daemon, contextlib.AsyncExitStack() as stack:
        await daemon.talks_on()
        await daemon.written()
        hold(stack, daemon.state, 15)
        before = daemon.state.read_bytes()
        await daemon.say("talk-that-is-new-under-lock")
        daemon.tell(signal.SIGTERM)
        assert await daemon.exit(12) == 0
        assert daemon.state.read_bytes() == before
        assert "Traceback" not in daemon.log()


def hold(stack: contextlib.AsyncExitStack, path: Path, seconds: int) -> subprocess.Popen[bytes]:
    """Another process that has the lock."""
    holder = subprocess.Popen([sys.executable, "-c", HOLD, f"{path}.guard", str(seconds)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    for after in (holder.stdout.close, holder.wait, holder.kill):
        stack.callback(after)
    holder.stdout.readline()
    return holder


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
    env = environment(tmp_path, LD_PRELOAD=str(shim), SHIM_ERRNO=str(getattr(errno, name)))
    async with house(tmp_path, env=env) as daemon:
        await daemon.troubled("state.json", "no locks")
        assert not (tmp_path / "kept" / "state.json").exists()


async def test_a_lock_call_that_hangs_delays_the_start_by_seconds_and_no_request(tmp_path, shim):
    """An unreachable network file system, say."""
    began = time.perf_counter()
    async with house(tmp_path, env=environment(tmp_path, LD_PRELOAD=str(shim))) as daemon:
        assert time.perf_counter() - began < 20  # the call hangs for far longer
        await daemon.troubled("state")
        began = time.perf_counter()
        await daemon.say("steady-conversation")
        assert time.perf_counter() - began < 2
