"""Finds ``model`` and ``stream`` in a body that is too large to parse, in its first and last 64 KiB.

Both ends are read as JSON tokens, not as text: forwards from the opening brace, backwards from the closing one.
Only keys of the outermost object count, so the same words inside a message, or in a nested object, are passed
over. As in a full parse, the last of two equal keys counts.

The limits: a key that stands in neither window, behind one long message and before another, is not found, nor is
one whose value crosses the edge of its window, one that is spelled with escapes, or one that comes after more than
``TOKENS`` tokens; and what is not JSON is not noticed as such.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import orjson

WINDOW: Final = 64 * 1024
TOKENS: Final = 16384  # of each window: a bound on the time, not met by text or tool schemas

_WANTED = {b'"model"': "model", b'"stream"': "stream"}
# A string that the window cuts off runs to its end, so that nothing is read out of its middle.
_FORWARD = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[{}\[\]:,]|[^\s{}\[\]:,"]++', re.DOTALL)
# The same, mirrored: a quote that a backslash follows (precedes, in the document) is part of the string, because
# outside of strings JSON has no backslashes.
_BACKWARD = re.compile(rb'"[^"]*+(?:"(?=\\)[^"]*+)*+(?:"|\Z)|[{}\[\]:,]|[^\s{}\[\]:,"]++', re.DOTALL)
_OPENING = (b"{", b"[")
_CLOSING = (b"}", b"]")


def scan(chunks: Sequence[bytes]) -> tuple[str | None, bool]:
    """Return the model, if it was found, and whether ``"stream": true`` was."""
    found = dict(_from_start(_head(chunks)))
    late: dict[str, bytes] = {}
    for name, token in _from_end(_tail(chunks)):
        late.setdefault(name, token)  # read backwards, the first is the last
    found |= late
    return _text(found.get("model")), found.get("stream") == b"true"


def _head(chunks: Sequence[bytes]) -> bytes:
    parts: list[bytes] = []
    missing = WINDOW
    for chunk in chunks:
        parts.append(chunk[:missing])
        missing -= len(parts[-1])
        if not missing:
            break
    return b"".join(parts)


def _tail(chunks: Sequence[bytes]) -> bytes:
    parts: list[bytes] = []
    missing = WINDOW
    for chunk in reversed(chunks):
        parts.append(chunk[-missing:])
        missing -= len(parts[-1])
        if not missing:
            break
    return b"".join(reversed(parts))


def _from_start(head: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the wanted keys of the outermost object with the token of their value."""
    depth = 0
    key: str | None = None
    before = b""
    for match in islice(_FORWARD.finditer(head), TOKENS):
        token = match[0]
        if token in _OPENING:
            if key is not None and depth == 1:
                yield key, token  # no text, but the last one of a name counts
            depth += 1
        elif token in _CLOSING:
            depth -= 1
            if depth <= 0:
                return
        elif depth != 1:
            if not depth:
                return  # no object
        elif token == b":":
            key = _WANTED.get(before)
            before = token
            continue
        elif key is not None and match.end() < len(head):
            yield key, token
        key = None
        before = token


def _from_end(tail: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the wanted keys of the outermost object with the token of their value, the last first."""
    depth = 0
    value = token = b""
    for match in islice(_BACKWARD.finditer(tail[::-1]), TOKENS):
        before, token = token, match[0][::-1]
        if token in _CLOSING:
            depth += 1
        elif token in _OPENING:
            depth -= 1
            if depth <= 0:
                return
        elif depth != 1:
            if not depth:
                return  # no object
        elif token == b":":
            value = before
        elif before == b":" and token in _WANTED and match.end() < len(tail):
            yield _WANTED[token], value


def _text(token: bytes | None) -> str | None:
    if token is None or not token.startswith(b'"'):
        return None
    try:
        text = orjson.loads(token)
    except ValueError:
        return None
    return text if isinstance(text, str) else None
