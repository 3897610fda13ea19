"""Which conversation the client itself says a request belongs to.

One pass over the fields against the table in ``precedence.py``; ids in the body come from ``BodyFacts``. Nothing is
looked up or remembered here. What is not a valid id is passed over, and the request goes on without it.
"""

import re
from operator import itemgetter
from typing import NamedTuple

import orjson

from proxy.conversation.body import BodyFacts
from proxy.conversation.precedence import (
    CLAUDE_AGENT,
    CLAUDE_PARENT,
    CLAUDE_SESSION,
    LONGEST_NAME,
    NAME,
    NESTED,
    NO_RANK,
    OURS,
    SIGNALS,
    Kind,
    Signal,
    Where,
    accept,
    accept_field,
    find,
)
from proxy.conversation.rules import NO_RULES, Rules

NEW = "new"  # what x-ocpool-match says when nothing was recognised

_LONGEST_METADATA = 16 * 1024
_TITLE = re.compile(r"title-(ses_[0-9a-f]{12}[0-9A-Za-z]{14})")  # Kilo's id for the title of that session
_TASK = re.compile(r"[a-z_]+_generation|function_calling")  # what Open WebUI fills into {{TASK}}
_PAIR = SIGNALS[f"{CLAUDE_SESSION}+{CLAUDE_AGENT}"]
_BODY = {
    prefix + name: signal._replace(name=prefix + name, match=f"{signal.kind}:{prefix}{name}")
    for name, signal in SIGNALS.items()
    if signal.where is Where.BODY
    for prefix in ("", *(f"{nested}." for nested in NESTED))
}
_BY_ORDER = itemgetter(0)
_OWNER = Kind.OWNER
JOINT = "\x1f"  # between the halves of a pair: no id has it


class Reading(NamedTuple):
    """What the client's ids say; values never leave the process.

    ``match`` is the text of ``x-ocpool-match``, ``signal`` the name of the field or the place that decided,
    ``session`` the value of the strongest session field that was sent: what the gateway would have seen.
    ``parent`` is the value that the client calls the conversation which started this one. ``side``: the client
    marked it as a side call, ``retry``: as a retry. ``disagrees`` names the other owner signals that had another value.
    """

    rank: int
    match: str
    kind: Kind
    signal: str
    value: str
    session: str | None = None
    parent: str | None = None
    side: bool = False
    retry: bool = False
    disagrees: tuple[str, ...] = ()


class _Sent:
    """What one pass found: ids by their place in the table, and the marks beside them."""

    agent: str | None = None
    parent: str | None = None
    parent_agent: str | None = None
    side = False
    retry = False
    turn: bytes | None = None

    def __init__(self) -> None:
        self.ids: list[tuple[int, str, Signal]] = []


def read_ids(
    fields: list[tuple[bytes, bytes]],
    named: str | None,
    facts: BodyFacts | None,
    rules: Rules = NO_RULES,
    path: str = "",
) -> Reading:
    """Read the ids of a request.

    ``named`` is the name in ``/s/<name>/``, ``facts`` None when the body was not read, ``path`` what the rules
    about paths are compared with. Never raises.
    """
    chosen = about = None
    if rules:
        fields, chosen, about = rules.apply(fields, path)
    sent = _pass(fields)
    if sent.turn is not None:
        _read_turn(sent)
    pair = _pair(sent) if sent.agent is not None else None
    ids = sent.ids
    if len(ids) > 1:
        ids.sort(key=_BY_ORDER)  # stable: of equals, the first that was sent
    session = _session(ids, pair) if ids else None
    if about is Kind.NONE:
        ids = [found for found in ids if found[2].name == OURS]
        session = pair = None
    elif facts is not None and facts.ids:
        ids = sorted([*ids, *_in_body(facts)], key=_BY_ORDER)
    if pair is not None:
        ids = sorted([*ids, (_PAIR.order, pair, _PAIR)], key=_BY_ORDER)
    rank, kind, match, signal, value = _decide(ids, named, chosen, about)
    others = _others(ids, value) if rank > 0 and len(ids) > 1 else ()
    return Reading(rank, match, kind, signal, value, session, sent.parent, sent.side, sent.retry, others)


