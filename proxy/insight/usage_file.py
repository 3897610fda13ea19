"""The file of token counts: one row a day, key, provider, model and conversation, in SQLite (WAL).

Several processes add to the same rows. It is opened for each write and each reading, so that a file that was moved or
restored is noticed. Everything here blocks; the ledger calls it from its thread.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, fields
from datetime import date, timedelta
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

VERSION = 1
_BUSY_S = 2.0
_MOST_ROWS = 10_000
DAY_MS = 86_400_000
_EPOCH = date(1970, 1, 1)


class Key(NamedTuple):
    """What a row counts for. ``key`` is the digest of a credential or token; an empty conversation: any or none."""

    day: str  # of UTC, 2026-11-30
    key: str
    provider: str
    model: str
    conversation: str


@dataclass(slots=True)
class Sums:
    """What is counted.

    ``turns``: answers to a conversation's turns and to requests that belong to none; ``side``: to its side calls.
    Of both, ``partial`` were cut off, ``unknown`` reported no tokens, and ``unpriced`` did but have no price.
    ``told``: input tokens of answers that said how much of it was cached, 0 included. ``probes``: those sent by ocpool
    itself, with their tokens of both kinds and cost; they are in none of the other sums.
    """

    turns: int = 0
    side: int = 0
    partial: int = 0
    unknown: int = 0
    unpriced: int = 0
    input: int = 0
    told: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    reasoning: int = 0
    cost: float = 0.0
    saved: float = 0.0
    probes: int = 0
    probe_tokens: int = 0
    probe_cost: float = 0.0

    def add(self, other: "Sums") -> None:
        """Add another's counts."""
        self.turns += other.turns
        self.side += other.side
        self.partial += other.partial
        self.unknown += other.unknown
        self.unpriced += other.unpriced
        self.input += other.input
        self.told += other.told
        self.cached += other.cached
        self.written += other.written
        self.output += other.output
        self.reasoning += other.reasoning
        self.cost += other.cost
        self.saved += other.saved
        self.probes += other.probes
        self.probe_tokens += other.probe_tokens
        self.probe_cost += other.probe_cost


NAMES = tuple(field.name for field in fields(Sums))
_VALUES = attrgetter(*NAMES)
_KEYS = Key._fields
# A column that a writer does not know of must have a default: files of other versions are added to as they are.
_COUNTED = {
    field.name: f"{field.name} {'REAL' if field.type is float else 'INTEGER'} NOT NULL DEFAULT 0"
    for field in fields(Sums)
}
_TABLE = f"""
CREATE TABLE IF NOT EXISTS usage (
  {", ".join(f"{name} TEXT NOT NULL" for name in _KEYS)},
  {", ".join(_COUNTED.values())},
  PRIMARY KEY ({", ".join(_KEYS)})
) WITHOUT ROWID
"""
_COLUMNS = ", ".join((*_KEYS, *NAMES))
_ADDED = ", ".join(f"{name} = {name} + excluded.{name}" for name in NAMES)
_ADD = (
    f"INSERT INTO usage ({_COLUMNS}) VALUES ({', '.join('?' * (len(_KEYS) + len(NAMES)))}) "  # noqa: S608
    f"ON CONFLICT DO UPDATE SET {_ADDED}"
)
_SUMMED = ", ".join(f"sum({name})" for name in NAMES)
_KNOWN = "SELECT name FROM pragma_table_info('usage')"
_FOLD = (
    f"INSERT INTO usage ({_COLUMNS}) "  # noqa: S608
    f"SELECT day, key, provider, model, '', {_SUMMED} FROM usage WHERE day < ? AND conversation != '' "
    f"GROUP BY day, key, provider, model ON CONFLICT DO UPDATE SET {_ADDED}"
)
_FORGET = "DELETE FROM usage WHERE day < ? AND conversation != ''"


@lru_cache(maxsize=64)
def _day(number: int) -> str:
    return (_EPOCH + timedelta(days=number)).isoformat()


