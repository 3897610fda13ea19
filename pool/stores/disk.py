"""Reading and replacing the state file as a whole. The writer holds the lock; a reader needs none."""

import contextlib
import os
import secrets
import stat
from pathlib import Path
from typing import Final, NamedTuple

import orjson

from pool.stores.schema import Json, is_wellformed
from pool.stores.trouble import Trouble, because

LARGEST_BYTES: Final = 64 * 1024 * 1024
CORRUPT_KEPT: Final = 3
TEMPORARY: Final = ".tmp"
Signature = tuple[int, int, int]  # changes whenever the file is replaced


class Reading(NamedTuple):
    """What is at the path: a document, nothing (both None), or something that is none (``corrupt`` says why)."""

    raw: Json | None
    corrupt: str | None = None


def signature(path: Path) -> Signature | None:
    """Which file it is; None: there is none, or none that may be looked at."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def read(path: Path) -> Reading:
    """Read the document.

    Raises:
        Trouble: there is something that cannot be read, or is no regular file.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            kind = "a directory" if stat.S_ISDIR(status.st_mode) else "no regular file"
            raise Trouble(f"{path} is {kind}, where the state file should be")
        if status.st_size > LARGEST_BYTES:
            return Reading(None, f"has {status.st_size} bytes")
        data = path.read_bytes()
    except FileNotFoundError:
        return Reading(None)
    except OSError as error:
        raise Trouble(f"{path} cannot be read: {because(error)}") from None
    try:
        raw = orjson.loads(data)
    except orjson.JSONDecodeError:
        return Reading(None, "is empty" if not data else "is not JSON")
    return Reading(raw) if is_wellformed(raw) else Reading(None, "is not a state file")


def write(path: Path, raw: Json) -> None:
    """Replace the file: a temporary one beside it, flushed to the disk, then renamed over it.

    Raises:
        Trouble: it could not be written; what was there is untouched.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}{TEMPORARY}")
    try:
        data = orjson.dumps(raw, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(temporary, flags, 0o600)
        try:
            _write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)  # noqa: PTH105  (atomic; Path.replace is the same call)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise Trouble(f"{path} cannot be written: {because(error)}") from None
    except TypeError:  # a document that no JSON can hold, e.g. an integer beyond 64 bits
        raise Trouble(f"{path} cannot be written: it holds a number that JSON cannot") from None
    _flush_folder(path.parent)


def put_aside(path: Path, now: int) -> Path | None:
    """Rename what cannot be used to ``<path>.corrupt-<epoch>``, and keep only the newest few of those."""
    aside = path.with_name(f"{path.name}.corrupt-{now}")
    try:
        os.replace(path, aside)  # noqa: PTH105
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Trouble(f"{path} is corrupt and cannot be put aside: {because(error)}") from None
    with contextlib.suppress(OSError):
        older = sorted(path.parent.glob(f"{_escape(path.name)}.corrupt-*"), key=_epoch, reverse=True)
        for one in older[CORRUPT_KEPT:]:
            one.unlink()
    return aside


def sweep(path: Path) -> int:
    """Delete temporary files that a killed writer left; how many. Only a holder of the lock may call it."""
    swept = 0
    with contextlib.suppress(OSError):
        for one in path.parent.glob(f".{_escape(path.name)}.*{TEMPORARY}"):
            one.unlink(missing_ok=True)
            swept += 1
    return swept


def make_folder(path: Path) -> None:
    """Make the folder of the file, readable by its owner only, if there is none."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Trouble(f"{path.parent} cannot be made: {because(error)}") from None


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _flush_folder(folder: Path) -> None:
    """Make the rename itself survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _epoch(aside: Path) -> int:
    tail = aside.name.rpartition("-")[2]
    return int(tail) if tail.isdigit() else 0


def _escape(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)
