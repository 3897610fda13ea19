"""Where a running daemon is found: ``<state folder>/run/<pid>.json``, written when it accepts connections.

Commands read it to learn the address. The file says nothing secret; a daemon that died leaves one behind, which
counts for nothing and is removed by the next daemon that starts.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple

import orjson


class Running(NamedTuple):
    """One daemon: ``address`` is its base URL, such as http://127.0.0.1:8377; ``started_at`` is unix ms."""

    address: str
    pid: int
    version: str
    started_at: int


def announce(state_folder: Path, running: Running) -> Path:
    """Write the runtime file, 0600, in one step, and remove those of dead daemons.

    Raises:
        OSError: the folder cannot be written; the daemon goes on, commands need ``--url``.
    """
    folder = state_folder / "run"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path, _ in _entries(state_folder):
        if not _alive(_pid_of(path)):
            path.unlink(missing_ok=True)
    facts = {
        "address": running.address,
        "pid": running.pid,
        "version": running.version,
        "startedAt": running.started_at,
    }
    path = folder / f"{running.pid}.json"
    with NamedTemporaryFile(dir=folder, prefix=".", suffix=".tmp", delete=False) as file:  # is 0600
        file.write(orjson.dumps(facts))
    Path(file.name).replace(path)
    return path


def withdraw(path: Path | None) -> None:
    """Remove the runtime file. Never raises."""
    if path is not None:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def find(state_folder: Path) -> list[Running]:
    """The daemons that live and use this state folder, the one started last first. Never raises, writes nothing."""
    found = [running for _, running in _entries(state_folder) if running is not None and _alive(running.pid)]
    return sorted(found, key=lambda running: running.started_at, reverse=True)


def _entries(state_folder: Path) -> Iterator[tuple[Path, Running | None]]:
    """Every runtime file with what it says; None where that cannot be read."""
    try:
        paths = sorted((state_folder / "run").glob("[0-9]*.json"))
    except OSError:
        return
    for path in paths:
        yield path, _read(path)


def _read(path: Path) -> Running | None:
    try:
        facts = orjson.loads(path.read_bytes())
        running = Running(
            str(facts["address"]), int(facts["pid"]), str(facts.get("version", "")), int(facts.get("startedAt", 0))
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return running if running.address.startswith("http") and running.pid == _pid_of(path) else None


def _pid_of(path: Path) -> int:
    return int(path.stem) if path.stem.isdecimal() else 0


def _alive(pid: int) -> bool:
    """Does a process of this number exist? Another user's counts."""
    if not 0 < pid < 2**31:
        return False
    if sys.platform == "win32":
        return True  # os.kill would end it; asking its address tells
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
