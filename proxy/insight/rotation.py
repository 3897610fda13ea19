"""Append-only files, renamed when they are full: ``log``, ``log.1`` (newer) ... ``log.N`` (oldest).

The file is 0600 in a folder that is 0700 when made here, whatever the umask, also after a rotation. A file that
was deleted or renamed from outside is made anew, so several processes may share one. Blocking: for a writer's
thread only.
"""

import contextlib
import os
import stat
from pathlib import Path

_BINARY = getattr(os, "O_BINARY", 0)  # Windows would write \r\n


class RotatingFile:
    """One writer's file of at most ``max_bytes`` (0: unbounded), with ``keep`` older ones beside it.

    ``write`` raises OSError when nothing could be written; the next call tries from the start again.
    """

    def __init__(self, path: Path, max_bytes: int, keep: int) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._fd = -1
        self._torn = False  # the file may end within a line

    def write(self, lines: bytes) -> None:
        """Append whole lines, in the next file where they no longer fit this one."""
        size = self._open()
        if self._max_bytes and size and size + len(lines) > self._max_bytes:
            self._rotate()
            self._open()
        data = b"\n" + lines if self._torn else lines
        try:
            _write_all(self._fd, data)
        except OSError:
            self._torn = True
            self.close()
            raise
        self._torn = False

    def close(self) -> None:
        """Close the file; ``write`` opens it again."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.close(self._fd)
            self._fd = -1

    def _open(self) -> int:
        """Make sure that the open file is the one at ``path``; its size in bytes."""
        if self._fd >= 0:
            ours = os.fstat(self._fd)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(self.path.stat(), ours):
                    return ours.st_size
            self.close()
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _BINARY, 0o600)
        self._torn = False
        found = os.fstat(self._fd)
        if not stat.S_ISREG(found.st_mode):
            return 0  # /dev/null, a pipe: nothing to protect or to rotate
        if found.st_mode & 0o077 and os.name == "posix":
            with contextlib.suppress(PermissionError):
                os.fchmod(self._fd, 0o600)
        if found.st_size:
            os.lseek(self._fd, -1, os.SEEK_END)
            self._torn = os.read(self._fd, 1) != b"\n"  # a writer was killed within a line
        return found.st_size

    def _rotate(self) -> None:
        self.close()
        if self._keep == 0:
            self.path.unlink(missing_ok=True)
            return
        for number in range(self._keep - 1, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                numbered(self.path, number).replace(numbered(self.path, number + 1))
        self.path.replace(numbered(self.path, 1))


def numbered(path: Path, number: int) -> Path:
    """The path of an older file: 1 is the newest of them; 0 is the live one."""
    return path.with_name(f"{path.name}.{number}") if number else path


def family(path: Path) -> list[Path]:
    """Every file of this log that exists, oldest first, the live one last."""
    numbers = []
    with contextlib.suppress(OSError):
        for entry in path.parent.iterdir():
            suffix = entry.name.removeprefix(f"{path.name}.")
            if entry.name != suffix and suffix.isdecimal():
                numbers.append(int(suffix))
    older = [numbered(path, number) for number in sorted(numbers, reverse=True)]
    return [*older, path] if path.exists() else older


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
