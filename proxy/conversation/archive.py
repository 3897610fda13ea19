"""The lines of talk on disk, so that a conversation is found again after a restart. Never in the pool's file.

One SQLite file in WAL mode (https://www.sqlite.org/wal.html), read at the start and written every few seconds by one
thread; several daemons may share it. Nothing here is waited for by a request. A file that is broken is put aside, one
of a newer version is left alone, and one that is locked or on a full disk is tried again: traffic goes on from memory.
"""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from proxy.conversation.packing import Row

VERSION: Final = 1
_LOCK_WAIT_S = 0.2
_SCHEMA = """
CREATE TABLE IF NOT EXISTS line (
  row INTEGER PRIMARY KEY, scope TEXT NOT NULL, label TEXT NOT NULL, cohort TEXT,
  began_at INTEGER NOT NULL, seen_at INTEGER NOT NULL, said BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS line_seen_at ON line (seen_at);
"""
_UPSERT = """
INSERT INTO line VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (row) DO UPDATE SET
  label = excluded.label, cohort = excluded.cohort, seen_at = excluded.seen_at, said = excluded.said
"""
_LATEST = "SELECT * FROM line WHERE seen_at > ? ORDER BY seen_at DESC LIMIT ?"
_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class ArchiveError(Exception):
    """The archive cannot be used now. ``lasting``: nor later, in this process."""

    def __init__(self, message: str, *, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting


class Archive:
    """One file; every method blocks and belongs into a thread of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None

    def load(self, since: int, most: int) -> list[Row]:
        """The lines used since then, the latest first, at most so many.

        Raises:
            ArchiveError: it cannot be read.
        """
        try:
            found = self._open().execute(
                "SELECT * FROM line WHERE seen_at > ? ORDER BY seen_at DESC LIMIT ?", (since, most)
            )
            return [Row(*row) for row in found if _is_row(row)]
        except sqlite3.Error as error:
            raise self._trouble(error) from None
        except OSError as error:
            raise ArchiveError(f"{self.path} cannot be used ({error.strerror or error})") from None

    def save(self, rows: Sequence[Row], gone: Sequence[int], before: int) -> None:
        """Write down lines, and forget those that are gone or were last used before then.

        Raises:
            ArchiveError: nothing was written.
        """
        try:
            connection = self._open()
            with connection:
                connection.executemany(_UPSERT, rows)
                connection.executemany("DELETE FROM line WHERE row = ?", [(row,) for row in gone])
                connection.execute("DELETE FROM line WHERE seen_at < ?", (before,))
        except sqlite3.Error as error:
            raise self._trouble(error) from None
        except OSError as error:
            raise ArchiveError(f"{self.path} cannot be used ({error.strerror or error})") from None

    def close(self) -> None:
        """Let go of the file. Never raises."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None:
            return self._connection
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite gives its other files the mode of this one.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(self.path, timeout=_LOCK_WAIT_S, check_same_thread=False)
        try:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version > VERSION:
                raise ArchiveError(f"{self.path} was written by a newer version, and is left alone", lasting=True)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            if version < VERSION:
                connection.executescript(_SCHEMA)
                connection.execute(f"PRAGMA user_version = {VERSION}")
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _trouble(self, error: sqlite3.Error) -> ArchiveError:
        self.close()
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _BROKEN or "malformed" in str(error):
            self._put_aside()
            return ArchiveError(f"{self.path} was no archive ({error}), and was put aside")
        return ArchiveError(f"{self.path} cannot be used ({error})")

    def _put_aside(self) -> None:
        """One broken file is kept, for whoever wants to know."""
        with suppress(OSError):
            self.path.replace(self.path.with_name(f"{self.path.name}.corrupt"))
        for more in ("-wal", "-shm"):
            with suppress(OSError):
                self.path.with_name(self.path.name + more).unlink(missing_ok=True)


def _is_row(row: tuple[object, ...]) -> bool:
    """Another program's rows, or a half-mended file's, are none."""
    texts = isinstance(row[1], str) and isinstance(row[2], str) and (row[3] is None or isinstance(row[3], str))
    return texts and isinstance(row[6], bytes) and all(isinstance(row[at], int) for at in (0, 4, 5))
