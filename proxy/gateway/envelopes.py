"""The shapes that an error comes in, reduced to what it says: classes, a message, the name of a limit."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from proxy.answers.codings import beginning

# Refusals are small; what is longer is a page or a mistake, and its beginning says enough.
_READ_BYTES = 65_536
_MESSAGE_LENGTH = 4000

_WRAPPERS = re.compile(r"error from provider \([^)]{0,80}\): *|upstream request failed: *")
_BRACKET = re.compile(r"\[([a-z0-9_.\- ]{1,64})\]")
_MARKS = (b'error"', b'Error"', b'"response.failed"', b"Upstream request failed", b"Error from provider")
_ANSWERS = frozenset({"choices", "output", "content", "candidates"})


class Said(NamedTuple):
    """What an error says, in lower case. ``classes``: its type, its codes, and those in brackets.

    ``read`` is False when the body could not be looked into; ``status`` is one the body itself states.
    """

    classes: frozenset[str]
    message: str
    limit_name: str | None
    read: bool = True
    status: int | None = None


def said(fields: Iterable[tuple[bytes, bytes]], body: bytes) -> Said:
    """What a refusal's body says; a page or plain text is all message. The body itself is not changed."""
    plain = _decoded(fields, body[:_READ_BYTES])
    if plain is None:
        return Said(frozenset(), "", None, read=False)
    document = _document(plain)
    if document is None:
        return _words([], plain.decode("utf-8", "replace"), None)
    return _from_document(document)


def in_stream(body: bytes) -> Said | None:
    """What an error inside a 200 says, or None when there is none. Cheap for a body that never says "error"."""
    if not any(mark in body for mark in _MARKS):
        return None
    document = _document(body)
    if isinstance(document, list) and document:
        document = document[0]
    if not isinstance(document, dict):
        return None
    inner = document.get("response")
    if document.get("type") == "response.failed" and isinstance(inner, dict):
        document = inner
    return _from_document(document) if _is_error(document) else None


def _is_error(document: dict[str, Any]) -> bool:
    """An error envelope, or a bare one: a type that says so, or a relayed message, and no answer beside it."""
    if document.get("error") or document.get("type") == "error":
        return True
    message = document.get("message")
    if not isinstance(message, str) or not document.keys().isdisjoint(_ANSWERS):
        return False
    kind = document.get("type")
    return (isinstance(kind, str) and kind.lower().endswith("error")) or bool(_WRAPPERS.match(message.lower()))


def _from_document(document: Any) -> Said:
    if isinstance(document, list) and document:
        document = document[0]
    if not isinstance(document, dict):
        return _words([], str(document), None)
    error = document.get("error")
    inner = error if isinstance(error, dict) else document
    names = [inner.get(key) for key in ("type", "code", "status", "name")]
    texts = [text for text in _texts(error, inner) if isinstance(text, str)]
    return _words(names, " ".join(texts), _limit_name(inner, document))


def _texts(error: Any, inner: dict[str, Any]) -> Iterator[Any]:
    if isinstance(error, str):
        yield error
    for key in ("message", "detail", "error_description"):
        yield inner.get(key)


def _limit_name(*holders: dict[str, Any]) -> str | None:
    for holder in holders:
        metadata = holder.get("metadata")
        name = metadata.get("limitName") if isinstance(metadata, dict) else None
        if isinstance(name, str) and name:
            return name[:64]
    return None


def _words(names: list[Any], text: str, limit_name: str | None) -> Said:
    message = _WRAPPERS.sub("", text[:_MESSAGE_LENGTH].lower())
    classes = {name.lower() for name in names if isinstance(name, str)}
    classes.update(_BRACKET.findall(message))
    status = next((n for n in names if type(n) is int and 400 <= n <= 599), None)
    return Said(frozenset(classes - {"error"}), message, limit_name, status=status)


def _document(body: bytes) -> Any:
    """The parsed body, or None when it is no JSON object or array."""
    if body.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _decoded(fields: Iterable[tuple[bytes, bytes]], body: bytes) -> bytes | None:
    """A copy without its content coding, at most 64 KiB of it; None when the coding cannot be undone here."""
    codings = [
        coding.strip().lower()
        for name, value in fields
        if name.lower() == b"content-encoding"
        for coding in value.split(b",")
    ]
    codings = [coding for coding in codings if coding not in (b"", b"identity")]
    if not codings or not body:
        return body
    return beginning(codings[0], body, _READ_BYTES) if len(codings) == 1 else None
