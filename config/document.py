"""Settings from the TOML file."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from config.entries import Entry, Found
from config.keys import KEYS, MODELS, find, nearest, sections, spell, unknown

MAX_BYTES = 1_048_576


def read(path: Path) -> str | None:
    """The text of the file, or None if there is none.

    Raises:
        OSError: it exists, or may exist, and cannot be read.
        ValueError: it is not UTF-8 or too large, with the line where that shows.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if len(data) > MAX_BYTES:
        raise ValueError(f"is larger than {MAX_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"is not UTF-8 (at line {line})") from None


def _leaves(data: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Values with their paths: two deep, three below ``models``; a table where none belongs is a leaf."""
    for section, table in data.items():
        if not isinstance(table, dict):
            yield (section,), table
            continue
        for name, value in table.items():
            if section == MODELS and isinstance(value, dict):
                yield from (((section, name, field), inner) for field, inner in value.items())
            else:
                yield (section, name), value


def _misplaced(path: tuple[str, ...]) -> str:
    """Why a path is no setting: not inside a section, in an unknown one, or an unknown key of a known one."""
    known = [*sections(), MODELS]
    if path[0] not in known and len(path) > 1:
        return f"[{path[0]}]: no such section; the nearest is [{nearest(path[0], known)}]"
    if path[0] in known and len(path) == 1:
        return f"{path[0]}: must be a table, [{path[0]}]"
    if path[0] == MODELS and len(path) == 2:
        return f"{spell(path)}: must be a table, [{spell(path)}]"
    if len(path) == 1:
        return f"{path[0]}: must be inside a section; the nearest is {nearest(path[0], KEYS)}"
    return unknown(path)


def from_text(text: str, path: Path) -> Found:
    """Every key of the file. Refusals name the file, and for what is no TOML the line."""
    import tomllib  # noqa: PLC0415 - 15 ms that a start without a file does not need

    origin = f"file {path}"
    found = Found()
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "is nested too deeply"
        found.problems.append(f"{origin}: not valid TOML: {reason}")
        return found
    refused: set[str] = set()
    for leaf, value in _leaves(data):
        if find(leaf) is not None:
            found.entries.append(Entry(leaf, value, origin))
        else:
            refused.add(f"{origin}: {_misplaced(leaf)}")
    found.problems.extend(sorted(refused))
    return found


def is_exposed(path: Path) -> bool:
    """Can others on this machine read the file?"""
    try:
        return os.name == "posix" and bool(path.stat().st_mode & 0o044)
    except OSError:
        return False
