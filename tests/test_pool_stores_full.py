"""pool/stores on a disk that is full, a folder that is read-only and a file that may not be read."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

FULL = """
import resource, signal, sys
from pathlib import Path
from pool.ports import Batch, Bind
from pool.stores.file import FileStore, read
from tests.fakes.pool import NOW
from tests.test_pool_stores_file import binding, LEASE

path = Path(sys.argv[1])
store = FileStore(path)
assert store.start(NOW).applied
assert store.commit(Batch((Bind(binding()),), LEASE), NOW).applied
before = path.read_bytes()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, len(before) * 9))
synced = store.commit(Batch(tuple(Bind(binding(f"c{n}", f"r{n}")) for n in range(9)), LEASE), NOW)
assert not synced.applied and "cannot be written: File too large" in synced.problem, synced
assert path.read_bytes() == before and set(synced.contents.bindings) == {binding().key}
assert sorted(one.name for one in path.parent.iterdir()) == ["state.json", "state.json.guard"]
resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) * 9, len(before) * 9))
assert store.commit(Batch((Bind(binding("c2", "r2")),), LEASE), NOW).problem is None
"""

NOBODY = """
import os, sys
from pathlib import Path
from pool.ports import Batch, Bind, Reserve
from pool.stores.file import FileStore
from tests.fakes.pool import NOW, STOCK
from tests.test_pool_stores_file import binding, LEASE

unreadable, readonly = map(Path, sys.argv[1:])
FileStore(Path(sys.argv[1]).with_name("warm-up")).start(NOW)  # what is imported late may lie out of reach
os.setgid(65534), os.setuid(65534)
synced = FileStore(unreadable).start(NOW)
assert (synced.applied, synced.contents) == (False, None)
assert "cannot be read: Permission denied" in synced.problem, synced.problem
store = FileStore(readonly)
synced = store.start(NOW)
assert not synced.applied and set(synced.contents.bindings) == {binding().key}, synced
assert "Permission denied" in synced.problem, synced.problem
synced = store.commit(Batch((Bind(binding("c2", "r2")), Reserve(STOCK, 1)), LEASE), NOW)
assert not synced.applied and synced.reserved == () and "Permission denied" in synced.problem
"""

ROOT = Path(__file__).parent.parent


def run(code: str, *paths: Path) -> None:
    """Run the code in a process of its own, from the root of the tree."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, *map(str, paths)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs file size limits")
def test_on_a_full_disk_the_old_file_survives_and_the_problem_is_named(tmp_path):
    run(FULL, tmp_path / "state.json")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="becomes another user")
def test_what_may_not_be_read_or_written_is_a_problem_in_words():
    from pool.ports import Batch, Bind
    from pool.stores.file import FileStore
    from tests.fakes.pool import NOW
    from tests.test_pool_stores_file import LEASE, binding

    with tempfile.TemporaryDirectory() as folder:
        unreadable, readonly = Path(folder, "a", "state.json"), Path(folder, "b", "state.json")
        for path in (unreadable, readonly):
            FileStore(path).commit(Batch((Bind(binding()),), LEASE), NOW)
            for one in path.parent.iterdir():
                one.chmod(0o644)
            path.parent.chmod(0o755)
        Path(folder).chmod(0o755)
        unreadable.chmod(0)
        unreadable.with_name("state.json.guard").chmod(0o666)
        run(NOBODY, unreadable, readonly)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may do anything")
def test_a_read_only_folder_is_a_problem_in_words(tmp_path):
    from pool.stores.file import FileStore
    from tests.fakes.pool import NOW

    tmp_path.chmod(0o500)
    synced = FileStore(tmp_path / "state.json").start(NOW)
    tmp_path.chmod(0o700)
    assert not synced.applied
    assert "Permission denied" in synced.problem
