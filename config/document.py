"""Settings from the TOML file."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from config.keys import MODELS, find
from config.notes import KeyPath, Notes

MAX_BYTES = 1_048_576


def read(path: Path) -> dict[str, Any]:
    """The tables of the file.

    Raises:
        OSError: there is none, or it cannot be read.
        ValueError: it is too large or no TOML, with the line where that shows.
    """
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    import tomllib  # noqa: PLC0415 - 15 ms that a start without a file does not need

    if len(data) > MAX_BYTES:
        raise ValueError(f"is larger than {MAX_BYTES} bytes")
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"is not UTF-8 (at line {line})") from None
    except ValueError as error:
        raise ValueError(f"not valid TOML: {error}") from None
    except RecursionError:
        raise ValueError("not valid TOML: is nested too deeply") from None


def is_exposed(path: Path) -> bool:
    """Can others on this machine read the file?"""
    try:
        return os.name == "posix" and bool(path.stat().st_mode & 0o044)
    except OSError:
        return False


def _paths(data: dict[str, Any]) -> Iterator[KeyPath]:
    """The way to each value: two deep, three below ``models``. What is misplaced is for the check of all settings."""
    for section, table in data.items():
        for name, value in table.items() if isinstance(table, dict) else ():
            if section == MODELS:
                yield from ((section, name, field) for field in (value if isinstance(value, dict) else ()))
            else:
                yield section, name


class Document(NamedTuple):
    """What a file says; without a ``path``, nothing was read."""

    path: Path | None
    tables: dict[str, Any]


def _document(path: Path, notes: Notes) -> Document:
    """The file at ``path``, which must be there. Raises what ``read`` does."""
    tables = read(path)
    keys = {way: key for way in _paths(tables) if (key := find(way)) is not None}
    for way in keys:
        notes.came(way, f"file {path}")
    if any(key.secret for key in keys.values()) and is_exposed(path):
        notes.warnings.append(f"file {path}: holds a secret and others can read it; chmod 600 it")
    return Document(path, tables)


def find_document(named: Path | None, default: Path, notes: Notes) -> Document:
    """The file's settings. A file that was named must be there; the default one may be missing or out of reach."""
    path = default if named is None else named
    try:
        return _document(path, notes)
    except (FileNotFoundError, NotADirectoryError):
        if named is not None:
            notes.problems.append(f"file {path}: does not exist")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        if named is None and not os.path.exists(path):  # noqa: PTH110 - Path.exists raises where this says no
            notes.warnings.append(f"file {path}: cannot be looked at ({reason}), so defaults are used")
        else:
            notes.problems.append(f"file {path}: {reason}")
    return Document(None, {})
