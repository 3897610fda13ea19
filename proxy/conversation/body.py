"""What a request body says about its conversation, read once and never changed.

Nothing of the document outlives the decision but the few facts below. A compressed body is not read at all. A body
over 4 MiB is not parsed: ``scan.py`` looks for its model and its stream flag, and ids come from the fields alone.
"""

import re
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from proxy.conversation.content import LISTS, Content
from proxy.conversation.precedence import BODY_KEYS, NESTED, accept
from proxy.conversation.prefixes import SMALLEST, Prefixes
from proxy.conversation.scan import scan

PARSE_MAX_BYTES: Final = 4 * 1024 * 1024
_KEYS = frozenset(BODY_KEYS)
_LONGEST_NAME = 256  # a longer one must not fill the memo
_PLACES = _KEYS.union(NESTED)
_SESSION_IN_USER = re.compile(r"_session_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", re.IGNORECASE)


class BodyFacts(NamedTuple):
    """What was read from a request body.

    ``ids`` are the client's ids (ranks 6, 8 and 9) as (place, value), places such as ``metadata.session_id``.
    ``non_system`` counts messages that are neither system nor developer, to at most ``COUNTED``. ``content`` holds
    the messages themselves until it was decided where they belong.
    """

    parsed: bool
    model: str | None = None
    stream: bool = False
    ids: tuple[tuple[str, str], ...] = ()
    prompt_cache_key: str | None = None
    tools: bool = False
    non_system: int = 0
    input_bytes: int = 0
    content: Content | None = None


UNREAD: Final = BodyFacts(False)


def read(chunks: list[bytes], size: int, encoded: bool, prefixes: Prefixes | None = None) -> BodyFacts:
    """Read a body of ``size`` bytes in ``chunks``; ``encoded`` when it has a Content-Encoding. Never raises.

    ``prefixes`` are the bodies before, which may have begun alike.
    """
    if encoded or not size:
        return BodyFacts(False, input_bytes=size)
    if size > PARSE_MAX_BYTES:
        model, stream = scan(chunks)
        return BodyFacts(False, _model(model), stream, input_bytes=size)
    data = b"".join(chunks)  # a single one is not copied
    if size < SMALLEST:
        prefixes = None
    elif prefixes is not None and (facts := _continued(data, prefixes)) is not None:
        return facts
    try:
        document = orjson.loads(data)
    except ValueError:  # not JSON, not UTF-8, or nested too deep
        document = None
    if not isinstance(document, dict):
        return BodyFacts(False, input_bytes=size)
    for name in LISTS:
        messages = document.get(name)
        if isinstance(messages, list):
            content = Content(document, name, messages)
            facts = _facts(document, content, size)
            if prefixes is not None:
                content.remembering(prefixes, data, facts._replace(content=None))
            return facts
    return _facts(document, None, size)


def _continued(data: bytes, prefixes: Prefixes) -> BodyFacts | None:
    """Read only what follows the beginning that a body before had, if one did."""
    found = prefixes.find(data)
    if found is None:
        return None
    known = found.known
    name = known.layout.name
    key = b'"' + name.encode() + b'"'
    try:
        if found.end:
            document: dict[str, Any] = {}
            messages = orjson.loads(b"[{}" + data[known.end : found.end] + b"]")[1:]
        elif data.rfind(key, known.end) >= 0:
            return None  # the same key again, perhaps: let the parser decide
        else:
            document = orjson.loads(data[: known.start - 1] + b"0}")
            document.update(orjson.loads(b"{" + key + b":[{}" + data[known.end :]))
            messages = document[name][1:]
    except ValueError:
        return None
    content = Content(document, name, messages)
    facts = _facts(document, None, len(data)) if document else known.layout.facts
    content.remembering(prefixes, data, facts, found)
    return facts._replace(non_system=content.count, input_bytes=len(data), content=content)


def _facts(document: dict[str, Any], content: Content | None, size: int) -> BodyFacts:
    get = document.get
    ids = () if _PLACES.isdisjoint(document) else _ids(document)
    return BodyFacts(
        True,
        _model(get("model")),
        get("stream") is True,
        ids,
        _cache_key(ids) if ids else None,
        bool(get("tools") or get("functions")),
        content.count if content is not None else 0,
        size,
        content,
    )


def _model(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    return _name(value) if len(value) <= _LONGEST_NAME else accept(value)


_name = lru_cache(maxsize=256)(accept)  # clients have few names for models, and send one with every request


def _cache_key(ids: tuple[tuple[str, str], ...]) -> str | None:
    for place, value in ids:
        if place.endswith(("prompt_cache_key", "promptCacheKey")):
            return value
    return None


def _ids(document: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    found = _ids_in(document, "")
    for name in NESTED:
        nested = document.get(name)
        if isinstance(nested, dict):
            found += _ids_in(nested, f"{name}.")
    return tuple(found)


def _ids_in(part: dict[str, Any], prefix: str) -> list[tuple[str, str]]:
    present = [key for key in part if key in _KEYS]
    if not present:
        return []
    found = []
    for key in present:
        value = part[key]
        if key == "user_id":
            value = _session_in(value) if prefix == "metadata." else None
        elif key == "conversation" and isinstance(value, dict):
            value = value.get("id")
        text = accept(value) if isinstance(value, str) else None
        if text is not None:
            found.append((prefix + key, text))
    return found


def _session_in(user_id: object) -> object:
    """Find the session that some clients put into ``metadata.user_id``; one without is an end user, no identity."""
    if not isinstance(user_id, str):
        return None
    if user_id.startswith("{"):
        try:
            inner = orjson.loads(user_id)
        except ValueError:
            return None
        return inner.get("session_id") if isinstance(inner, dict) else None
    session = _SESSION_IN_USER.search(user_id)
    return session[1] if session else None
