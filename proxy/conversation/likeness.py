"""E4 to E7: nothing that we relayed is repeated, but something of a conversation is in the request all the same.

A summary of ours after a compaction; the opener quoted in a request for a title; the opener kept where all else was
rewritten; the only conversation of a cohort. Never a line that is busy, but for a side call, which waits for nobody.
"""

from proxy.conversation.asked import COHORT, OPENER, SIDE, SUMMARY, Asked, Decision
from proxy.conversation.lineage import OPENER as OPENER_LENGTH
from proxy.conversation.lineage import Index, Lineage, pairs_of
from proxy.conversation.normalise import SNIPPET, normalise
from proxy.conversation.transcript import shared

RECENT_MS = 600_000  # how long after its last request a conversation's opener may be quoted by a side call
_ALIKE = 64  # lines with one word that are looked through for a quoted opener
_INSTRUCTION = 16  # characters before a quote that are an instruction and not just another beginning
_MOST_TEXT = 262_144  # characters that are searched
WAITING = frozenset({"tool_calls", "tool_use", "function_call"})


def by_summary(index: Index, asked: Asked) -> Decision | None:
    """E4: the first messages contain the beginning of a long answer of ours, and its conversation is idle."""
    if not len(index.words):
        return None
    text = "\n".join(asked.content.first_texts())[:_MOST_TEXT]
    if len(text) < SNIPPET:
        return None
    text = normalise(text)
    found: dict[str, Lineage] = {}
    for word in index.words.known(pairs_of(text)):
        for line in index.words.get(word):
            if asked.may(line) and any(snippet in text for snippet in line.snippets):
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
    """E5: a title, tags or a summary: it quotes what exactly one recent conversation began with."""
    if not asked.aside or asked.transcript.answers:
        return None
    quotable = index.quotable()
    text = normalise("\n".join(asked.content.first_texts())[:_MOST_TEXT]) if len(quotable) else ""
    found: dict[str, Lineage] = {}
    longest = 0
    for word in quotable.known(pairs_of(text)):
        for line in quotable.get(word, _ALIKE):
            opener = line.opener_text
            if len(opener) < longest or asked.now - line.seen_at > RECENT_MS or not asked.may(line):
                continue
            if not _quotes(text, opener, line, asked):
                continue
            if len(opener) > longest:
                longest = len(opener)
                found.clear()
            found.setdefault(line.label, line)
    if len(found) > 1:
        said = {label: line for label, line in found.items() if any(snippet in text for snippet in line.snippets)}
        found = said or found
    if len(found) != 1:
        if found:
            asked.note(SIDE, f"quotes the opener of {len(found)} conversations")
        return None
    line = next(iter(found.values()))
    asked.note(SIDE, "quotes its opener", line)
    return Decision(SIDE, line, side=True)


def _quotes(text: str, opener: str, line: Lineage, asked: Asked) -> bool:
    """Does a text quote an opener, rather than being one like it?

    Two people who ask the same are two conversations; what asks about a conversation is made in another manner: without
    the tools that the conversation has, or with an instruction before the quote.
    """
    at = text.find(opener)
    if at < 0:
        return False
    if line.tools and not asked.facts.tools:
        return True
    if at >= _INSTRUCTION:
        return True
    longer = len(text) > len(opener) and len(opener) < OPENER_LENGTH
    return longer and line.stream and not asked.facts.stream


def by_opener(index: Index, asked: Asked) -> Decision | None:
    """E6: answers that nobody knows, behind the opener of exactly one conversation: all else was rewritten."""
    said = asked.transcript
    if not said.answers or not said.opener:
        return None
    lines = [line for line in index.openers.get(said.opener) if asked.may(line)]
    labels = {line.label for line in lines}
    if len(labels) != 1:
        if labels:
            asked.note(OPENER, f"{len(labels)} conversations began like this")
        return None
    line = max(lines, key=lambda line: line.seen_at)
    if any(each.in_flight for each in lines):
        asked.note(OPENER, "began like this, but is busy", line)
        return None
    if shared(said.points, line.points, line.offset) > 1 and line.answered:
        # What a client puts before every conversation is the same in all; behind it these two differ.
        asked.note(OPENER, "began like this, but with another question", line)
        return None
    asked.note(OPENER, "is the only one that began like this", line)
    return Decision(OPENER, line)


def by_cohort(index: Index, asked: Asked) -> Decision | None:
    """E7: the only conversation of the cohort, when it is idle and waits for no tool."""
    if asked.cohort is None:
        return None
    lines = index.cohorts.get(asked.cohort)
    labels = {line.label for line in lines}
    if len(labels) != 1:
        if labels:
            asked.note(COHORT, f"the cohort has {len(labels)} conversations")
        return None
    line = max(lines, key=lambda line: line.seen_at)
    if any(each.in_flight for each in lines) or line.finish in WAITING:
        asked.note(COHORT, "is alone in its cohort, but busy or waiting for a tool", line)
        return None
    asked.note(COHORT, "is alone in its cohort", line)
    return Decision(COHORT, line, side=asked.aside and line.tools and not asked.facts.tools)
