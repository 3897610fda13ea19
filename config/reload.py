"""What a running daemon does about changed settings: which keys it takes over, and has the file changed at all."""

import os
from pathlib import Path
from typing import Any, NamedTuple

from config.keys import KEYS, spell
from config.settings import Settings


class Change(NamedTuple):
    """The keys whose values differ, by what is done about them."""

    applied: list[str]
    needs_restart: list[str]

    def __bool__(self) -> bool:
        """Did anything change?"""
        return bool(self.applied or self.needs_restart)


def _model_values(settings: Settings) -> dict[str, Any]:
    return {
        spell(("models", model, name)): getattr(override, name)
        for model, override in settings.models.items()
        for name in override.model_fields_set
    }


def diff(old: Settings, new: Settings) -> Change:
    """The keys in which two settings differ. A model's keys are always taken over."""
    applied: list[str] = []
    needs_restart: list[str] = []
    for key in KEYS.values():
        if getattr(getattr(old, key.section), key.field) != getattr(getattr(new, key.section), key.field):
            (needs_restart if key.restart else applied).append(key.name)
    before, after = _model_values(old), _model_values(new)
    applied += [name for name in sorted(before | after) if before.get(name) != after.get(name)]
    return Change(applied, needs_restart)


def carried(old: Settings, new: Settings) -> Settings:
    """``new``, but for the keys that wait for a restart: those stay as the running daemon has them."""
    sections = {name: getattr(new, name) for name in {key.section for key in KEYS.values() if key.restart}}
    kept = {
        name: section.model_copy(
            update={
                key.field: getattr(getattr(old, name), key.field)
                for key in KEYS.values()
                if key.restart and key.section == name
            },
        )
        for name, section in sections.items()
    }
    return new.model_copy(update=kept)


class Watch:
    """Has a file changed since it was last asked? Call ``changed`` every second or so; it is one ``stat``.

    Editors replace a file by another, so a file counts as gone only when it was missing twice in a row.
    """

    __slots__ = ("_missing", "_seen", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = self._signature()
        self._missing = self._seen is None

    def _signature(self) -> tuple[int, int, int] | None:
        try:
            status = os.stat(self.path)  # noqa: PTH116 - Path.stat is the same with more frames
        except (OSError, ValueError):
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def changed(self) -> bool:
        """True once for each change: new content, another file in its place, the file come or gone."""
        signature = self._signature()
        gone = signature is None
        if gone and not self._missing:
            self._missing = True
            return False
        self._missing = gone
        if signature == self._seen:
            return False
        self._seen = signature
        return True
