"""Settings from wherever they come: command line, then environment, then the TOML file, then defaults.

Everything that is wrong is told at once, by key, value, range and origin; a secret's value never is.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from config import paths, problems
from config.document import find_document
from config.doubts import doubts
from config.keys import KEYS, spell
from config.notes import Notes
from config.overrides import Overrides
from config.settings import Settings
from config.variables import Variables, client_key

DEFAULT = "default"


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


class Layered(Settings, BaseSettings):
    """``Settings``, merged by pydantic-settings from the ``sources`` it is made with, the first before the others."""

    model_config = SettingsConfigDict(env_prefix="OCPOOL_", env_nested_delimiter="__", case_sensitive=True)

    @classmethod
    def settings_customise_sources(  # the library's own are not used: they read the process's environment
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        *_: object,
        **__: object,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The sources that were given, in place of the library's."""
        return tuple(init_settings()["sources"])


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
        Overrides(Layered, overrides, notes),
        Variables(Layered, environ, notes),
        document := find_document(Layered, config_file, paths.config_file(environ), notes),
        client_key(Layered, environ, notes),
    )
    settings = None
    try:
        layered = Layered(sources=sources)  # type: ignore[call-arg] # it is no field
        settings = Settings.model_construct(**dict(layered))
    except ValidationError as errors:
        notes.problems += problems.tell(errors, notes.origins, document.path)
    if settings is None or notes.problems:
        raise SettingsError(list(dict.fromkeys(notes.problems)))
    origins = dict.fromkeys(KEYS, DEFAULT) | {spell(path): origin for path, origin in notes.origins.items()}
    return Loaded(settings, origins, list(dict.fromkeys(notes.warnings + doubts(settings))), document.path)
