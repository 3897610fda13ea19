"""What processes use of the machine: processor time, memory, and how much of it others took meanwhile. Linux only."""

import os
import time
from collections.abc import Collection, Iterable
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []  # those we may use, at our start


def cpu_seconds(pid: int) -> float:
    """The processor time of a process and its threads, to the nanosecond.

    /proc/PID/stat tells hundredths of a second; this is the clock that clock_getcpuclockid(3) names.
    """
    return time.clock_gettime((~pid << 3) | 2)


def resident_bytes(pid: int) -> int:
    """The memory of a process that is really there."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE


def busy_seconds(stat: str, cores: Collection[int]) -> float:
    """Processor time of everybody on these cores since the machine started, from the text of /proc/stat (proc(5)).

    What the machine's own host took away ("steal") counts as busy: it was not to be had.
    """
    ticks = 0
    for line in stat.splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in cores:
            user, nice, system, _idle, _iowait, *more = (int(field) for field in fields[:8])
            ticks += user + nice + system + sum(more)
    return ticks / _TICKS


def foreign_share(busy_s: float, own_s: float, took_s: float, cores: int) -> float:
    """The share of these cores, 0 to 1, that was neither idle nor ours. Ticks are coarse: a little below 0 is 0."""
    return min(1.0, max(0.0, (busy_s - own_s) / (took_s * cores)))


class Watch:
    """Looks from its making on at what others use. ``pids`` are ours beside this process itself."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = tuple(pids)
        self._began = self._look()

    def _look(self) -> tuple[float, float, float]:
        own = time.process_time() + sum(cpu_seconds(pid) for pid in self._pids)
        return busy_seconds(Path("/proc/stat").read_text(), CORES), own, time.perf_counter()

    def share(self) -> float:
        """What others used so far, of the cores that we may use."""
        busy, own, took = (now - then for now, then in zip(self._look(), self._began, strict=True))
        return foreign_share(busy, own, took, len(CORES))
