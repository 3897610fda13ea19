"""pool/stores under writers that are killed at random: every reading parses, nothing piles up, nothing is lost."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from time import perf_counter, sleep

import orjson
import pytest

from pool.stores.file import read
from pool.stores.schema import is_wellformed

ROOT = Path(__file__).parent.parent

WRITER = """
import sys
from pathlib import Path
from pool.ports import Batch, Bind, Release, Reserve, Hold
from pool.stores.file import FileStore
from tests.fakes.pool import NOW, STOCK, spare
from tests.test_pool_stores_file import binding

path, name, length = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
store = FileStore(path, name, 5000)
print("ready", flush=True)
number = 0
while True:
    number += 1
    wide = binding(f"{name}-{number % 5}", f"{name}-{number}" + "x" * length, NOW)
    reserved = store.commit(Batch((Bind(wide), Reserve(STOCK, 1)), 8 * 3600_000), NOW + number).reserved
    sent = [one.id for one in reserved]
    if sent:
        print("took", *sent, flush=True)
    store.commit(Batch((Hold(()), Release((spare(f"{name}-s{number}"),))), 8 * 3600_000), NOW + number)
"""


def writer(path: Path, name: str, length: int, log: Path) -> subprocess.Popen:
    with log.open("ab") as out:
        return subprocess.Popen([sys.executable, "-c", WRITER, str(path), name, str(length)], cwd=ROOT, stdout=out)


def storm(folder: Path, seconds: float, kills: int, seed: int) -> None:
    draw = random.Random(seed)
    path, log = folder / "state.json", folder / "log.txt"
    lengths = [0, 400, 3000]
    writers = [writer(path, f"w{n}", lengths[n], log) for n in range(3)]
    readings, born = 0, 3
    patience = perf_counter() + 60
    while not path.exists() and perf_counter() < patience:  # a busy machine takes its time to start three processes
        sleep(0.01)
    next_kill = perf_counter() + 1.5
    end = perf_counter() + seconds
    try:
        while perf_counter() < end or kills:
            if path.exists():
                assert is_wellformed(orjson.loads(path.read_bytes()))
                assert path.stat().st_mode & 0o777 == 0o600
                readings += 1
            if kills and perf_counter() > next_kill:
                victim = draw.randrange(3)
                writers[victim].send_signal(signal.SIGKILL)
                writers[victim].wait()
                writers[victim] = writer(path, f"w{born}", lengths[victim], log)
                born, kills, next_kill = born + 1, kills - 1, perf_counter() + draw.uniform(0.3, 0.9)
            sleep(0.002)
    finally:
        for one in writers:
            one.kill()
            one.wait()
    assert readings > 50
    taken = [name for line in log.read_text().splitlines() if line.startswith("took") for name in line.split()[1:]]
    assert len(taken) == len(set(taken)), "one spare was given to two processes"
    assert not {one.id for one in read(path).free} & set(taken)
    leftovers = [one.name for one in folder.iterdir() if one.name.endswith(".tmp")]
    assert len(leftovers) <= born
    assert not [one for one in folder.iterdir() if "corrupt" in one.name]


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_writers_killed_at_random_leave_a_file_that_always_parses(tmp_path):
    storm(tmp_path, seconds=5, kills=5, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_hundred_rounds_of_the_same(tmp_path):
    storm(tmp_path, seconds=60, kills=100, seed=2)


def test_two_writers_of_different_lengths_never_mix(tmp_path):
    path, log = tmp_path / "state.json", tmp_path / "log.txt"
    writers = [writer(path, "short", 0, log), writer(path, "long", 5000, log)]
    patience = perf_counter() + 60
    try:
        while not path.exists() and perf_counter() < patience:
            sleep(0.01)
        end = perf_counter() + 4
        while perf_counter() < end:
            if path.exists():
                contents = read(path)
                assert {len(b.routed_id) > 5000 for b in contents.bindings.values()} <= {True, False}
                for one in contents.bindings.values():
                    assert one.routed_id.count("x") in {0, 5000}
            sleep(0.002)
    finally:
        for one in writers:
            one.kill()
            one.wait()
