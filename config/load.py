"""Settings from wherever they come: command line, then environment, then the TOML file, then defaults.

Everything that is wrong is told at once, by key, value, range and origin; a secret's value never is.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from config import document, paths, problems
from config.doubts import doubts
from config.entries import Entry, Found
from config.keys import KEYS, find, spell
from config.overrides import from_overrides
from config.settings import Settings
from config.variables import from_environment

DEFAULT = "default"
_API_KEY = ("probe", "api_key")
_API_KEY_VARIABLE = "OPENCODE_API_KEY"


class SettingsError(Exception):
    """The settings cannot be used; ``problems`` has a line for each reason."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and how they came about.

    ``origins`` has every key of ``config.keys.KEYS`` and those of models that are set. ``file`` is the file that was
    read, None if there was none. ``warnings`` are for the one who starts the daemon.
    """

    settings: Settings
    origins: dict[str, str]
    warnings: list[str]
    file: Path | None


def _from_file(named: Path | None, environ: Mapping[str, str]) -> tuple[Found, Path | None]:
    """The file's settings. A file that was named must be there; the default one may be missing or out of reach."""
    path = named if named is not None else paths.config_file(environ)
    found = Found()
    try:
        text = document.read(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        if named is None and not os.path.exists(path):  # noqa: PTH110 - Path.exists raises where this says no
            found.warnings.append(f"file {path}: cannot be looked at ({reason}), so defaults are used")
        else:
            found.problems.append(f"file {path}: {reason}")
        return found, None
    if text is None:
        if named is not None:
            found.problems.append(f"file {path}: does not exist")
        return found, None
    found = document.from_text(text, path)
    keys = [find(entry.path) for entry in found.entries]
    if any(key is not None and key.secret for key in keys) and document.is_exposed(path):
        found.warnings.append(f"file {path}: holds a secret and others can read it; chmod 600 it")
    return found, path


def _fallbacks(environ: Mapping[str, str]) -> Found:
    """``OPENCODE_API_KEY`` is every client's variable, so anything that is ocpool's own goes before it."""
    key = environ.get(_API_KEY_VARIABLE, "").strip()
    return Found([Entry(_API_KEY, key, f"environment {_API_KEY_VARIABLE}")] if key else [])


def _nested(entries: Mapping[tuple[str, ...], Entry]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for path, entry in entries.items():
        table = data
        for part in path[:-1]:
            table = table.setdefault(part, {})
        table[path[-1]] = entry.value
    return data


def load(
    config_file: Path | None = None,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
) -> Loaded:
    """Read, merge and check all settings.

    ``config_file`` None means ``paths.config_file(environ)``, which need not exist. ``overrides`` are the texts of
    ``--set``.

    Raises:
        SettingsError: with everything that is wrong.
    """
    from_file, file = _from_file(config_file, environ)
    sources = [_fallbacks(environ), from_file, from_environment(environ), from_overrides(overrides)]
    entries = {entry.path: entry for source in sources for entry in source.entries}
    wrong = [problem for source in sources for problem in source.problems]
    settings = None
    try:
        settings = Settings.model_validate(_nested(entries))
    except ValidationError as errors:
        wrong += problems.tell(errors, entries)
    if settings is None or wrong:
        raise SettingsError(list(dict.fromkeys(wrong)))
    origins = dict.fromkeys(KEYS, DEFAULT) | {spell(path): entry.origin for path, entry in entries.items()}
    warnings = [warning for source in sources for warning in source.warnings] + doubts(settings)
    return Loaded(settings, origins, list(dict.fromkeys(warnings)), file)
