"""Which header fields name a session, and what becomes of them on the way up.

The gateway takes a session id from several fields and its precedence is not known, so exactly one may leave here.
Fields are ``(name, value)`` pairs in bytes, names as sent; hop-by-hop fields and ``Host`` are the wire's business.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache

# The fields by which clients and the gateway know a session (OpenCode, Kilo, pi, Codex, Claude Code, Goose,
# Open WebUI, Crush, Roo, Cline, Helicone, LiteLLM); the generic pattern below knows the rest.
SESSION_FIELDS = frozenset(
    {
        b"x-opencode-session",
        b"x-opencode-session-id",
        b"thread-id",
        b"thread_id",
        b"x-thread-id",
        b"x-claude-code-session-id",
        b"x-claude-code-agent-id",
        b"x-session-affinity",
        b"x-session-id",
        b"agent-session-id",
        b"goose-session-id",
        b"x-openwebui-chat-id",
        b"x-kilo-session",
        b"x-kilocode-taskid",
        b"x-task-id",
        b"x-roo-task-id",
        b"x-grok-conv-id",
        b"x-conversation-id",
        b"conversation_id",
        b"helicone-session-id",
        b"session-id",
        b"session_id",
        b"x-litellm-session-id",
        b"litellm-session-id",
        b"litellm_session_id",
        b"x-deepseek-harness-session-id",
    }
)

# These name another conversation: the one that started this.
PARENT_FIELDS = frozenset(
    {
        b"x-parent-session-id",
        b"x-opencode-parent-session-id",
        b"x-codex-parent-thread-id",
        b"x-claude-code-parent-agent-id",
    }
)

# A client's words to ocpool; whatever else it says under this prefix is not the gateway's either.
OWN_FIELDS = frozenset({b"x-ocpool-conversation", b"x-ocpool-class", b"x-ocpool-token"})
OWN_PREFIX = b"x-ocpool-"

CREDENTIAL_FIELDS = frozenset(
    {
        b"authorization",
        b"x-api-key",
        b"api-key",
        b"x-goog-api-key",
        b"x-opencode-org-id",
        b"cookie",
        b"proxy-authorization",
    }
)

FRAMING_FIELDS = frozenset(
    {
        b"host",
        b"connection",
        b"content-length",
        b"content-type",
        b"content-encoding",
        b"transfer-encoding",
        b"te",
        b"trailer",
        b"upgrade",
        b"expect",
    }
)

# A value this long is an identity; a shorter one ("1", "main") may be equal by accident.
TELLING_LENGTH = 16

_ENDINGS = (b"-session-id", b"-conversation-id", b"-chat-id")
_NOT_A_SESSION = (b"parent", b"request", b"trace", b"token", b"auth")
_REMEMBERED_NAME = 64


# What a field is to ``rewrite``; plain numbers, because it asks for each field of each request.
_KEPT = 0  # framing and credentials: never touched, whatever their value
_PLAIN = 1
_CHOSEN = 2  # the configured session header
_SESSION = 3
_PARENT = 4
_OWN = 5


def is_session_field(lower: bytes) -> bool:
    """Does this lower-cased name carry a session id: one of the table, or ``x-<name>-session-id`` and its like.

    Underscores count as dashes: some servers and clients turn one into the other.
    """
    if lower in SESSION_FIELDS or (lower := lower.replace(b"_", b"-")) in SESSION_FIELDS:
        return True
    if lower in PARENT_FIELDS or lower.startswith(OWN_PREFIX) or not _is_generic(lower):
        return False
    return not any(word in lower for word in _NOT_A_SESSION)


def is_parent_field(lower: bytes) -> bool:
    """Does this lower-cased name carry the id of the conversation that started this one?"""
    lower = lower.replace(b"_", b"-")
    return lower in PARENT_FIELDS or (_is_generic(lower) and b"parent" in lower)


def has_session_field(fields: Iterable[tuple[bytes, bytes]]) -> bool:
    """Is there any session field with a value? An empty one counts as missing, as it does at the gateway."""
    return any(is_session_field(name.lower()) and value.strip() for name, value in fields)


def rewrite(
    fields: Iterable[tuple[bytes, bytes]],
    *,
    session_header: bytes,
    session: bytes | None,
    parent: Callable[[bytes], bytes | None],
) -> list[tuple[bytes, bytes]]:
    """The fields to send upstream: exactly one session field, holding ``session``; the rest as the client sent it.

    The client's own position and spelling of ``session_header`` are kept, else it is appended. ``parent`` gives a
    parent's routed id for the client's value, or None to drop the field. A field whose whole value equals one that
    was taken away goes too, when the value is at least 16 characters long. ``session=None`` changes nothing but to
    strip our own fields.
    """
    chosen = session_header.lower()
    if session is None:
        return [field for field in fields if _kind_of(field[0], chosen) != _OWN]
    sent: list[tuple[bytes, bytes]] = []
    gone: set[bytes] = set()
    placed = False
    for field in fields:
        name, value = field
        kind = _remembered(name, chosen) if len(name) <= _REMEMBERED_NAME else _kind(name, chosen)
        if kind <= _PLAIN:
            sent.append(field)
        elif kind == _CHOSEN and not placed:
            placed = True
            sent.append((name, session))
            if value != session:
                gone.add(value)
        elif kind == _PARENT:
            mapped = parent(value)
            if mapped is not None:
                sent.append((name, mapped))
            if mapped != value:
                gone.add(value)
        elif kind != _OWN:
            gone.add(value)
    if not placed:
        sent.append((session_header, session))
    telling = {value for value in gone if len(value) >= TELLING_LENGTH}
    if not telling:
        return sent
    return [field for field in sent if field[1] not in telling or _kind_of(field[0], chosen) != _PLAIN]


def depends_on_session(fields: Iterable[tuple[bytes, bytes]], session_header: bytes) -> bool:
    """Does more than one value depend on the session that ``rewrite`` is given: a parent, or a copy of an id?"""
    chosen = session_header.lower()
    kinds = [(_kind_of(name, chosen), value) for name, value in fields]
    ids = {value for kind, value in kinds if kind in {_CHOSEN, _SESSION} and len(value) >= TELLING_LENGTH}
    return any(kind == _PARENT or (kind == _PLAIN and value in ids) for kind, value in kinds)


def _kind_of(name: bytes, chosen: bytes) -> int:
    """What a field is, by its name as sent; ``chosen`` is the session header in lower case."""
    if len(name) <= _REMEMBERED_NAME:
        return _remembered(name, chosen)
    return _kind(name, chosen)


def _kind(name: bytes, chosen: bytes) -> int:
    lower = name.lower()
    if lower == chosen:
        return _CHOSEN
    if lower.startswith(OWN_PREFIX):
        return _OWN
    if lower in CREDENTIAL_FIELDS or lower in FRAMING_FIELDS:
        return _KEPT
    if is_session_field(lower):
        return _SESSION
    return _PARENT if is_parent_field(lower) else _PLAIN


_remembered = lru_cache(maxsize=4096)(_kind)


def _is_generic(lower: bytes) -> bool:
    return lower.startswith(b"x-") and lower.endswith(_ENDINGS)
