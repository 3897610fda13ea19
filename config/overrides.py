"""Settings from the command line: the texts of ``--set section.key=value``."""

from collections.abc import Iterable
from typing import Any

from config.keys import MODELS, find, spell, unknown
from config.notes import KeyPath, Notes
from config.values import put, read_value

ORIGIN = "command line"


def _path(name: str) -> KeyPath:
    """``pool.size``, or ``models."NAME".key``, where NAME may hold dots and its quotes may be left out."""
    section, _, rest = name.strip().partition(".")
    model, _, field = rest.rpartition(".")
    if section == MODELS and model:
        return (section, model.strip("\"'"), field.strip())
    return (section, rest.strip()) if rest else (section,)


def overridden(overrides: Iterable[str], notes: Notes) -> dict[str, Any]:
    """Every override, read; of two for one key the later wins."""
    tables: dict[str, Any] = {}
    for number, text in enumerate(overrides, 1):
        name, equals, value = text.partition("=")
        path = _path(name)
        key = find(path)
        if not equals:  # not quoted: half of it may be a secret
            problem = f"{ORIGIN}: override {number} must be section.key=value, such as pool.size=4"
            notes.problems.append(problem)
        elif key is None:
            notes.problems.append(f"{ORIGIN}: {unknown(path)}")
        else:
            put(tables, path, read_value(key, value))
            notes.came(path, ORIGIN)
            if key.secret:
                notes.warnings.append(
                    f"{spell(path)} was given on the command line, which every process can read;"
                    f" use {key.variable} or the file",
                )
    return tables