def day_of(at: int) -> str:
    """The day of UTC that an instant falls on."""
    return _day(at // DAY_MS)


class Newer(sqlite3.OperationalError):
    """A later ocpool keeps this file in a form that this one does not know."""


def add(path: Path, rows: Mapping[Key, Sums], fold_before: str | None = None) -> None:
    """Add counts to the file, all or nothing. Conversations of days before ``fold_before`` are put together.

    Raises:
        sqlite3.Error, OSError: nothing was added.
    """
    _create(path)
    with closing(sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)) as file:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = NORMAL")
        file.execute("BEGIN IMMEDIATE")
        try:
            version = file.execute("PRAGMA user_version").fetchone()[0]
            if version > VERSION:
                raise Newer(f"it is of version {version}, made by a newer ocpool")
            file.execute(_TABLE)
            for name in _missing(file):
                file.execute(f"ALTER TABLE usage ADD COLUMN {_COUNTED[name]}")
            file.execute(f"PRAGMA user_version = {VERSION}")
            file.executemany(_ADD, [key + _VALUES(sums) for key, sums in rows.items()])
            if fold_before is not None:
                file.execute(_FOLD, (fold_before,))
                file.execute(_FORGET, (fold_before,))
            file.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                file.execute("ROLLBACK")
            raise


def read(path: Path, by: Iterable[str], since: str | None = None) -> dict[tuple[str, ...], Sums]:
    """The counts from a day on, put together by columns of ``Key``, at most 10,000 rows, the most input first.

    Raises:
        FileNotFoundError: there is no such file.
        sqlite3.Error: it cannot be read.
    """
    columns = [name for name in _KEYS if name in set(by)]
    if not path.exists():
        raise FileNotFoundError(path)
    chosen = ", ".join(columns)
    with closing(_reading(path)) as file:
        if _is_new(file):
            return {}
        missing = set(_missing(file))
        summed = ["0" if name in missing else f"sum({name})" for name in NAMES]
        query = (
            f"SELECT {', '.join((*columns, *summed))} FROM usage WHERE day >= ? "  # noqa: S608 - names of ours
            f"{f'GROUP BY {chosen}' if chosen else ''} ORDER BY sum(input) DESC, sum(turns) DESC LIMIT {_MOST_ROWS}"
        )
        rows = file.execute(query, (since or "",)).fetchall()
    width = len(columns)
    return {tuple(row[:width]): Sums(*row[width:]) for row in rows if row[width] is not None}


def trouble(path: Path) -> str | None:
    """What is wrong with the file, in words; None: nothing. Reads all of it, and leaves nothing beside it.

    While nobody writes it is read as it is; what looks wrong then may be a write that began meanwhile.
    """
    if path.with_name(f"{path.name}-wal").exists() or _trouble(path, _at_rest) is not None:
        return _trouble(path, _reading)
    return None


def _trouble(path: Path, opened: Callable[[Path], sqlite3.Connection]) -> str | None:
    try:
        with closing(opened(path)) as file:
            version = file.execute("PRAGMA user_version").fetchone()[0]
            if version > VERSION:
                return f"is of version {version}, made by a newer ocpool: nothing is added to it"
            found = file.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                return f"is broken ({found})"
            if not _is_new(file):
                file.execute(f"SELECT {', '.join(_KEYS)} FROM usage LIMIT 1")  # noqa: S608 - names of ours
    except sqlite3.OperationalError as error:
        return f"cannot be read ({error})"
    except sqlite3.Error as error:
        return f"is broken ({error})"
    return None


def _is_new(file: sqlite3.Connection) -> bool:
    """Was nothing written yet?"""
    return file.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None


def _missing(file: sqlite3.Connection) -> list[str]:
    """The counts that the file's table has no column for: an earlier ocpool made it."""
    known = {name for (name,) in file.execute(_KNOWN)}
    return [name for name in NAMES if name not in known]


def _reading(path: Path) -> sqlite3.Connection:
    """A connection that only reads; where the folder may not be written, of the file as it is."""
    file = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_BUSY_S)
    try:
        file.execute("SELECT 1 FROM sqlite_master LIMIT 1")
    except sqlite3.Error as error:
        file.close()
        if "unable to open" not in str(error) and "readonly" not in str(error):
            raise
        return _at_rest(path)
    return file


def _at_rest(path: Path) -> sqlite3.Connection:
    """A connection that only reads, takes no lock and makes no file: of what nobody writes to."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, timeout=_BUSY_S)


def _create(path: Path) -> None:
    """The file, readable by its owner alone; SQLite gives what it puts beside it the same mode."""
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
