"""What is wrong with a value, in our words: its key, the value unless it is secret, and what it must be."""

import re
import reprlib
from collections.abc import Mapping
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from config.entries import Entry, Path
from config.keys import Key, find, nearest, spell
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


def _place(path: Path, rest: tuple[int | str, ...]) -> str:
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


def _tell(error: ErrorDetails, entries: Mapping[Path, Entry]) -> str:
    loc = error["loc"]
    size = 3 if loc[:1] == ("models",) else 2
    path = tuple(str(part) for part in loc[:size])
    key = find(path)
    if key is None:
        reason = str(error["ctx"]["error"]) if error["type"] == "value_error" else error["msg"]
        over_several = len(loc) == 1 and error["type"] == "value_error"  # such a check names the keys itself
        return reason if over_several else f"{spell(path[:2])}: {reason}"
    entry = entries.get(path)
    origin = f" ({entry.origin})" if entry else ""
    reason = _reason(error, key, inside=len(loc) > size)
    if key.secret:
        return f"{key.name if size == 2 else spell(path)}{origin}: {reason}"
    value = "" if error["type"] == "missing" else f" = {show(error['input'])}"
    return f"{_place(path, loc[size:])}{value}{origin}: {reason}"


def tell(errors: ValidationError, entries: Mapping[Path, Entry]) -> list[str]:
    """One line for each thing that is wrong."""
    return [_tell(error, entries) for error in errors.errors(include_url=False)]
