"""Who used the machine while something was measured."""

import os
import subprocess
import sys
import time

import pytest

from tests.bench.machine import CORES, busy_seconds, cpu_seconds, foreign_share, resident_bytes

STAT = """\
cpu  999 999 999 999 999 999 999 999 0 0
cpu0 100 20 30 5000 400 1 2 3 0 0
cpu1 200 0 100 6000 50 0 0 100 77 0
cpu10 900 900 900 0 0 0 0 0 0 0
intr 12345
"""

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def test_busy_is_all_but_idle_and_waiting_on_the_cores_that_we_may_use():
    tick = os.sysconf("SC_CLK_TCK")
    assert busy_seconds(STAT, [0]) == 156 / tick
    assert busy_seconds(STAT, [0, 1]) == (156 + 400) / tick
    assert busy_seconds(STAT, []) == 0


@pytest.mark.parametrize(
    ("busy", "own", "took", "cores", "share"),
    [(3.0, 2.5, 2.0, 2, 0.125), (2.0, 2.0, 2.0, 2, 0.0), (1.9, 2.0, 2.0, 1, 0.0), (9.0, 0.0, 2.0, 2, 1.0)],
)
def test_the_share_of_others_is_of_all_that_was_to_be_had(busy, own, took, cores, share):
    assert foreign_share(busy, own, took, cores) == share


@linux
def test_the_processor_time_of_another_process_is_told():
    """One that works, beside one that waits."""
    command = [
        sys.executable,
        "-c",
        "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass\ninput()",
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        try:
            deadline = time.perf_counter() + 60
            while cpu_seconds(process.pid) < 0.2 and time.perf_counter() < deadline:
                time.sleep(0.01)
            assert 0.2 <= cpu_seconds(process.pid)
            assert 2**20 < resident_bytes(process.pid) < 2**30
            assert CORES
        finally:
            process.kill()
