"""Where a running daemon is found."""

import os
import stat
import subprocess
import sys

import orjson
from hypothesis import given
from hypothesis import strategies as st

from proxy.runtime import Running, announce, find, withdraw


def running(pid=None, at=1000, port=8377):
    """A daemon that says it is this process."""
    return Running(f"http://127.0.0.1:{port}", pid if pid is not None else os.getpid(), "0.1.0", at)


def dead_pid():
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_daemon_is_found_by_what_it_announced(tmp_path):
    """The same facts come back, camelCase on disk, in a private file of a private folder."""
    before = os.umask(0)
    try:
        path = announce(tmp_path, running())
    finally:
        os.umask(before)
    assert find(tmp_path) == [running()]
    assert orjson.loads(path.read_bytes()) == {
        "address": "http://127.0.0.1:8377",
        "pid": os.getpid(),
        "version": "0.1.0",
        "startedAt": 1000,
    }
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_daemon_that_stopped_is_not_found(tmp_path):
    """It takes its file away, and a second time does no harm."""
    path = announce(tmp_path, running())
    withdraw(path)
    withdraw(path)
    withdraw(None)
    assert find(tmp_path) == []


def test_a_daemon_that_died_does_not_count_and_the_next_one_cleans_up(tmp_path):
    """Readers only look; a start removes what dead processes left."""
    dead = announce(tmp_path, running(dead_pid()))
    assert find(tmp_path) == []
    assert dead.exists()
    announce(tmp_path, running())
    assert not dead.exists()
    assert find(tmp_path) == [running()]


def test_the_daemon_started_last_comes_first(tmp_path):
    """Two that live: this process and its parent."""
    announce(tmp_path, running(os.getppid(), at=5, port=1))
    announce(tmp_path, running(at=9, port=2))
    assert [found.started_at for found in find(tmp_path)] == [9, 5]


def test_a_file_copied_under_another_number_does_not_count(tmp_path):
    """What a file says must match its name."""
    path = announce(tmp_path, running())
    path.rename(path.with_name(f"{os.getppid()}.json"))
    assert find(tmp_path) == []


def test_no_folder_is_no_daemon(tmp_path):
    """Nothing was ever started here; nothing is created by looking."""
    assert find(tmp_path / "nowhere") == []
    assert not (tmp_path / "nowhere").exists()


@given(
    data=st.binary(max_size=300)
    | st.builds(
        orjson.dumps,
        st.dictionaries(
            st.sampled_from(["address", "pid", "version", "startedAt"]),
            st.none() | st.integers(-5, 5) | st.text(max_size=3),
        ),
    )
)
def test_a_broken_file_is_no_daemon(tmp_path_factory, data):
    """Whatever is in it, nobody fails."""
    folder = tmp_path_factory.mktemp("state")
    (folder / "run").mkdir()
    (folder / "run" / f"{os.getpid()}.json").write_bytes(data)
    assert find(folder) == []
