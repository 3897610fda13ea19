"""Reading an event log back: every file of it in order, and what is still being written. Never writes.

A line that cannot be read, because its writer was killed within it, is skipped and counted.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from proxy.insight.rotation import family

Event = dict[str, Any]
LONGEST_LINE = 1_000_000


class EventReader:
    """Events of one log since an instant (unix ms), oldest first; ``broken`` counts what was skipped."""

    def __init__(self, path: Path, since: int | None = None) -> None:
        self.path = path
        self.broken = 0
        self._since = since
        self._file: BinaryIO | None = None
        self._part = b""

    def stored(self) -> Iterator[Event]:
        """Everything that is there. The live file stays open for ``more``.

        Raises:
            OSError: a file cannot be opened.
        """
        for file in _opened(family(self.path)):
            yield from self._turn_to(file)

    def more(self) -> Iterator[Event]:
        """What was written since the last call, through rotations; nothing where nothing was."""
        newer = _opened(self._newer())  # first: once there is a newer file, nothing is added to ours
        if self._file is not None:
            yield from self._rest()
        for file in newer:
            yield from self._turn_to(file)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _newer(self) -> list[Path]:
        """The files after the one that is open: none, unless it was renamed or deleted."""
        files = family(self.path)
        if self._file is None:
            return files
        ours = os.fstat(self._file.fileno())
        for number, path in enumerate(files):
            try:
                same = os.path.samestat(path.stat(), ours)
            except FileNotFoundError:
                continue
            if same:
                return files[number + 1 :]
        return files[-1:]  # it is gone: go on with the live one

    def _turn_to(self, file: BinaryIO) -> Iterator[Event]:
        self.close()
        if self._part:
            self.broken += 1  # nobody will end that line any more
            self._part = b""
        self._file = file
        yield from self._rest()

    def _rest(self) -> Iterator[Event]:
        """The whole lines up to the end of the open file; the part of one is kept for later."""
        assert self._file is not None
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)  # somebody emptied it
        for line in self._file:
            self._part += line
            if not line.endswith(b"\n") and len(self._part) < LONGEST_LINE:
                return
            whole, self._part = self._part, b""
            event = self._event(whole)
            if event is not None:
                yield event

    def _event(self, line: bytes) -> Event | None:
        if not line.strip():
            return None
        try:
            event = orjson.loads(line)
        except ValueError:
            event = None
        if not isinstance(event, dict) or not isinstance(event.get("at"), int):
            self.broken += 1
            return None
        return event if self._since is None or event["at"] >= self._since else None


def _opened(paths: list[Path]) -> list[BinaryIO]:
    """All of them at once: a rotation while the first is read renames the others, but open files stay what they are."""
    files: list[BinaryIO] = []
    try:
        for path in paths:
            with contextlib.suppress(FileNotFoundError):  # rotated away just now
                files.append(path.open("rb"))
    except OSError:
        for file in files:
            file.close()
        raise
    return files
