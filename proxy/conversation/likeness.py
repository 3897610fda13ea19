"""E4 to E7: nothing that we relayed is repeated, but something of a conversation is in the request all the same.

A summary of ours after a compaction; the opener quoted in a request for a title; the opener kept where all else was
rewritten; the only conversation of a cohort. Never a line that is busy, but for a side call, which waits for nobody.
"""

from collections import deque
from operator import attrgetter

from proxy.conversation.asked import BY_OPENER, COHORT, NEW, SIDE, SUMMARY, Asked, Decision
from proxy.conversation.index import Aside, Index
from proxy.conversation.lineage import Lineage
from proxy.conversation.normalise import SNIPPET, TELLING
from proxy.conversation.quoting import OPENER, SHORTEST_OPENER
from proxy.conversation.transcript import shared

RECENT_MS = 600_000  # how long after its last request a conversation's opener may be quoted by a side call
_INSTRUCTION = 16  # characters before a quote that are an instruction and not just another beginning
_ANSWER_COUNTS = 1_000  # by so much a quoted answer says more than a quoted opener
_ASKED_COUNTS = 500  # and a question that was asked last
BEGINNING_MS = 30_000  # a title is asked for within so long of its conversation's beginning
WAITING = frozenset({"tool_calls", "tool_use", "function_call"})
_has_tools = attrgetter("tools")


def by_likeness(index: Index, asked: Asked) -> Decision | None:
    """The first of these rules that finds something."""
    asked.read()
    if asked.transcript.answers:
        return by_summary(index, asked) or by_opener(index, asked) or by_cohort(index, asked)
    return (
        (by_quote(index, asked) if asked.aside else None)
        or by_summary(index, asked)
        or (by_aside(index, asked) if index.asides else None)
        or by_cohort(index, asked)
    )


def by_summary(index: Index, asked: Asked) -> Decision | None:
    """E4: the first messages contain the beginning of a long answer of ours, and its conversation is idle."""
    if len(asked.text) < SNIPPET:
        return None
    found: dict[str, Lineage] = {}
    for said, lines, _ in asked.quoted(index.quotes):
        for line in lines if len(said) == SNIPPET else ():
            if asked.may(line) and line.label not in found:
                current = index.current.get(line.label, line)
                if line.in_flight or current.in_flight:
                    asked.note(SUMMARY, "has its summary, but is busy", line)
                elif line.finish in WAITING:
                    asked.note(SUMMARY, "has its summary, but waits for a tool", line)
                else:
                    found[line.label] = line
    if len(found) != 1:
        if found:
            asked.note(SUMMARY, f"has the summaries of {len(found)} conversations")
        return None
    line = next(iter(found.values()))
    asked.note(SUMMARY, "begins with an answer of its", line)
    return Decision(SUMMARY, line)


def by_quote(index: Index, asked: Asked) -> Decision | None:
    """E5: a title, tags or a summary: it quotes what exactly one conversation began with, or was answered."""
    lines = _quotable(index, asked)
    if not lines:
        return None
    found: dict[str, Lineage] = {}
    most = 0
    for line in lines:
        much = _quoted(line, asked) if asked.may(line) else 0
        if much > most:
            most = much
            found.clear()
        if much and much == most:
            found[line.label] = line
    if most < _ASKED_COUNTS:
        found = _untitled(found, asked)
    if len(found) != 1:
        if found:
            asked.note(SIDE, f"quotes {len(found)} conversations")
        return None
    line = next(iter(found.values()))
    asked.note(SIDE, "quotes its opener or its answers", line)
    return Decision(SIDE, line, side=True)


def _quotable(index: Index, asked: Asked) -> dict[Lineage, None]:
    """The lines of whose words a text without tools has some, and perhaps not as one that only began alike."""
    found: dict[Lineage, None] = {}
    for quote, answered, lines in asked.quoted(index.quotable()):
        alike = asked.text.find(quote) < _INSTRUCTION and not _tells(quote, asked)
        found.update(dict.fromkeys(answered))
        found.update(dict.fromkeys(filter(_has_tools, lines) if alike else lines))  # many conversations begin alike
    return found


def _untitled(found: dict[str, Lineage], asked: Asked) -> dict[str, Lineage]:
    """Of conversations that began alike: those that nobody asked the same about; of several, the latest beginning."""
    same, now = hash(asked.text), asked.now
    left = {
        label: line for label, line in found.items() if same not in line.asides or now - line.began_at > BEGINNING_MS
    }
    fresh = [line for line in left.values() if now - line.began_at <= BEGINNING_MS]
    if len(left) > 1 and fresh:
        line = max(fresh, key=lambda line: line.began_at)
        return {line.label: line}
    return left


