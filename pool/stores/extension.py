"""The state file of pi-opencode-session-pool, as another program's: read, and, under its own lock, lightened of spares.

The lock is a file ``<path>.lock`` that is created exclusively, counts as left behind after 10 s, and is waited for 3 s.
"""

import contextlib
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pool.clock import Clock
from pool.model import Binding, Spare
from pool.stores import disk
from pool.stores.schema import VERSION, Json, read_binding, read_spare
from pool.stores.trouble import Trouble, because

STALE_MS: Final = 10_000
WAIT_MS: Final = 3_000
_PAUSE_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Found:
    """What the extension's file holds: bindings by the client's session id, spares, and how much was unreadable."""

    bindings: tuple[tuple[str, Binding], ...]
    spares: tuple[Spare, ...]
    skipped: int


def read(path: Path) -> Found:
    """Read the file, without its lock: it is replaced as a whole.

    Raises:
        Trouble: it is not there, cannot be read, or is not of version 1.
    """
    raw = _document(path)
    bindings = raw.get("bindings", {})
    found = [(key, binding) for key, value in bindings.items() if (binding := read_binding(key, value))]
    named = [(_session(binding), binding) for _, binding in found]
    kept = tuple((session, binding) for session, binding in named if session)
    spares = tuple(spare for value in raw.get("entries", []) if (spare := read_spare(value)))
    skipped = len(bindings) - len(kept) + len(raw.get("entries", [])) - len(spares)
    return Found(kept, spares, skipped)


def take_spares(path: Path, clock: Clock, wait_ms: int = WAIT_MS) -> tuple[Spare, ...]:
    """Remove the spares from the file and return them; what is no spare stays.

    Raises:
        Trouble: the lock is held for longer, or the file cannot be read or written; then nothing was removed.
    """
    path = Path(os.path.realpath(path))
    with locked(path, clock, wait_ms):
        raw = _document(path)
        entries = raw.get("entries", [])
        spares = tuple(spare for value in entries if (spare := read_spare(value)))
        if spares:
            disk.write(path, {**raw, "entries": [value for value in entries if read_spare(value) is None]})
        return spares


@contextlib.contextmanager
def locked(path: Path, clock: Clock, wait_ms: int = WAIT_MS) -> Iterator[None]:
    """Hold the extension's lock.

    Raises:
        Trouble: another process holds it for longer than ``wait_ms``, or it cannot be made.
    """
    lock = path.with_name(path.name + ".lock")
    deadline_ms = clock.mono_ms() + wait_ms
    while (mine := _create(lock)) is None:
        if _is_left_behind(lock, clock):
            with contextlib.suppress(OSError):
                lock.unlink()
        elif clock.mono_ms() >= deadline_ms:
            raise Trouble(f"{path} is locked by pi for over {wait_ms} ms ({lock})")
        else:
            time.sleep(_PAUSE_SECONDS)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if lock.read_bytes() == mine:  # not one that was taken over from us
                lock.unlink()


def _create(lock: Path) -> bytes | None:
    """Make the lock file; what was written into it, or None when there is one."""
    mine = f"{os.getpid()} {secrets.token_hex(8)}\n".encode()
    try:
        descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return None
    except OSError as error:
        raise Trouble(f"{lock} cannot be made: {because(error)}") from None
    try:
        os.write(descriptor, mine)
    finally:
        os.close(descriptor)
    return mine


def _is_left_behind(lock: Path, clock: Clock) -> bool:
    try:
        return clock.wall_ms() - lock.stat().st_mtime * 1000 > STALE_MS
    except OSError:
        return False  # gone: the next try makes it


def _document(path: Path) -> Json:
    reading = disk.read(path)
    if reading.corrupt is not None:
        raise Trouble(f"{path} {reading.corrupt}")
    if reading.raw is None:
        raise Trouble(f"there is no file {path}")
    if reading.raw["version"] != VERSION:
        raise Trouble(f"{path} is of version {reading.raw['version']}; version {VERSION} can be imported")
    return reading.raw


def _session(binding: Binding) -> str | None:
    """The session id that a key begins with."""
    tail = f"::{binding.provider}::{binding.model}"
    return binding.key.removesuffix(tail) if binding.key.endswith(tail) else None
