"""E1 to E3: a request repeats what we relayed, and so belongs to the conversation that it was relayed in.

What says most comes first: a line whose messages and latest answer the request repeats and continues. Then the newest
tool-call id that only one conversation has seen. Then the answers that the request echoes. A line that is busy with
another request takes only what continues it; anything else is a fork, and a conversation of its own.
"""

from proxy.conversation.asked import ANSWER, RETRY, TOOL_ID, Asked, Decision
from proxy.conversation.index import Index
from proxy.conversation.lineage import Lineage
from proxy.conversation.transcript import shared

RETRY_MS = 60_000  # how long after a failure the same request is its retry
LATELY_MS = 600_000
MARKED_RETRY_MS = 600_000  # the same, where the client says itself that it is one
_NEWEST = 64  # ids and marks of a request that are looked up
_ALIKE = 32  # lines that said the same, the latest, of which one may be repeated
_HITS = 8  # of these that name lines, before the lines are compared


def by_history(index: Index, asked: Asked) -> Decision | None:
    """The line that this request's history comes from; None when nothing of it is known."""
    found = _repeated(index, asked)
    if found is None and (len(asked.transcript) > 1 or asked.transcript.answers):
        found = _continued(index, asked)
    if found is None and asked.transcript.answers:
        found = _by_ids(index, asked) or _by_marks(index, asked)
    return found


def _repeated(index: Index, asked: Asked) -> Decision | None:
    """The same request again: after a failure or with the client's mark a retry, else perhaps a regeneration."""
    if not asked.retry and asked.now - index.failed_at > RETRY_MS:
        return None  # hardly ever has anything failed
    points = asked.transcript.points
    lines = [line for line in index.heads.get(points[-1], _ALIKE) if line.request == points[-1]]
    if not asked.retry:
        lines = [line for line in lines if line.failed_at]  # of many that said the same, hardly any
    for line in _best_first(lines, asked):
        failed = line.failed_at and asked.now - line.failed_at <= RETRY_MS and not line.in_flight
        if failed or (asked.retry and asked.now - line.seen_at <= MARKED_RETRY_MS):
            asked.note(RETRY, "the same request, which had failed" if failed else "the same request again", line)
            return Decision(RETRY, line, grows=True)
    return None


def _continued(index: Index, asked: Asked) -> Decision | None:
    """The line of which this request repeats most, from the beginning on."""
    points = asked.transcript.points
    count = len(points)
    for upto in range(count, 0, -1):
        if not index.heads.has(points[upto - 1]) or (upto == count and not asked.transcript.answers):
            continue
        lines = _best_first(index.heads.get(points[upto - 1]), asked)
        if upto < count:
            for line in lines:
                if line.full == points[upto - 1] and _proves(line, asked, lines):
                    if _outdone(index, asked, line, upto):
                        return None
                    return _goes_on(line, asked)
        if not asked.transcript.answers:
            continue
        for line in lines:
            if line.request == points[upto - 1] and (upto > line.first or not asked.marks.isdisjoint(line.latest)):
                if upto == count and index.current.get(line.label) is not line:
                    continue  # its conversation has gone on elsewhere: nobody regenerates this
                if upto == count and _others(index, asked, line, upto):
                    break  # the next turn of another conversation that was the same so far
                return _parts(index, line, asked, ANSWER, f"repeats its {upto} messages", grows=True)
    return None


def _outdone(index: Index, asked: Asked, line: Lineage, upto: int) -> bool:
    """Is a later answer in the request another line's, which has more of the request in common than this one?"""
    for mark in reversed(asked.transcript.marks[-_NEWEST:]):
        lines = [other for other in index.marks.get(mark) if asked.may(other)]
        if lines:
            return line not in lines and any(_share(other, asked) > upto for other in lines)
    return False


def _others(index: Index, asked: Asked, line: Lineage, upto: int) -> bool:
    """Is there a line of another conversation that the whole request continues by one turn?"""
    points = asked.transcript.points
    for before in range(upto - 1, max(0, upto - 3), -1):
        for other in index.heads.get(points[before - 1]):
            if other.full == points[before - 1] and other.answered and other.label != line.label and asked.may(other):
                return True
    return False


def _proves(line: Lineage, asked: Asked, lines: list[Lineage]) -> bool:
    """Is repeating all of a line enough? There must be an answer of ours in it.

    Where its only answer was not read, a telling opener must do, and no other of the ``lines`` may have said the same;
    one that is still waited for cannot have been repeated.
    """
    if line.answered or line.length > line.first:
        return True
    alone = all(other.label == line.label for other in lines)
    return asked.transcript.answers > 0 and bool(line.last & 1) and alone and not line.in_flight


def _goes_on(line: Lineage, asked: Asked) -> Decision:
    """The request says something new behind all that the line had."""
    ids = asked.transcript.ids
    rule = TOOL_ID if len(ids) and ids[-1] in line.ids else ANSWER
    asked.note(rule, f"continues its {line.length} messages", line)
    # A client whose turns have tools leaves them out where it wants the history told, not continued.
    side = line.tools and not asked.facts.tools and asked.marks.isdisjoint(line.aside)
    return Decision(rule, line, grows=True, side=side)


