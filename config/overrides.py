"""Settings from the command line: the texts of ``--set section.key=value``."""

from collections.abc import Iterable

from config.entries import Entry, Found, Path
from config.keys import MODELS, find, spell, unknown
from config.values import read_text

ORIGIN = "command line"


def _path(name: str) -> Path:
    """``pool.size``, or ``models."NAME".key``, where NAME may hold dots and its quotes may be left out."""
    section, _, rest = name.strip().partition(".")
    model, _, field = rest.rpartition(".")
    if section == MODELS and model:
        return (section, model.strip("\"'"), field.strip())
    return (section, rest.strip()) if rest else (section,)


def from_overrides(overrides: Iterable[str]) -> Found:
    """Every override, read; of two for one key the later wins."""
    found = Found()
    for number, text in enumerate(overrides, 1):
        name, equals, value = text.partition("=")
        path = _path(name)
        key = find(path)
        if not equals:  # not quoted: half of it may be a secret
            found.problems.append(f"{ORIGIN}: override {number} must be section.key=value, such as pool.size=4")
        elif key is None:
            found.problems.append(f"{ORIGIN}: {unknown(path)}")
        else:
            found.entries.append(Entry(path, read_text(key, value), ORIGIN))
            if key.secret:
                found.warnings.append(
                    f"{spell(path)} was given on the command line, which every process can read;"
                    f" use {key.variable} or the file",
                )
    return found
