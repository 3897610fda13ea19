"""What a client may name its conversation by, in the order in which it is believed.

This table is the only declaration of it: ``ids.py`` reads the fields, ``body.py`` the places in a body that
stand here, and nothing else is ever an identity. A lower row wins. Names are canonical: lower case, and ``-``
where a field was sent with ``_``; places in a body keep their spelling.
"""

import re
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple


class Kind(StrEnum):
    """How far an id is trusted: one conversation, one or more of them, or nothing was recognised."""

    OWNER = "owner"
    COHORT = "cohort"
    NONE = "none"


class Where(StrEnum):
    """Where a signal is found, which is how it is read."""

    PATH = "path"
    RULE = "rule"
    FIELD = "field"
    PATTERN = "pattern"  # any field whose name looks like a session's
    TURN = "turn"  # a JSON object in a field
    PAIR = "pair"  # two fields that are an id only together
    BODY = "body"
    AGENT = "agent"  # the second half of a pair
    PARENT = "parent"  # names another conversation
    TASK = "task"  # marks a side call
    RETRY = "retry"  # counts the attempts before this one


class Row(NamedTuple):
    """Signals of one rank and class, the first the strongest."""

    rank: int
    kind: Kind
    where: Where
    names: tuple[str, ...]


CLAUDE_SESSION = "x-claude-code-session-id"
CLAUDE_AGENT = "x-claude-code-agent-id"
CLAUDE_PARENT = "x-claude-code-parent-agent-id"
NAME = "/s/<name>/"
OURS = "x-ocpool-conversation"

PRECEDENCE: tuple[Row, ...] = (
    Row(0, Kind.OWNER, Where.PATH, (NAME,)),
    Row(0, Kind.OWNER, Where.FIELD, (OURS,)),
    Row(0, Kind.OWNER, Where.RULE, ("rule",)),  # the class is the rule's own
    Row(1, Kind.OWNER, Where.FIELD, ("x-opencode-session",)),
    Row(2, Kind.OWNER, Where.FIELD, ("thread-id",)),
    Row(2, Kind.OWNER, Where.TURN, ("x-codex-turn-metadata",)),
    Row(3, Kind.OWNER, Where.PAIR, (f"{CLAUDE_SESSION}+{CLAUDE_AGENT}",)),
    Row(4, Kind.OWNER, Where.FIELD, ("x-session-affinity", "x-session-id", "x-opencode-session-id")),
    Row(
        5,
        Kind.OWNER,
        Where.FIELD,
        (
            "agent-session-id",
            "goose-session-id",
            "x-openwebui-chat-id",
            "x-kilo-session",
            "x-kilocode-taskid",
            "x-task-id",
            "x-roo-task-id",
            "x-grok-conv-id",
            "x-conversation-id",
            "conversation-id",
            "x-thread-id",
            "helicone-session-id",
        ),
    ),
    Row(5, Kind.OWNER, Where.PATTERN, ("x-*-session-id", "x-*-conversation-id", "x-*-chat-id")),
    Row(
        6,
        Kind.OWNER,
        Where.BODY,
        (
            "conversation",
            "conversation_id",
            "conversationId",
            "thread_id",
            "threadId",
            "chat_id",
            "session_id",
            "sessionId",
        ),
    ),
    # Rank 7 is previous_response_id, which links to an answer that we relayed: not read from what a client sends.
    Row(8, Kind.COHORT, Where.FIELD, (CLAUDE_SESSION,)),
    Row(8, Kind.COHORT, Where.BODY, ("user_id",)),  # in metadata only, and only where it holds a session
    Row(8, Kind.COHORT, Where.FIELD, ("session-id", "x-litellm-session-id", "litellm-session-id")),
    Row(8, Kind.COHORT, Where.BODY, ("litellm_session_id",)),
    Row(9, Kind.COHORT, Where.BODY, ("prompt_cache_key", "promptCacheKey")),
)

