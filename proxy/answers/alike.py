"""Events of a chat stream that differ in nothing but a piece of text, which most do: told by how they begin and end.

Exact where it answers. Whatever has the same bytes before and behind the text, and in between what JSON takes for one
string, is the same event with another text.
"""

from typing import Any, Final

import orjson

from proxy.answers import usage
from proxy.answers.events import failed

_SAID: Final = "content"
_VARIES: Final = (_SAID, "reasoning_content", "reasoning")
_PROBE: Final = b"?"


class Alike:
    """What such events have in common. ``said``: their text is part of the answer, and no thought."""

    __slots__ = ("_after", "_before", "_common", "said")

    def __init__(self, before: bytes, after: bytes, *, said: bool) -> None:
        self._before = before
        self._after = after
        self._common = len(before) + len(after)
        self.said = said

    def texts(self, pieces: list[bytes], size: int) -> list[str] | None:
        """The text of each piece, where each is one such event; else None. ``size`` is that of all of them."""
        before, after = self._before, self._after
        if not pieces[0].startswith(before) or not pieces[-1].endswith(after):
            return None
        start, stop = len(before), -len(after)
        texts = [piece[start:stop] for piece in pieces if piece.startswith(before) and piece.endswith(after)]
        joined = b'","'.join(texts)
        count = len(pieces)
        if len(texts) != count or len(joined) != size - count * self._common + 3 * (count - 1):
            return None
        try:
            found = orjson.loads(b'["%b"]' % joined)
        except orjson.JSONDecodeError:
            return None
        # A quote that is part of a text's bytes and not escaped would have made more of them.
        return found if len(found) == count else None


def alike(event: bytes) -> Alike | None:
    """What the events that follow have in common with this one, given with its line ends; None where it is special."""
    if not event.startswith(b"data:") or not event.endswith(b"\n\n") or event.count(b"\n") != 2:
        return None
    try:
        parsed = orjson.loads(event[5:])
        delta = parsed["choices"][0]["delta"]
        key = _varies(parsed, delta)
    except (orjson.JSONDecodeError, TypeError, KeyError, IndexError, AttributeError):
        return None
    if key is None:
        return None
    before, found, rest = event.partition(b'"%b":"' % key.encode())
    _, quote, after = rest.partition(b'"')
    before, after = before + found, quote + after
    delta[key] = _PROBE.decode()
    try:
        same = orjson.loads((before + _PROBE + after)[5:]) == parsed
    except orjson.JSONDecodeError:  # a quote in its text: another event will do
        return None
    return Alike(before, after, said=key == _SAID) if same else None


def _varies(event: dict[str, Any], delta: dict[str, Any]) -> str | None:
    """The key of the one text in an event that says nothing else."""
    choice = event["choices"][0]
    if len(event["choices"]) != 1 or choice.get("index") or choice.get("finish_reason"):
        return None
    if usage.found(event) is not None or failed(event):
        return None
    said = [key for key, value in delta.items() if value and key != "role"]
    return said[0] if len(said) == 1 and said[0] in _VARIES and isinstance(delta[said[0]], str) else None
