"""Rule 24: whatever state the state is in, traffic flows, and one clear line says what is lost."""

import asyncio
import fcntl
import json
import os
import stat
from pathlib import Path

import pytest

from tests.fakes.daemon import Daemon, environment
from tests.fakes.relay import Relay, Relays
from tests.fakes.upstream import ROUTED, Upstream, sized

GOOD = json.dumps({"version": 1, "entries": [], "bindings": {}})
BROKEN = [
    pytest.param(b"", id="empty"),
    pytest.param(GOOD[:20].encode(), id="half"),
    pytest.param(b'{"version": 1, "entries": 7, "bindings": []}', id="wrong-shape"),
    pytest.param(b"[]", id="a-list"),
    pytest.param(b"\x00\xff\xfe" * 300, id="binary"),
    pytest.param(b"[" * 200_000, id="deep"),
    pytest.param(b'{"version": 99, "entries": [], "bindings": {}, "new": true}', id="newer"),
]


async def _works(relay: Relay) -> None:
    """Two conversations, one of them coming back."""
    for session in (b"first-conversation", b"second-conversation", b"first-conversation"):
        case = relay.case(sized(b"ok"))
        assert (await relay.ask(case.on(ROUTED), session=session)).data == b"ok"


def _folder(relays: Relays, name: str) -> Path:
    folder = relays.folder / f"state-{name}-{os.getpid()}-{len(list(relays.folder.iterdir()))}"
    folder.mkdir(mode=0o700)
    return folder


async def _blames_state(daemon: Daemon) -> bool:
    """Does the log, which is written in its own time, have a line about it?"""
    for _ in range(60):
        if '"part":"state"' in daemon.log():
            return True
        await asyncio.sleep(0.1)
    return False


@pytest.mark.parametrize("content", BROKEN)
async def test_a_state_file_that_cannot_be_used_does_not_stop_the_start(relays: Relays, content: bytes):
    path = _folder(relays, "bad") / "state.json"
    path.write_bytes(content)
    relay = await relays.make(state__path=path)
    relay.needs_daemon()
    await _works(relay)
    assert content == b"" or await _blames_state(relay.daemon), relay.daemon.log()
    await relay.daemon.stop()
    kept = [file.read_bytes() for file in path.parent.iterdir() if file.is_file()]
    assert content in kept or content == b"", "the bad file was not kept aside"
    if b"99" in content:
        assert path.read_bytes() == content, "a newer file was written to"
    elif path.exists():
        json.loads(path.read_bytes() or b"{}")
    assert not [file for file in path.parent.iterdir() if "tmp" in file.name]


async def test_a_folder_in_the_files_place_does_not_stop_the_start(relays: Relays):
    path = _folder(relays, "dir") / "state.json"
    path.mkdir()
    relay = await relays.make(state__path=path)
    relay.needs_daemon()
    await _works(relay)
    assert await _blames_state(relay.daemon)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
async def test_a_folder_that_cannot_be_written_does_not_stop_the_start(relays: Relays):
    folder = _folder(relays, "readonly")
    folder.chmod(0o500)
    relay = await relays.make(state__path=folder / "state.json", state__events_path=folder / "events.jsonl")
    relay.needs_daemon()
    await _works(relay)
    assert await _blames_state(relay.daemon)


async def test_a_path_that_can_never_be_written_does_not_stop_the_start(relays: Relays):
    """Also for root: a file where a folder should be, and the kernel's own file system."""
    file = _folder(relays, "file") / "not-a-folder"
    file.write_text("x")
    for folder in (file, Path("/proc/nothing-here")):
        relay = await relays.make(state__path=folder / "state.json", state__events_path=folder / "events.jsonl")
        relay.needs_daemon()
        await _works(relay)
        assert await _blames_state(relay.daemon)


async def test_a_full_disk_does_not_stop_traffic_and_the_old_file_survives(relays: Relays):
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    relay = await relays.make(state__events_path="/dev/full")
    relay.needs_daemon()
    await _works(relay)


async def test_a_lock_that_is_held_delays_neither_the_start_nor_a_request(relays: Relays):
    path = _folder(relays, "locked") / "state.json"
    path.write_text(GOOD)
    guard = path.with_name("state.json.guard")
    with guard.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        relay = await asyncio.wait_for(relays.make(state__path=path), 15)
        relay.needs_daemon()
        await asyncio.wait_for(_works(relay), 3)
        code = await asyncio.wait_for(relay.daemon.stop(), 15)
    assert code == 0
    assert path.read_text() == GOOD


async def test_files_and_folders_are_private(relays: Relays):
    path = _folder(relays, "private") / "inner" / "state.json"
    relay = await relays.make(state__path=path, state__events_path=path.with_name("events.jsonl"))
    relay.needs_daemon()
    await _works(relay)
    await relay.daemon.stop()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == (0o700 if file.is_dir() else 0o600), file


async def test_the_state_survives_a_restart_and_unknown_keys_with_it(relays: Relays):
    path = _folder(relays, "kept") / "state.json"
    path.write_text(json.dumps({"version": 1, "entries": [], "bindings": {}, "ofTheFuture": {"kept": [1, 2]}}))
    for _ in range(2):
        relay = await relays.make(state__path=path)
        relay.needs_daemon()
        for _ in range(3):
            await relay.ask(relay.case(sized(b"ok")).on(ROUTED), session=b"a-conversation-that-lasts")
        await relay.daemon.stop()
        assert json.loads(path.read_text())["ofTheFuture"] == {"kept": [1, 2]}


async def test_killed_at_random_the_file_is_always_whole_and_leaves_no_litter(relays: Relays):
    path = _folder(relays, "killed") / "state.json"
    upstream = await Upstream().start()
    relay = None
    for round_number in range(4):
        relay = await relays.make(state__path=path, upstream=upstream)
        relay.needs_daemon()
        for number in range(12):
            for _ in range(2):
                await relay.ask(relay.case(sized(b"ok")).on(ROUTED), session=b"talk-%d-%d" % (round_number, number))
        await asyncio.sleep(0.13 * round_number + 0.9)
        relay.daemon.kill()
        if path.exists():
            assert json.loads(path.read_text())["version"] == 1
    assert len(list(path.parent.iterdir())) < 12


async def test_without_a_home_everything_works_from_memory(relays: Relays):
    for env in (
        {"PATH": os.environ["PATH"], "PYTHONPATH": environment(relays.folder)["PYTHONPATH"]},
        environment(relays.folder, HOME="/nonexistent", XDG_STATE_HOME="/nonexistent/state"),
        environment(relays.folder, XDG_STATE_HOME="relative/path"),
        environment(relays.folder, HOME="/proc", XDG_STATE_HOME="/proc/none"),
    ):
        relay = await relays.make(env=env, state__path=None, state__events_path=None)
        relay.needs_daemon()
        await _works(relay)
        await relay.daemon.stop()
