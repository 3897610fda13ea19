"""What is wrong with a value, in our words: its key, the value unless it is secret, and what it must be."""

import re
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from config.keys import KEYS, MODELS, Key, find, nearest, sections, spell, unknown
from config.notes import KeyPath
from config.sections.conversation import RuleSection

_USERINFO = re.compile(r"//\S*@")
_SHOWN = 80
_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother = 3, 4 * _SHOWN, 4 * _SHOWN
_CLASSES = get_args(RuleSection.model_fields["class_"].annotation)
_INSIDE = {"string_type": "must be text", "model_type": "must be a table"}
_WORDS = {
    "literal_error": "must be one of {choices}",
    "missing": "is missing",
    "string_too_long": "must not be longer than {max_length} characters",
    "string_unicode": "must be valid Unicode",
    "too_long": "must not hold more than {max_length}",
    "too_short": "must be at least {min_length} characters long",
}
_MISPLACED = {"dict_type", "extra_forbidden", "model_type"}
_RANGE = {
    "bool_type",
    "dict_type",
    "greater_than_equal",
    "int_type",
    "less_than_equal",
    "list_type",
    "model_type",
    "path_type",
    "string_type",
    "tuple_type",
}


def show(value: Any) -> str:
    """A value on one short line, without a password that a URL may hold."""
    try:
        text = _USERINFO.sub("//***@", _SHORT.repr(value))
    except ValueError:  # Python spells out no number of more than 4300 digits
        return "..."
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _place(path: KeyPath, rest: tuple[int | str, ...]) -> str:
    """The key and the way inside it: ``conversation.rules[0].class``."""
    return spell(path) + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest)


def _reason(error: ErrorDetails, key: Key, *, inside: bool) -> str:
    kind = error["type"]
    if kind == "value_error":
        return str(error["ctx"]["error"])
    if kind in _RANGE:
        return _INSIDE.get(kind, error["msg"]) if inside else key.expects
    if kind == "extra_forbidden":
        fields = [info.alias or name for name, info in RuleSection.model_fields.items()]
        return f"no such key of a rule; the nearest is {nearest(str(error['loc'][-1]), fields)}"
    words = {"msg": error["msg"], "choices": ", ".join(key.choices or _CLASSES), **error.get("ctx", {})}
    return _WORDS.get(kind, "{msg}").format(**words)


def _misplaced(error: ErrorDetails, path: KeyPath) -> str:
    """What is wrong with the file where there is no key."""
    name = spell(path)
    if error["type"] != "extra_forbidden":
        return f"{name}: must be a table, [{name}]"
    if len(path) > 1:
        return unknown(path)
    if isinstance(error["input"], dict):
        return f"[{name}]: no such section; the nearest is [{nearest(name, [*sections(), MODELS])}]"
    return f"{name}: must be inside a section; the nearest is {nearest(name, KEYS)}"


def _tell(error: ErrorDetails, origins: Mapping[KeyPath, str], file: Path | None) -> str:
    loc = error["loc"]
    size = 3 if loc[:1] == (MODELS,) else 2
    path = tuple(str(part) for part in loc[:size])
    key = find(path)
    if key is None:
        if error["type"] in _MISPLACED:
            return f"file {file}: {_misplaced(error, path)}"
        reason = str(error["ctx"]["error"]) if error["type"] == "value_error" else error["msg"]
        over_several = len(loc) == 1 and error["type"] == "value_error"  # such a check names the keys itself
        return reason if over_several else f"{spell(path[:2])}: {reason}"
    origin = f" ({origins[path]})" if path in origins else ""
    reason = _reason(error, key, inside=len(loc) > size)
    if key.secret:
        return f"{key.name if size == 2 else spell(path)}{origin}: {reason}"
    value = "" if error["type"] == "missing" else f" = {show(error['input'])}"
    return f"{_place(path, loc[size:])}{value}{origin}: {reason}"


def tell(errors: ValidationError, origins: Mapping[KeyPath, str], file: Path | None) -> list[str]:
    """One line for each thing that is wrong. Only the file can set what is no key: other sources refuse it first."""
    return [_tell(error, origins, file) for error in errors.errors(include_url=False)]
