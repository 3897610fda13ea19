"""Settings as they may be shown: every key, secrets masked."""

import re
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from config.keys import KEYS, spell
from config.sections.base import Section
from config.settings import Settings

MASK = "***"
_USERINFO = re.compile(r"//[^/@]*@")


def shown(value: Any) -> Any:
    """A value in JSON's types; a secret, and the password in a proxy's URL, is a mask."""
    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, str | Path):
        return _USERINFO.sub(f"//{MASK}@", str(value))
    if isinstance(value, Section):
        said = {info.alias or name: getattr(value, name) for name, info in type(value).model_fields.items()}
        return {name: shown(item) for name, item in said.items() if item is not None}
    if isinstance(value, dict):
        return {name: shown(item) for name, item in value.items()}
    return [shown(item) for item in value] if isinstance(value, tuple) else value


def values(settings: Settings) -> dict[str, Any]:
    """Every key by its name, and those of models that are set, in the order of the reference."""
    every = {key.name: getattr(getattr(settings, key.section), key.field) for key in KEYS.values()}
    for model, override in settings.models.items():
        every |= {spell(("models", model, name)): getattr(override, name) for name in override.model_fields_set}
    return {name: shown(value) for name, value in every.items()}
