"""Four real processes on one state file, killed at random: what the upstream saw of their ids."""

import os
import random
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from time import perf_counter, sleep, time

import pytest

from pool.ids import id_digest
from pool.stores.file import read
from pool.stores.trouble import Trouble

ROOT = Path(__file__).parent.parent.parent
HONOURED_WITHIN_S = 2.0

PROCESS = """
import os, random, sys, time
from pathlib import Path
from pool.ids import new_id
from pool.model import Shape, Source
from pool.refill import ProbeWish
from tests.fakes.pool import STOCK, Process, fast, probed, refused, slow, wish

draw = random.Random(int(sys.argv[3]))
log = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
now = lambda: int(time.time() * 1000)
process = Process(Path(sys.argv[1]), now(), wait_ms=3000, pool={"adaptive": False})
routes, inventory = process.routes, process.inventory

def send(start):
    natural = "n" if start.source is Source.NATURAL else "r"
    os.write(log, f"{time.time()} {start.wish.conversation} {natural} {start.routed_id}\\n".encode())

def outcome(start):
    if start.routed_id[0] in "012" and start.source is not Source.NATURAL:  # three in sixteen are bad routes
        return refused() if start.routed_id[1] in "01234567" else slow(uncached_tokens=1)
    return fast(upstream_ms=draw.uniform(300, 2000))

while True:
    process.tick(now())
    if inventory.count(STOCK) < 3:
        routes.admit(ProbeWish(STOCK), probed(new_id(Shape.UUID)), now())
    start = routes.start(wish(f"c{draw.randrange(40)}", value=None), now())
    send(start)
    seen = outcome(start)
    replay = routes.replace(start, now()) if seen.refused else None
    routes.observe(start, seen, now())
    if replay is not None:
        send(replay)
        again = outcome(replay)
        routes.observe(replay, refused(replayed=True) if again.refused else fast(replayed=True), now())
    time.sleep(0.004)
"""


def process(path: Path, log: Path, seed: int) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", PROCESS, str(path), str(log), str(seed)], cwd=ROOT)


def retired(path: Path, known: dict[str, float]) -> None:
    """Note when a retirement was first seen in the file."""
    try:
        now = time()
        for digest in read(path).retired:
            known.setdefault(digest, now)
    except Trouble:
        pass


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_no_routed_id_is_seen_for_two_conversations_and_retirements_are_honoured(tmp_path):
    path, log = tmp_path / "state.json", tmp_path / "seen.txt"
    draw = random.Random(7)
    running = [process(path, log, seed) for seed in range(4)]
    known: dict[str, float] = {}
    born, end, next_kill = 4, perf_counter() + 14, perf_counter() + 3
    try:
        while perf_counter() < end:
            retired(path, known)
            if perf_counter() > next_kill:
                victim = draw.randrange(4)
                running[victim].send_signal(signal.SIGKILL)
                running[victim].wait()
                running[victim] = process(path, log, born)
                born, next_kill = born + 1, perf_counter() + draw.uniform(0.8, 2)
            sleep(0.02)
        assert all(one.poll() is None for one in running), "a process fell over"
    finally:
        for one in running:
            one.kill()
            one.wait()
    seen = [line.split() for line in log.read_text().splitlines()]
    owners = defaultdict(set)
    for _, conversation, kind, routed_id in seen:
        if kind == "r":
            owners[routed_id].add(conversation)
    assert len(seen) > 500
    assert len(owners) > 40
    assert not {routed_id: names for routed_id, names in owners.items() if len(names) > 1}
    assert len(known) > 10
    late = [
        (float(at) - known[digest], name)
        for at, name, kind, routed_id in seen
        if kind == "r" and (digest := id_digest(routed_id)) in known and float(at) > known[digest] + HONOURED_WITHIN_S
    ]
    assert not late
    contents = read(path)
    assert not {one.id for one in contents.free} & owners.keys()
