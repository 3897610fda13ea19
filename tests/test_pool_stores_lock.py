"""pool/stores/lock.py"""

import errno
import os
import shutil
import subprocess
import sys
import threading
from time import perf_counter

import portalocker
import pytest

from pool.stores import lock
from pool.stores.lock import exclusive
from pool.stores.trouble import Trouble

SHIM = """
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
int flock(int fd, int op) {
    const char *how = getenv("FLOCK_ERRNO");
    errno = how ? atoi(how) : ENOSYS;
    return -1;
}
"""


def test_the_lock_is_exclusive_and_waited_for_within_a_bound(tmp_path):
    path = tmp_path / "state.json"
    began = perf_counter()
    with exclusive(path, 1000), pytest.raises(Trouble, match="locked by another process for over 200 ms"):
        with exclusive(path, 200):
            pass
    assert 0.15 < perf_counter() - began < 2
    with exclusive(path, 200):
        pass


def test_a_lock_that_is_let_go_in_time_is_taken(tmp_path):
    path = tmp_path / "state.json"
    held, let_go = threading.Event(), threading.Event()

    def hold():
        with exclusive(path, 1000):
            held.set()
            let_go.wait(5)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(5)
    threading.Timer(0.1, let_go.set).start()
    with exclusive(path, 3000):
        pass
    thread.join()


def test_the_sidecar_stays_and_is_private(tmp_path):
    with exclusive(tmp_path / "state.json", 100):
        pass
    guard = tmp_path / "state.json.guard"
    assert guard.stat().st_mode & 0o777 == 0o600


def test_a_sidecar_that_was_deleted_under_a_holder_is_no_second_lock_on_the_old_one(tmp_path):
    path = tmp_path / "state.json"
    with exclusive(path, 100):
        (tmp_path / "state.json.guard").unlink()
    with exclusive(path, 100), pytest.raises(Trouble), exclusive(path, 100):
        pass


def test_a_killed_holder_leaves_no_lock(tmp_path):
    path = tmp_path / "state.json"
    code = (
        "import sys, time; from pathlib import Path; from pool.stores.lock import exclusive\n"
        "with exclusive(Path(sys.argv[1]), 1000):\n    print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        with pytest.raises(Trouble), exclusive(path, 50):
            pass
        process.kill()
        process.wait()
    with exclusive(path, 1000):
        pass


def test_a_folder_that_is_not_there_is_trouble_in_words(tmp_path):
    with pytest.raises(Trouble, match="cannot be locked: No such file"), exclusive(tmp_path / "no" / "state", 100):
        pass


@pytest.mark.parametrize(("number", "words"), [(errno.ENOSYS, "has no locks"), (errno.EIO, "cannot be locked: Input")])
def test_a_lock_call_that_fails_is_told_in_words(tmp_path, monkeypatch, number, words):
    def fails(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(portalocker.portalocker, "LOCKER", fails)
    with pytest.raises(Trouble, match=words), exclusive(tmp_path / "state.json", 100):
        pass


def test_a_sidecar_that_is_replaced_again_and_again_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "_is_still_there", lambda *_: False)
    with pytest.raises(Trouble, match="keeps being replaced"), exclusive(tmp_path / "state.json", 100):
        pass


LOCKLESS = """
import errno, os, sys
from pathlib import Path
from pool.ports import Batch, Release
from pool.stores.file import FileStore
from tests.fakes.pool import NOW, spare

for name, words in (("ENOSYS", "no locks"), ("ENOLCK", "no locks"), ("EOPNOTSUPP", "no locks"), ("EIO", "cannot be")):
    os.environ["FLOCK_ERRNO"] = str(getattr(errno, name))
    store = FileStore(Path(sys.argv[1]))
    problem = store.start(NOW).problem
    assert words in problem, problem
    assert not store.commit(Batch((Release((spare(),)),)), NOW).applied
    assert [store.grant_probes("p", 1, 1, NOW) for _ in range(2)] == [1, 0]
"""


@pytest.mark.skipif(shutil.which("gcc") is None or sys.platform != "linux", reason="needs a C compiler")
def test_a_file_system_without_locks_is_trouble_at_once(tmp_path):
    source, shim = tmp_path / "shim.c", tmp_path / "shim.so"
    source.write_text(SHIM)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", shim, source], check=True)
    done = subprocess.run(
        [sys.executable, "-c", LOCKLESS, str(tmp_path / "state.json")],
        env=os.environ | {"LD_PRELOAD": str(shim)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