def _parts(index: Index, line: Lineage, asked: Asked, rule: str, found: str, *, grows: bool) -> Decision:
    """E3: the request leaves what the line said. An idle line is edited or forked away from; a busy one is not.

    A line that rests is busy, too, while its conversation goes on elsewhere.
    """
    current = index.current.get(line.label, line)
    if line.in_flight or current.in_flight or (line.owned and asked.busy(line.label)):
        asked.note(rule, f"{found}, but is another branch while one is under way", line)
        return Decision("new", None, parted=line)
    asked.note(rule, found, line)
    return Decision(rule, line, grows=grows)


def _by_ids(index: Index, asked: Asked) -> Decision | None:
    """E1: the newest tool-call id that was relayed in exactly one conversation."""
    for call in reversed(asked.transcript.ids[-_NEWEST:]):
        lines = [line for line in index.ids.get(call) if asked.may(line)]
        labels = {line.label for line in lines}
        if len(labels) == 1:
            return _judged(
                index, max(lines, key=lambda line: _weight(line, asked)), asked, TOOL_ID, "relayed this tool call"
            )
        if labels:
            asked.note(TOOL_ID, f"the newest known tool call is {len(labels)} conversations'")
            asked.rivals = frozenset(labels)
            return None
    return None


def _by_marks(index: Index, asked: Asked) -> Decision | None:
    """E2: the line that relayed most of the answers that the request echoes."""
    found: dict[Lineage, int] = {}
    hits = 0
    for mark in reversed(asked.transcript.marks[-_NEWEST:]):
        lines = [line for line in index.marks.get(mark) if asked.may(line)]
        for line in lines:
            found[line] = found.get(line, 0) + (2 if mark & 1 else 1)
        hits += bool(lines)
        if hits == _HITS:
            break
    lines = [line for line, weight in found.items() if weight > 1 or _shown(index, line, asked)]
    if not lines:
        if found:
            asked.note(ANSWER, f"one short answer is {len(found)} conversations', which proves nothing")
        return None
    lines.sort(key=lambda line: _weight(line, asked), reverse=True)
    best = _common(lines[0], asked)
    twins = {line.label for line in lines if _common(line, asked) == best}
    if len(twins) > 1:
        asked.note(ANSWER, f"{len(twins)} conversations relayed the same of its answers")
        asked.rivals = frozenset(twins)
        return None
    for line in lines[1:4]:
        asked.note(ANSWER, "relayed fewer of its answers", line)
    return _judged(index, lines[0], asked, ANSWER, f"relayed {_echoes(lines[0], asked)} of its answers")


def _shown(index: Index, line: Lineage, asked: Asked) -> bool:
    """Does the beginning show what one short answer does not? Not where the line's conversation went on elsewhere."""
    return _share(line, asked) > line.first and index.current.get(line.label) is line


def _judged(index: Index, line: Lineage, asked: Asked, rule: str, found: str) -> Decision:
    """A line that is not continued word for word: does the request go on from its latest answer, or from before?"""
    latest = not asked.marks.isdisjoint(line.latest) or line.length <= _share(line, asked)
    return _parts(index, line, asked, rule, found, grows=latest)


def _weight(line: Lineage, asked: Asked) -> tuple[int, ...]:
    """What speaks for a line: what it has in common with the request, then what ``_order`` says."""
    return (
        *_common(line, asked),
        *(-int(part) for part in _order(line, asked.now, asked.content.manner())),
    )


def _common(line: Lineage, asked: Asked) -> tuple[int, int, int]:
    """A common beginning with an answer of the line's in it; then echoed answers, then a beginning without one."""
    share = _share(line, asked)
    return share if share > line.first else 0, _echoes(line, asked), share


def _echoes(line: Lineage, asked: Asked) -> int:
    return len(asked.marks.intersection(line.marks))


def _share(line: Lineage, asked: Asked) -> int:
    return shared(asked.transcript.points, line.points, line.offset)


def _best_first(lines: list[Lineage], asked: Asked) -> list[Lineage]:
    """The lines that may be meant, idle ones first.

    Where several are alike, those of a client that writes its requests in the same manner come first, then those in
    use lately, and of these the one that waits longest: its user is the likeliest to be next.
    """
    if len(lines) == 1:
        return lines if asked.may(lines[0]) else []
    manner = asked.content.manner()
    allowed = [line for line in lines if asked.may(line)]
    allowed.sort(key=lambda line: _order(line, asked.now, manner))
    return allowed


def _order(line: Lineage, now: int, manner: int) -> tuple[bool, bool, bool, int]:
    lately = now - LATELY_MS
    return line.in_flight > 0, line.manner != manner, line.seen_at < lately, _turn(line, lately)


def _turn(line: Lineage, lately: int) -> int:
    return line.seen_at if line.seen_at >= lately else -line.seen_at
