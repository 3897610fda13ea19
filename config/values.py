"""Values given as text, on the command line or in the environment, read the way the TOML file would."""

import re
from types import MappingProxyType
from typing import Any

from config.keys import Key, Kind
from config.notes import KeyPath

SWITCHES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}

_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")  # what TOML reads as the same number


class NotTomlError(ValueError):
    """The text is no TOML value; it is a bare word."""


def toml_value(text: str) -> Any:
    """The TOML value that ``text`` is.

    Raises:
        NotTomlError: it is none, or more than one.
    """
    import tomllib  # noqa: PLC0415 - 15 ms that most starts do not need

    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):  # also numbers of thousands of digits, brackets nested without end
        raise NotTomlError from None
    if table.keys() != {"value"}:
        raise NotTomlError
    return table["value"]


def _list(text: str) -> Any:
    """A TOML list, or bare words between commas."""
    if text[:1] in {"[", "{", '"', "'"}:
        value = toml_value(text)
        return [value] if isinstance(value, str) else value
    return [word.strip() for word in text.split(",") if word.strip()]


def read_text(key: Key, text: str) -> Any:
    """``text`` as a value for ``key``. What cannot be read is left as text, for the range check to refuse.

    A bare word is a string, and bare words between commas are a list. Where text is expected, only quotes are
    read as TOML, so that a token of digits stays a token.
    """
    text = text.strip()
    if key.kind is Kind.SWITCH:
        return SWITCHES.get(text.lower(), text)
    if key.kind in {Kind.TEXT, Kind.CHOICE} and text[:1] not in {'"', "'"}:
        return text
    if key.kind is Kind.NUMBER and _NUMBER.fullmatch(text):
        return int(text)
    try:
        return _list(text) if key.kind is Kind.LIST else toml_value(text)
    except NotTomlError:
        return text


def put(tables: dict[str, Any], path: KeyPath, value: Any) -> None:
    """Set one key in nested tables, which are made as they are needed."""
    for part in path[:-1]:
        tables = tables.setdefault(part, {})
    tables[path[-1]] = value


def read_value(key: Key, text: str) -> Any:
    """``read_text`` for sources whose tables are merged: a table that is one value takes the file's place."""
    value = read_text(key, text)
    return MappingProxyType(value) if key.kind is Kind.TABLE and isinstance(value, dict) else value