MARKS: tuple[Row, ...] = (
    Row(3, Kind.NONE, Where.AGENT, (CLAUDE_AGENT,)),
    Row(
        0,
        Kind.NONE,
        Where.PARENT,
        ("x-parent-session-id", "x-opencode-parent-session-id", "x-codex-parent-thread-id", CLAUDE_PARENT),
    ),
    Row(0, Kind.NONE, Where.TASK, ("x-task",)),
    Row(0, Kind.NONE, Where.RETRY, ("x-stainless-retry-count",)),
)

NEVER_FIELDS = frozenset(
    {
        "authorization",
        "user-agent",
        "x-forwarded-for",
        "x-real-ip",
        "x-client-request-id",
        "x-request-id",
        "x-correlation-id",
        "traceparent",
        "x-litellm-trace-id",
        "x-opencode-request",
        "x-opencode-project",
        "x-opencode-client",
        "x-kilo-request",
    }
)
NEVER_PREFIXES = ("x-stainless-", "x-ocpool-")
NEVER_PLACES = frozenset({"user", "safety_identifier", "previous_response_id", "id"})

BODY_KEYS = tuple(name for row in PRECEDENCE if row.where is Where.BODY for name in row.names)
NESTED = ("metadata", "extra_body")
NO_RANK = 11  # nothing matched


class Signal(NamedTuple):
    """One name of the table; ``order`` is its place in it."""

    order: int
    rank: int
    kind: Kind
    where: Where
    name: str
    match: str  # what x-ocpool-match says when this signal decided
    is_id: bool  # read as one value of one field, else it is a mark or made of several


def _signal(order: int, row: Row, name: str) -> Signal:
    is_id = row.where is Where.FIELD or row.where is Where.PATTERN
    return Signal(order, row.rank, row.kind, row.where, name, f"{row.kind}:{name}", is_id)


_ROWS = [(row, name) for row in PRECEDENCE + MARKS for name in row.names]
SIGNALS = {name: _signal(order, row, name) for order, (row, name) in enumerate(_ROWS)}

_FIELDS = {
    name: signal
    for name, signal in SIGNALS.items()
    if signal.where in {Where.FIELD, Where.TURN, Where.AGENT, Where.PARENT, Where.TASK, Where.RETRY}
}
_PATTERN = re.compile(r"x-[a-z0-9-]+-(session|conversation|chat)-id")
_NOT_A_SESSION = re.compile(r"parent|request|trace|token|auth")
LONGEST_NAME = 64  # a longer name is nobody's session, and must not fill the memo


def canonical(name: bytes) -> str:
    """A field's name as the table spells it."""
    return name.decode("latin-1").lower().replace("_", "-")


def signal_of(name: bytes) -> Signal | None:
    """The signal that a field of this name is, in any case, with ``-`` or ``_``; None for all others."""
    text = canonical(name)
    known = _FIELDS.get(text)
    if known is not None:
        return known
    if text in NEVER_FIELDS or text.startswith(NEVER_PREFIXES):
        return None
    looks = _PATTERN.fullmatch(text)
    if looks is None or _NOT_A_SESSION.search(text):
        return None
    general = SIGNALS[f"x-*-{looks[1]}-id"]
    return general._replace(name=text, match=f"{general.kind}:{text}")


# Called for every field of every request, and clients have few names for them.
find = lru_cache(maxsize=2048)(signal_of)


def accept(text: str) -> str | None:
    """An id as it is compared: trimmed; None when it is none.

    An id is printable and of at most 256 characters. The spellings of nothing that clients send for a missing
    id, and templates that nobody filled in, would join strangers, so they are none either.
    """
    text = text.strip(" \t")
    if 0 < len(text) <= 256 and text.isprintable() and text not in _NOTHING and "{{" not in text:
        return text
    return None


def accept_field(raw: bytes) -> str | None:
    """A field's value as an id; what is not UTF-8 is none."""
    if len(raw) > _LONGEST_VALUE:
        return None
    try:
        return accept(raw.decode())
    except UnicodeDecodeError:
        return None


_LONGEST_VALUE = 1024  # 256 characters of UTF-8
_NOTHING = frozenset({"null", "None", "none", "undefined"})
