"""A daemon's life as its supervisor and its user see it: start anywhere, serve with few files, drain, leave."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fakes import daemon as fake
from tests.fakes.client import Client, request
from tests.fakes.daemon import Daemon, environment
from tests.fakes.kept import TICK, ask, house, relay, ticking, until
from tests.fakes.upstream import ROUTED, play, sized

ROOT_ON_LINUX = sys.platform == "linux" and os.geteuid() == 0

DATABASES = ("state.json.conversations", "usage.sqlite3")  # the first one writes them every few seconds


# -- the end ---------------------------------------------------------------------------------------


async def test_a_drained_daemon_leaves_its_bindings_and_unused_spares_in_the_file(tmp_path):
    """The next start goes on with both."""
    async with house(tmp_path, listen__drain_ms=8_000) as daemon:
        sent_on = await daemon.say("steady-conversation")
        await until(lambda: len(daemon.kept().get("reserved", [])) == 2 if daemon.state.is_file() else False, 20)
        routed = await daemon.say("another-conversation")
        assert await daemon.say("steady-conversation") == sent_on
        daemon.tell(signal.SIGTERM)
        assert await daemon.exit(5) == 0
        left = daemon.kept()
    assert left.get("reserved", []) == []
    assert left["entries"]
    assert routed not in {entry["id"] for entry in left["entries"]}
    assert routed in {bound["routedId"] for bound in left["bindings"].values()}
    async with house(tmp_path) as again:
        assert await again.say("another-conversation") == routed
        assert await again.say("steady-conversation") == sent_on
        third = await again.say("third-conversation")
        assert third in {entry["id"] for entry in left["entries"]}, "a spare that was put back starts the next one"


async def test_sigterm_refuses_new_connections_at_once_and_lets_a_stream_end(tmp_path):
    """The port is free again before the stream is over."""
    async with relay(tmp_path, listen__drain_ms=8000) as (daemon, upstream):
        case = upstream.case(lambda exchange: ticking(exchange, 30))
        async with await Client.open(daemon.host, daemon.port) as client:
            await client.send(request(case.on(ROUTED)))
            head = await client.head()
            daemon.tell(signal.SIGTERM)
            await asyncio.sleep(0.2)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((daemon.host, daemon.port), 1).close()
            reply = await client.rest(head)
        assert (reply.complete, reply.data) == (True, TICK * 30)
        assert await daemon.exit(3) == 0


async def test_a_stopped_daemon_takes_its_runtime_file_along(tmp_path):
    """Commands find nobody then."""
    async with relay(tmp_path) as (daemon, _):
        [listed] = (tmp_path / "run").iterdir()
        assert json.loads(listed.read_bytes())["pid"] == daemon.process.pid
        daemon.tell(signal.SIGINT)
        assert await daemon.exit(5) == 0
        assert list((tmp_path / "run").iterdir()) == []


async def steady(look):
    """What is seen once it has not changed for a second and a half: a daemon writes of its own accord until it is stocked."""
    seen, since = look(), time.perf_counter()
    while time.perf_counter() - since < 1.5:
        await asyncio.sleep(0.05)
        now = look()
        if now != seen:
            seen, since = now, time.perf_counter()
    return seen


async def test_a_second_instance_leaves_every_file_of_the_first_as_it_was(tmp_path):
    """State, secret, events and runtime files keep their bytes and times; the first one serves on."""
    async with house(tmp_path) as daemon:
        await daemon.talks_on()
        await daemon.written()

        def files():
            paths = [
                path
                for path in daemon.state.parent.rglob("*")
                if path.is_file() and not path.name.startswith(DATABASES)
            ]
            return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in [*paths, tmp_path / "events.jsonl"]}

        before = await steady(files)
        assert {path.name for path in before} >= {"state.json", "state.json.key", f"{daemon.process.pid}.json"}
        second = Daemon.launch(
            tmp_path / "second",
            "--port",
            str(daemon.port),
            state__path=daemon.state,
            state__events_path=tmp_path / "events.jsonl",
        )
        assert await second.exit() == 3
        assert files() == before
        assert "taken" in second.log()
        await daemon.talks_on()


# -- the start -------------------------------------------------------------------------------------

BAD_SETTINGS = {
    "pool.size=99": ("pool.size", "99", "16"),
    "pool.sice=3": ("pool.sice", "pool.size"),
    "listen.drain_ms=-1": ("listen.drain_ms", "-1", "0"),
    "routing.mode=on": ("routing.mode", "on", "observe"),
    "listen.host=0.0.0.0": ("listen.host", "0.0.0.0", "listen.token"),
}


@pytest.mark.parametrize(("given", "words"), BAD_SETTINGS.items(), ids=BAD_SETTINGS)
def test_bad_settings_name_key_value_range_and_the_nearest_name(tmp_path, given, words):
    """Exit code 2, nothing on stdout, nothing made."""
    command = [*fake.COMMAND, "serve", "--port", "0", "--set", given]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (2, "")
    assert all(word in done.stderr for word in words), done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


async def test_without_ipv6_it_serves_ipv4_and_says_nothing(tmp_path):
    """In a network of its own, which has no ::1."""
    if not ROOT_ON_LINUX or not shutil.which("unshare"):
        pytest.skip("only root on Linux can make a network without IPv6")
    script = tmp_path / "alone.sh"
    script.write_text(
        "ip link set lo up && echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6 || exit 77\n"
        f"{' '.join(fake.COMMAND)} serve --port 0 --set state.path={tmp_path}/state.json >out 2>err & pid=$!\n"
        "for i in $(seq 300); do grep -q http out && break; sleep 0.1; done\n"
        "url=$(grep -o 'http://[0-9.:]*' out)\n"
        f"{sys.executable} -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).status)' $url/-/health\n"
        "kill $pid; wait $pid; echo exit $?\n"
    )
    command = ["unshare", "-n", "sh", str(script)]
    done = subprocess.run(command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=60)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no network of our own here: {done.stderr}")
    assert done.stdout.split() == ["200", "exit", "0"], (done.stdout, done.stderr, (tmp_path / "err").read_text())
    assert (tmp_path / "out").read_text().count("\n") == 1
    assert (tmp_path / "err").read_text() == ""


async def test_a_taken_ipv6_loopback_is_a_taken_port(tmp_path):
    """Else half of the clients would reach somebody else."""
    try:
        taken = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 here")
    with taken:
        daemon = Daemon.launch(tmp_path, "--port", str(taken.getsockname()[1]))
        assert await daemon.exit() == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stderr", "stdout"]


@pytest.fixture
def few_files(monkeypatch):
    """Daemons that start with 256 open files allowed, as launchd has it."""
    if not shutil.which("sh") or sys.platform == "win32":
        pytest.skip("no sh")
    monkeypatch.setattr(fake, "COMMAND", ["sh", "-c", 'ulimit -Sn 256; exec "$@"', "sh", *fake.COMMAND])


async def test_200_streams_run_where_256_files_are_allowed(tmp_path, few_files):
    """It raises the soft limit itself; each stream needs two."""
    async with relay(tmp_path) as (daemon, upstream), contextlib.AsyncExitStack() as stack:
        case = upstream.case(lambda exchange: ticking(exchange, 20, 0.1))
        clients = [await stack.enter_async_context(await Client.open(daemon.host, daemon.port)) for _ in range(200)]
        for client in clients:
            await client.send(request(case.on(ROUTED)))
        await case.until(lambda: len(case.requests) == 200, 20, "200 streams at once")
        assert daemon.files() > 400
        replies = await asyncio.gather(*(client.reply(within=30) for client in clients))
        assert {(reply.status, reply.complete, reply.data) for reply in replies} == {(200, True, TICK * 20)}


@pytest.fixture
def obeying(monkeypatch):
    """Daemons that file modes hold for, root's too."""
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("root ignores file modes, and there is no setpriv to make it obey")
        command = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", *fake.COMMAND]
        monkeypatch.setattr(fake, "COMMAND", command)