def _quoted(line: Lineage, asked: Asked) -> int:
    """How much of a conversation a text quotes, rather than being one like it; 0 for nothing.

    Two people who ask the same are two conversations; what asks about a conversation is made in another manner: without
    the tools that the conversation has, or with an instruction before the quote.
    """
    much = 0
    for said in line.snippets:
        if said in asked.text:
            much += _ANSWER_COUNTS + len(said)
    if asked.now - line.seen_at <= RECENT_MS:
        if len(line.opener_text) >= SHORTEST_OPENER and _wraps(line.opener_text, line, asked):
            much += len(line.opener_text)
        if len(line.asked_text) >= TELLING and _wraps(line.asked_text, line, asked):
            much += _ASKED_COUNTS + len(line.asked_text)
    return much


def _wraps(quote: str, line: Lineage, asked: Asked) -> bool:
    """Is this quoted in another manner than it was said in?"""
    at = asked.text.find(quote)
    return at >= 0 and _otherwise(quote, at, line, asked)


def _otherwise(quote: str, at: int, line: Lineage, asked: Asked) -> bool:
    """Is what stands at this place of the text in another manner than the line's own requests?"""
    if at >= _INSTRUCTION or (line.tools and not asked.facts.tools):
        return True
    return line.stream and _tells(quote, asked)


def _tells(quote: str, asked: Asked) -> bool:
    """Is it told from a beginning by the lack of a stream? More must stand behind it than the rest of a long opener."""
    return not asked.facts.stream and len(quote) < OPENER and len(quote) < len(asked.text)


def by_aside(index: Index, asked: Asked) -> Decision | None:
    """E5 the other way round: a title was asked for a moment ago, of what this request begins with."""
    opener = asked.opening
    if len(opener) < SHORTEST_OPENER:
        return None
    for beginning, asides in reversed(index.asides.items()):
        if asked.now - asides[-1][0].began_at > BEGINNING_MS:
            break
        # Where both come without tools, only an instruction before the quote tells one from the other.
        if asked.facts.tools or beginning != opener:
            decision = _told(opener, asides, index, asked)
            if decision is not None:
                return decision
    return None


def _told(opener: str, asides: deque[Aside], index: Index, asked: Asked) -> Decision | None:
    """The latest of these side calls that quotes the opener, and has no conversation yet."""
    for line, text in reversed(asides):
        if asked.now - line.began_at > BEGINNING_MS:
            break
        at = text.find(opener)
        told = at >= _INSTRUCTION or (at >= 0 and asked.facts.tools and not line.tools)
        if told and asked.may(line) and index.current.get(line.label) is line:
            asked.note(SIDE, "began with a side call that quotes this", line)
            return Decision(NEW, label=line.label, asides=(hash(text),))
    return None


def by_opener(index: Index, asked: Asked) -> Decision | None:
    """E6: answers that nobody knows, behind the opener of exactly one conversation: all else was rewritten."""
    said = asked.transcript
    if not said.opener:
        return None
    lines = [line for line in index.openers.get(said.opener) if asked.may(line)]
    labels = {line.label for line in lines}
    if len(labels) != 1:
        if labels:
            asked.note(BY_OPENER, f"{len(labels)} conversations began like this")
        return None
    line = max(lines, key=lambda line: line.seen_at)
    if any(each.in_flight for each in lines):
        asked.note(BY_OPENER, "began like this, but is busy", line)
        return None
    if shared(said.points, line.points, line.offset) > 1 and line.answered:
        # What a client puts before every conversation is the same in all; behind it these two differ.
        asked.note(BY_OPENER, "began like this, but with another question", line)
        return None
    asked.note(BY_OPENER, "is the only one that began like this", line)
    return Decision(BY_OPENER, line)


def by_cohort(index: Index, asked: Asked) -> Decision | None:
    """E7: the only conversation of the cohort, when it is idle and waits for no tool.

    A side call waits for nobody, nor does a conversation wait for its own title.
    """
    if asked.cohort is None:
        return None
    lines = index.cohorts.get(asked.cohort)
    labels = {line.label for line in lines}
    if len(labels) != 1:
        if labels:
            asked.note(COHORT, f"the cohort has {len(labels)} conversations")
        return None
    line = max(lines, key=lambda line: line.seen_at)
    side = asked.aside and line.tools and not asked.facts.tools
    begins = asked.facts.tools and not line.tools and index.is_aside(line)
    if begins and asked.now - line.began_at <= BEGINNING_MS:
        asked.note(COHORT, "had nothing but a side call so far", line)
        return Decision(COHORT, label=line.label)
    if not side and (any(each.in_flight for each in lines) or line.finish in WAITING):
        asked.note(COHORT, "is alone in its cohort, but busy or waiting for a tool", line)
        return None
    asked.note(COHORT, "is alone in its cohort", line)
    return Decision(COHORT, line, side=side)