def _pass(fields: list[tuple[bytes, bytes]]) -> _Sent:
    sent = _Sent()
    for name, raw in fields:
        signal = find(name) if len(name) <= LONGEST_NAME else None
        if signal is None:
            continue
        if not signal.is_id:
            _mark(sent, signal, raw)
        elif (value := accept_field(raw)) is not None:
            if value.startswith("title-") and (title := _TITLE.fullmatch(value)) is not None:
                value = title[1]
                sent.side = True
            sent.ids.append((signal.order, value, signal))
    return sent


def _mark(sent: _Sent, signal: Signal, raw: bytes) -> None:
    if signal.where is Where.TURN:
        sent.turn = raw
        return
    value = accept_field(raw)
    if value is None:
        return
    if signal.where is Where.RETRY:
        sent.retry = value.isdigit() and int(value) > 0
    elif signal.where is Where.AGENT:
        sent.agent = value
    elif signal.name == CLAUDE_PARENT:
        sent.parent_agent = value
    elif signal.where is Where.PARENT:
        sent.parent = sent.parent or value
    elif _TASK.fullmatch(value):
        sent.side = True


def _read_turn(sent: _Sent) -> None:
    """Read Codex's ``x-codex-turn-metadata``: its thread, and the thread that started it."""
    raw = sent.turn
    if raw is None or len(raw) > _LONGEST_METADATA:
        return
    try:
        turn = orjson.loads(raw)
    except ValueError:
        return
    if not isinstance(turn, dict):
        return
    thread, parent = turn.get("thread_id"), turn.get("parent_thread_id")
    if isinstance(thread, str) and (value := accept(thread)) is not None:
        signal = SIGNALS["x-codex-turn-metadata"]
        sent.ids.append((signal.order, value, signal))
    if sent.parent is None and isinstance(parent, str):
        sent.parent = accept(parent)


def _pair(sent: _Sent) -> str | None:
    """Claude Code's session and agent as one id; its parent is the session's own, or the agent that started it."""
    session = next((value for _, value, signal in sent.ids if signal.name == CLAUDE_SESSION), None)
    if session is None:
        return None
    sent.parent = session if sent.parent_agent is None else f"{session}{JOINT}{sent.parent_agent}"
    return f"{session}{JOINT}{sent.agent}"


def _session(ids: list[tuple[int, str, Signal]], pair: str | None) -> str | None:
    """Find the strongest value that the gateway would have seen as the session's.

    What is told to us alone it would not; and half of a pair, alone, is another conversation's.
    """
    for _, value, signal in ids:
        if signal.name != OURS and signal.is_id and (pair is None or signal.name != CLAUDE_SESSION):
            return value
    return None


def _in_body(facts: BodyFacts) -> list[tuple[int, str, Signal]]:
    return [(signal.order, value, signal) for place, value in facts.ids if (signal := _BODY.get(place))]


def _decide(
    ids: list[tuple[int, str, Signal]],
    named: str | None,
    chosen: tuple[Kind, str, str] | None,
    about: Kind | None,
) -> tuple[int, Kind, str, str, str]:
    """Take the strongest id as (rank, class, match, signal, value); ``ids`` are in the order of the table."""
    if named is not None and (name := accept(named)) is not None:
        return 0, Kind.OWNER, SIGNALS[NAME].match, NAME, name
    if chosen is not None and not (ids and ids[0][2].name == OURS):
        kind, header, value = chosen
        return 0, kind, f"rule:{kind}:{header}", header, value
    if not ids:
        return NO_RANK, Kind.NONE, NEW, "", ""
    _, value, signal = ids[0]
    if about is not None and signal.rank > 0:
        return 0, about, f"rule:{about}:{signal.name}", signal.name, value
    return signal.rank, signal.kind, signal.match, signal.name, value


def _others(ids: list[tuple[int, str, Signal]], value: str) -> tuple[str, ...]:
    """Name the owner signals that say something else than the one that decided."""
    others: tuple[str, ...] = ()
    for _, other, signal in ids:
        if other != value and signal.kind is _OWNER:
            others = (*others, signal.name)
    return others