async def serves(folder: Path, env: dict[str, str]) -> Daemon:
    """Start where nobody says where files go, forward, and stop; returns what is left of it."""
    async with relay(folder, env=env, state__path=None, state__events_path=None) as (daemon, upstream):
        reply = await ask(daemon, upstream.case(play(sized(b"ok"))).on(ROUTED))
        assert (reply.status, reply.data) == (200, b"ok")
        found = json.loads((await ask(daemon, b"/-/status", body=b"", method=b"GET")).data)
        daemon.found = found
        daemon.tell(signal.SIGTERM)
        assert await daemon.exit(8) == 0
    assert "Traceback" not in daemon.log()
    return daemon


async def test_a_read_only_home_is_said_in_a_line_and_traffic_flows(tmp_path, obeying):
    """Nothing is kept, and status says so."""
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    env = {name: value for name, value in environment(home).items() if not name.startswith("XDG_")}
    daemon = await serves(tmp_path / "d", env)
    assert str(home) in daemon.found["problems"]["state"]
    await until(lambda: [line for line in daemon.log().splitlines() if '"part":"state"' in line])
    assert len([line for line in daemon.log().splitlines() if '"part":"state"' in line]) == 1
    assert list(home.iterdir()) == []


async def test_a_relative_xdg_folder_is_ignored(tmp_path):
    """As the specification of those variables says."""
    env = environment(tmp_path / "home") | {
        "XDG_STATE_HOME": "relative",
        "XDG_CONFIG_HOME": "../x",
        "XDG_CACHE_HOME": ".",
    }
    daemon = await serves(tmp_path / "d", env)
    assert daemon.found["state"]["path"] == str(tmp_path / "home/.local/state/ocpool/state.json")
    assert not (tmp_path / "d" / "relative").exists()


async def test_with_an_empty_environment_the_home_of_the_user_is_used(tmp_path):
    """``env -i``: no HOME, no PATH; the home is the one that the system lists."""
    if not ROOT_ON_LINUX:
        pytest.skip("only root on Linux can have another home listed for it")
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "passwd").write_text(f"root:x:0:0::{home}:/bin/sh\n")
    program = shutil.which("ocpool", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("ocpool is not installed beside this Python")
    script = (
        f"mount --bind {tmp_path}/passwd /etc/passwd && exec env -i {program} serve --port 0 --set probe.enabled=false"
    )
    with (tmp_path / "out").open("wb") as out, (tmp_path / "err").open("wb") as err:
        process = subprocess.Popen(["unshare", "-m", "sh", "-c", script], cwd="/", stdout=out, stderr=err)
    try:
        await until(lambda: process.poll() is not None or (tmp_path / "out").read_bytes(), 30)
        if process.poll() is not None:
            pytest.skip(f"no mounts of our own here: {(tmp_path / 'err').read_text()}")
        assert b"listens on http://127.0.0.1:" in (tmp_path / "out").read_bytes()
        await until(lambda: (home / ".local/state/ocpool/state.json.key").is_file())
    finally:
        process.terminate()
        assert process.wait(10) == 0
    assert (tmp_path / "err").read_text() == ""
