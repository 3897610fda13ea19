"""The state file in every bad condition, with a real daemon: traffic flows and one line says what is wrong."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pool.stores.lock import exclusive
from tests.fakes import daemon as fake
from tests.fakes.kept import house, until

LINUX_ROOT = sys.platform == "linux" and os.geteuid() == 0

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
        await daemon.talks_on()
        await daemon.written()
        [aside] = path.parent.glob("state.json.corrupt-*")
        assert aside.read_bytes() == content
        await until(lambda: daemon.said("state.json"))
        [line] = daemon.said("state.json")
        assert aside.name in json.dumps(line)
    assert not list(path.parent.glob(".*.tmp"))


async def test_a_directory_in_its_place_is_said_and_traffic_goes_on(tmp_path):
    """Nothing is deleted."""
    path = tmp_path / "kept" / "state.json"
    path.mkdir(parents=True)
    (path / "precious").write_text("x")
    async with house(tmp_path) as daemon:
        await daemon.troubled("state.json", "directory")
    assert (path / "precious").read_text() == "x"


async def test_a_link_that_leads_to_itself_is_said_and_traffic_goes_on(tmp_path):
    """It can never be opened, whoever one is."""
    path = tmp_path / "kept" / "state.json"
    path.parent.mkdir()
    path.symlink_to(path)
    async with house(tmp_path) as daemon:
        await daemon.troubled("state.json")


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
        await daemon.troubled("state.json")
        assert path.stat().st_mode & 0o777 == 0
    path.chmod(0o600)
    assert daemon.kept() == {"version": 1, "entries": [], "bindings": {}}


async def test_a_folder_that_cannot_be_written_is_said_and_traffic_goes_on(tmp_path, obeying):
    """Mode 0500."""
    folder = tmp_path / "kept"
    folder.mkdir(mode=0o500)
    async with house(tmp_path) as daemon:
        await daemon.troubled(str(folder / "state.json"))
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
            await daemon.troubled(str(folder))
            subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
            assert (await daemon.written(40))["bindings"]
            assert (await daemon.status())["state"]["problem"] is None


def fill(path: Path) -> None:
    """Take every byte that is left."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


async def test_a_full_disk_keeps_the_old_file_and_traffic_flows(tmp_path):
    """512 kB, filled to the brim; when there is room again, it is written."""
    folder = tmp_path / "kept"
    path = folder / "state.json"
    with tmpfs(folder, "512k"):
        async with house(tmp_path) as daemon:
            await daemon.talks_on()
            await daemon.written()
            fill(folder / "filler")
            before = path.read_bytes()
            await daemon.troubled("state.json", "space")
            assert path.read_bytes() == before
            assert not list(folder.glob(".*.tmp"))
            (folder / "filler").unlink()
            await until(lambda: len(daemon.kept()["bindings"]) > len(json.loads(before)["bindings"]), 40)


async def test_a_newer_file_is_read_and_never_written(tmp_path):
    """Version 2, with keys that nobody knows yet."""
    path = tmp_path / "kept" / "state.json"
    path.parent.mkdir()
    path.write_text('{"version": 2, "entries": [], "bindings": {}, "future": {"a": [1]}}\n')
    before = path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino
    async with house(tmp_path) as daemon:
        await daemon.troubled("state.json", "newer")
    assert (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) == before


@pytest.mark.parametrize("harm", ["deleted", "folder deleted", "garbage", "empty"])
async def test_a_running_daemon_writes_its_memory_over_a_loss(tmp_path, harm):
    """Its conversations stay on their ids, and are in the new file."""
    path = tmp_path / "kept" / "state.json"
    async with house(tmp_path) as daemon:
        sent_on = await daemon.say("steady-conversation")
        assert await daemon.say("steady-conversation") == sent_on
        before = (await daemon.written())["bindings"]
        with exclusive(path, 10_000):  # between two writes of the daemon, so that none repairs the harm unseen
            if harm == "deleted":
                path.unlink()
            elif harm == "folder deleted":
                shutil.rmtree(path.parent)
            else:
                path.write_bytes(b"\x00garbage" if harm == "garbage" else b"")
        assert await daemon.say("steady-conversation") == sent_on
        await until(lambda: path.is_file() and path.read_bytes()[:1] == b"{" and daemon.kept()["bindings"])
        assert {k: b["routedId"] for k, b in before.items()}.items() <= {
            k: b["routedId"] for k, b in daemon.kept()["bindings"].items()
        }.items()
        assert await daemon.say("steady-conversation") == sent_on
        await daemon.talks_on()
        asides = list(path.parent.glob("state.json.corrupt-*"))
        assert len(asides) == (harm in {"garbage", "empty"})
        await until(lambda: len(daemon.said("corrupt-")) == len(asides))
