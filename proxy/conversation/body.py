"""What a request body says about its conversation, read once and never changed.

Nothing of the document is kept but the few facts below. A compressed body is not read at all. A body over 4 MiB
is not parsed: ``scan.py`` looks for its model and its stream flag, and ids come from the fields alone.
"""

import re
from typing import Any, Final, NamedTuple

import orjson

from proxy.conversation.precedence import BODY_KEYS, NESTED, accept
from proxy.conversation.scan import scan

PARSE_MAX_BYTES: Final = 4 * 1024 * 1024
COUNTED: Final = 3

_KEYS = frozenset(BODY_KEYS)
_SYSTEM = ("system", "developer")
_SESSION_IN_USER = re.compile(r"_session_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", re.IGNORECASE)


class BodyFacts(NamedTuple):
    """What was read from a request body.

    ``ids`` are the client's ids (ranks 6, 8 and 9) as (place, value), places such as ``metadata.session_id``.
    ``non_system`` counts messages that are neither system nor developer, to at most ``COUNTED``.
    """

    parsed: bool
    model: str | None = None
    stream: bool = False
    ids: tuple[tuple[str, str], ...] = ()
    prompt_cache_key: str | None = None
    tools: bool = False
    non_system: int = 0
    input_bytes: int = 0


def read(chunks: list[bytes], size: int, encoded: bool) -> BodyFacts:
    """Read a body of ``size`` bytes in ``chunks``; ``encoded`` when it has a Content-Encoding. Never raises."""
    if encoded or not size:
        return BodyFacts(False, input_bytes=size)
    if size > PARSE_MAX_BYTES:
        model, stream = scan(chunks)
        return BodyFacts(False, _model(model), stream, input_bytes=size)
    try:
        document = orjson.loads(chunks[0] if len(chunks) == 1 else b"".join(chunks))
    except ValueError:  # not JSON, not UTF-8, or nested too deep
        return BodyFacts(False, input_bytes=size)
    if not isinstance(document, dict):
        return BodyFacts(False, input_bytes=size)
    ids = tuple(_ids(document))
    return BodyFacts(
        parsed=True,
        model=_model(document.get("model")),
        stream=document.get("stream") is True,
        ids=ids,
        prompt_cache_key=_cache_key(ids),
        tools=bool(document.get("tools") or document.get("functions")),
        non_system=_non_system(document),
        input_bytes=size,
    )


def _model(value: object) -> str | None:
    return accept(value) if isinstance(value, str) else None


def _cache_key(ids: tuple[tuple[str, str], ...]) -> str | None:
    for place, value in ids:
        if place.endswith(("prompt_cache_key", "promptCacheKey")):
            return value
    return None


def _non_system(document: dict[str, Any]) -> int:
    """Count what a side call has at most two of; no further than that takes."""
    messages = document.get("messages")
    if messages is None:
        messages = document.get("input")  # what the Responses API calls them
    if not isinstance(messages, list):
        return 0
    count = 0
    for message in messages:
        if not (isinstance(message, dict) and message.get("role") in _SYSTEM):
            count += 1
            if count == COUNTED:
                break
    return count


def _ids(document: dict[str, Any]) -> list[tuple[str, str]]:
    found = _ids_in(document, "")
    for name in NESTED:
        nested = document.get(name)
        if isinstance(nested, dict):
            found += _ids_in(nested, f"{name}.")
    return found


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
