"""Events of a chat stream that differ in nothing but a piece of text, which most do: told by how they begin and end.

Exact where it answers. Whatever has the same bytes before and behind the text, and in between what JSON takes for one
string, is the same event with another text.
"""

import re
from typing import Any, Final

import orjson

from proxy.answers import usage
from proxy.answers.chat import ChatAnswer

_SAID: Final = "content"
_VARIES: Final = (_SAID, "reasoning_content", "reasoning")
_CALLS: Final = "tool_calls"
_ARGUMENTS: Final = "arguments"
_PROBE: Final = b"?"
_TEXT: Final = rb'"%b":"([^"\\]*(?:\\.[^"\\]*)*)"'  # by its key


class Alike:
    """What such events have in common.

    ``said``: their text is part of the answer, and no thought. ``call``: it is part of the arguments of the call of a
    tool that has this number.
    """

    __slots__ = ("_after", "_before", "_common", "call", "said")

    def __init__(self, before: bytes, after: bytes, *, said: bool, call: int | None) -> None:
        self._before = before
        self._after = after
        self._common = len(before) + len(after)
        self.said = said
        self.call = call

    def fit(self, pieces: list[bytes]) -> bool:
        """Is each piece one such event?"""
        between = self._between(pieces)
        if between is None:
            return False
        joined = b"".join(between)
        # An escaped quote, or more than one line: whether it is all one string must be looked at.
        if b'"' in joined or b"\n" in joined or b"\r" in joined:
            return _strings(between) is not None
        return True

    def texts(self, pieces: list[bytes]) -> list[str] | None:
        """The text of each piece, where each is one such event; else None."""
        between = self._between(pieces)
        return _strings(between) if between is not None else None

    def tell(self, chat: ChatAnswer, texts: list[str]) -> None:
        """Add to an answer what such events say."""
        if self.call is not None:
            chat.add_arguments(self.call, texts)
        elif self.said:
            chat.add_texts(texts)

    def _between(self, pieces: list[bytes]) -> list[bytes] | None:
        """What each piece has between what all have in common; None where one does not have that."""
        before, after = self._before, self._after
        if not pieces[0].startswith(before) or not pieces[-1].endswith(after):
            return None
        between = [piece.removeprefix(before).removesuffix(after) for piece in pieces]
        found = sum(map(len, pieces)) - sum(map(len, between))
        return between if found == len(pieces) * self._common else None


def _strings(between: list[bytes]) -> list[str] | None:
    """What they say, where each is the inside of one string of JSON."""
    try:
        found: list[str] = orjson.loads(b'["%b"]' % b'","'.join(between))
    except orjson.JSONDecodeError:
        return None
    # A quote that is part of a text's bytes and not escaped would have made more of them.
    return found if len(found) == len(between) else None


def alike(event: bytes) -> Alike | None:
    """What the events that follow have in common with this one, given with its line ends; None where it is special."""
    if not event.startswith(b"data:") or not event.endswith(b"\n\n") or event.count(b"\n") != 2:
        return None
    try:
        parsed = orjson.loads(event[5:])
        varies = _varies(parsed)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return None
    if varies is None:
        return None
    holder, key, call = varies
    text = re.search(_TEXT % key.encode(), event)
    if text is None:
        return None
    before, after = event[: text.start(1)], event[text.end(1) :]
    holder[key] = _PROBE.decode()
    try:
        same = orjson.loads((before + _PROBE + after)[5:]) == parsed
    except orjson.JSONDecodeError:
        return None
    return Alike(before, after, said=key == _SAID, call=call) if same else None


def _varies(event: dict[str, Any]) -> tuple[dict[str, Any], str, int | None] | None:
    """Where the one text of an event stands that says nothing else: its holder, its key, and the number of its call."""
    choice = event["choices"][0]
    if len(event["choices"]) != 1 or choice.get("index") or choice.get("finish_reason"):
        return None
    if usage.found(event) is not None:
        return None
    delta = choice["delta"]
    said = [key for key, value in delta.items() if value and key != "role"]
    if said == [_CALLS]:
        (call,) = delta[_CALLS]  # ValueError: there are several
        function, index = call["function"], call["index"]
        plain = type(index) is int and not call.get("id") and not function.get("name")
        return (function, _ARGUMENTS, index) if plain and isinstance(function[_ARGUMENTS], str) else None
    plain = len(said) == 1 and said[0] in _VARIES and isinstance(delta[said[0]], str)
    return (delta, said[0], None) if plain else None
