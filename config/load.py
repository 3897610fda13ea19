"""Settings from wherever they come: command line, then environment, then the TOML file, then defaults.

Everything that is wrong is told at once, by key, value, range and origin; a secret's value never is.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from config import paths, problems
from config.document import find_document
from config.doubts import doubts
from config.keys import KEYS, spell
from config.notes import Notes
from config.overrides import overridden
from config.settings import Settings, settings_of
from config.variables import client_key, variables

DEFAULT = "default"


class SettingsError(Exception):
    """The settings cannot be used; ``problems`` has a line for each reason."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Loaded(NamedTuple):
    """Settings, and how they came about.

    ``origins`` has every key of ``config.keys.KEYS`` and those of models that are set. ``file`` is the file that was
    read, None if there was none. ``warnings`` are for the one who starts the daemon.
    """

    settings: Settings
    origins: dict[str, str]
    warnings: list[str]
    file: Path | None


def _merged(layers: list[dict[str, Any]]) -> dict[str, Any]:
    """The tables of all sources as one, of two for a key the first's. One source alone is used as it is."""
    if len(layers) < 2:
        return layers[0] if layers else {}
    from config.layers import merged  # noqa: PLC0415 - 90 ms that most starts do not need

    return merged(layers)


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
    notes = Notes()
    sources = (
        overridden(overrides, notes),
        variables(environ, notes),
        (document := find_document(config_file, paths.config_file(environ), notes)).tables,
        client_key(environ, notes),
    )
    settings = None
    try:
        settings = settings_of(_merged([tables for tables in sources if tables]))
    except ValidationError as errors:
        notes.problems += problems.tell(errors, notes.origins, document.path)
    if settings is None or notes.problems:
        raise SettingsError(list(dict.fromkeys(notes.problems)))
    origins = dict.fromkeys(KEYS, DEFAULT) | {spell(path): origin for path, origin in notes.origins.items()}
    return Loaded(settings, origins, list(dict.fromkeys(notes.warnings + doubts(settings))), document.path)
