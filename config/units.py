"""The types that settings are made of: a number with its unit, a secret, a path.

A unit is part of a key's name (``_ms``, ``_bytes``, ``_tokens``) and of its type, never only of its description.
Numbers and switches are strict: ``"3"`` in a TOML file is not 3, and ``true`` is not 1.
"""

import os
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, SecretStr, Strict


class Unit(NamedTuple):
    """What a number counts, in the words of a refusal."""

    noun: str


Millis = Annotated[int, Strict(), Unit("milliseconds")]
Bytes = Annotated[int, Strict(), Unit("bytes")]
Tokens = Annotated[int, Strict(), Unit("tokens")]
Rate = Annotated[int, Strict(), Unit("tokens a second")]
Count = Annotated[int, Strict(), Unit("")]
Switch = Annotated[bool, Strict()]

RESTART: dict[str, JsonValue] = {"x-restart": True}
"""``json_schema_extra`` of a key that a running daemon cannot take over; every other key is reloaded."""


def _printable(text: str) -> str:
    if not text:
        raise ValueError("must not be empty")
    if not text.isprintable():
        raise ValueError("must hold only printable characters")
    return text


def _path(value: object) -> object:
    """``~`` is opened here, because a path is also needed by commands that never touch it."""
    if not isinstance(value, str):
        return value
    opened = os.path.expanduser(_printable(value))  # noqa: PTH111 - Path.expanduser raises RuntimeError, this leaves ~
    if opened.startswith("~"):
        raise ValueError("starts with ~, and there is no such home folder")
    return Path(opened)


def _secret(secret: SecretStr) -> SecretStr:
    """A secret is sent in a header or a path, so it is visible ASCII; what surrounds it is a slip of the shell."""
    text = secret.get_secret_value().strip()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("must be visible ASCII characters without spaces")
    return SecretStr(text)


Text = Annotated[str, Strict(), Field(max_length=1024), AfterValidator(_printable)]
FilePath = Annotated[Path, BeforeValidator(_path)]
Secret = Annotated[SecretStr, AfterValidator(_secret)]
