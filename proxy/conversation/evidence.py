"""Rank 10: conversations recognised from their content.

``decide`` says where a request belongs and changes nothing. ``commit`` writes down what it said, before it goes out;
``answered`` what came back. All of it is in memory, per scope; ``archive.py`` carries it over a restart.
"""

from collections.abc import Callable
from typing import Final

from config.settings import Settings
from proxy.conversation import history, likeness
from proxy.conversation.answer import Answer
from proxy.conversation.asked import NEW, Asked, Decision
from proxy.conversation.body import BodyFacts
from proxy.conversation.hashing import ASSISTANT, Hasher, combine
from proxy.conversation.index import Index
from proxy.conversation.labels import new_label
from proxy.conversation.lineage import Lineage, Step
from proxy.conversation.memory import Memory
from proxy.conversation.normalise import LONG, SNIPPET, TELLING, normalise
from proxy.conversation.prefixes import Prefixes
from proxy.conversation.quoting import OPENER_READ
from proxy.conversation.transcript import entry_of, extended, marks_of, shared

_UNKNOWN: Final[tuple[Step]] = ((NEW, "nothing of it is known", None),)
_NEW: Final = Decision(NEW)  # never changed
_EMPTY: Final = Index()  # never changed
_NO_IDS: Final[list[int]] = []  # never changed
_ASIDES = 7  # side calls of a line before the latest one that are told apart


class Track:
    """One request on its way: the line it was committed to. ``said`` is what its answer will follow."""

    __slots__ = ("line", "point", "said", "side")

    def __init__(self, line: Lineage, point: int, said: int, *, side: bool) -> None:
        self.line = line
        self.point = point
        self.said = said
        self.side = side


class Evidence(Memory):
    """What was said in every scope, and the rules by which it is recognised."""

    def __init__(self, settings: Settings, secret: bytes) -> None:
        super().__init__(settings)
        self.hasher = Hasher(secret)
        self.prefixes = Prefixes()
        self._secret = secret
        # Whether the conversation with a label has a request under way that nobody looked into.
        self.busy: Callable[[str], bool] = lambda _: False

    def ask(self, facts: BodyFacts | None, cohort: str | None, now: int, *, retry: bool) -> Asked | None:
        """Read what a request says; None where it says nothing that could be recognised."""
        content = facts.content if facts is not None else None
        if facts is None or content is None:
            return None
        self._expire(now)
        said = content.transcript(self.hasher)
        return Asked(said, content, facts, now, self.busy, cohort=cohort, retry=retry) if said is not None else None

    def decide(self, asked: Asked, scope: str) -> Decision:
        """Where a request belongs. Changes nothing."""
        index = self._scopes.get(scope, _EMPTY)
        decision = history.by_history(index, asked)
        if decision is None:
            if asked.content.partial:
                self._read_whole(asked)
            decision = likeness.by_likeness(index, asked)
        if decision is None:
            asked.steps += _UNKNOWN
            return _NEW
        return decision

    def commit(
        self, asked: Asked, decision: Decision, scope: str, label: str | None = None, *, owned: bool = False
    ) -> Track:
        """Write down the request. ``label`` is a new conversation's, where an id of its client's makes it.

        ``owned``: that id is one conversation's alone.
        """
        line, said, facts = decision.line, asked.transcript, asked.facts
        if decision.side and line is not None:
            if asked.aside:
                asked.read()
                line.asides = (*line.asides[-_ASIDES:], hash(asked.text))
            self._touch(line, asked.now)
            return Track(line, 0, said.last, side=True)
        index = self._scopes.get(scope)
        if index is None:
            index = self._scopes[scope] = Index()
        if line is None:
            label = decision.label or label or new_label(self._secret, scope)
            line = Lineage(label, scope, asked.cohort, asked.now, said, owned=owned)
            self._enter(index, line, asked, decision.parted)
            line.asides = decision.asides
            if asked.aside and not said.answers:
                asked.read()
                index.begins_aside(line, asked.text)
        elif decision.grows:
            self._settle_branches(index, line)
            self._grow(index, line, asked)
        else:
            line = self._branch(index, line, asked)
        line.in_flight += 1
        if said.answers and (latest := asked.content.latest()[:OPENER_READ]):
            line.asked_raw = latest
            index.unquoted.append(line)
        line.cohort = line.cohort or asked.cohort
        line.tools = facts.tools
        line.stream = facts.stream
        line.manner = asked.content.manner()
        line.decided = asked.steps
        self._touch(line, asked.now)
        self._shrink()
        return Track(line, line.request, said.last, side=False)

    def answered(self, track: Track, answer: Answer) -> None:
        """Write down what came back, whole or in part."""
        line, hasher = track.line, self.hasher
        if line not in self._full and line not in self._thin:
            return
        index = self._scopes[line.scope]
        said = called = 0
        ids = _NO_IDS
        if answer.text:
            text = normalise(answer.text)
            said = hasher.normal(ASSISTANT, text)
            if len(text) >= (LONG if track.side else TELLING) and answer.complete:
                index.add_snippet(line, text[:SNIPPET])
        if answer.tool_calls:
            called = hasher.calls([(call.name, call.arguments) for call in answer.tool_calls])
            ids = [found for call in answer.tool_calls if (found := hasher.call(call.id, call.name)) & 1]
        if not (said or called):
            return
        marks = marks_of(track.said, said, called)
        index.relayed(line, marks, ids)
        if track.side:
            line.aside = (*marks, *ids)
        elif line.request == track.point:
            index.answered(line, combine(line.request, entry_of(said, called)))
            line.latest = (*marks, *ids)
            line.finish = answer.finish
        self.changed[line] = None

    def done(self, track: Track, now: int, *, completed: bool) -> None:
        """The request is over."""
        line = track.line
        if track.side:
            return
        if line.in_flight:
            line.in_flight -= 1
        line.seen_at = max(line.seen_at, now)
        if line.request == track.point:
            line.failed_at = 0 if completed else now
            if not completed and (index := self._scopes.get(line.scope)) is not None:
                index.failed_at = max(index.failed_at, now)

    def disown(self, scope: str, label: str) -> None:
        """The id that named this conversation is shared by several: from now on it is their cohort."""
        index = self._scopes.get(scope)
        for line in self.lines_of(scope, label) if index is not None else ():
            assert index is not None
            line.owned, line.cohort = False, label
            index.cohorts.add(label, line)
            self.changed[line] = None

    def _read_whole(self, asked: Asked) -> None:
        asked.content.whole()
        again = asked.content.transcript(self.hasher)
        assert again is not None
        asked.transcript = again

    def _branch(self, index: Index, parent: Lineage, asked: Asked) -> Lineage:
        """What replaces or leaves a line's talk is a line of its own; of the same conversation while one is alive."""
        line = Lineage(parent.label, parent.scope, parent.cohort, asked.now, asked.transcript, owned=parent.owned)
        self._enter(index, line, asked, parent)
        for snippet in parent.snippets:
            index.add_snippet(line, snippet)
        return line

    def _enter(self, index: Index, line: Lineage, asked: Asked, kin: Lineage | None) -> None:
        said = asked.transcript
        line.row = next(self._rows)
        if kin is not None:
            if shared(said.points, kin.points, kin.offset) > kin.first:
                line.first = kin.first
            known = asked.marks
            line.marks = extended(line.marks, [mark for mark in kin.marks if mark in known])
            line.ids = extended(line.ids, [call for call in kin.ids if call in known])
        index.enter(line)
        if asked.aside and not said.answers:
            index.opens(line, asked.opening)  # read already, for what it may quote itself
        else:
            line.opener_raw = asked.content.opener()[:OPENER_READ]
            if line.opener_raw:
                index.unquoted.append(line)
        self._full[line] = None

    def _grow(self, index: Index, line: Lineage, asked: Asked) -> None:
        index.unhead(line)
        opener = line.opener
        line.take(asked.transcript)
        if line.opener != opener:
            index.openers.discard(opener, line)
            index.openers.add(line.opener, line)
        index.heads.add(line.request, line)
        index.current[line.label] = line
        if line.thin:
            line.thin = False
            self._thin.pop(line, None)
            self._full[line] = None

    def _settle_branches(self, index: Index, line: Lineage) -> None:
        """A line goes on that another of its conversation had left: both are alive, and each needs an id of its own."""
        other = index.current.get(line.label)
        if other is None or other is line or line.owned or other.owned:
            return
        if other.in_flight:
            index.relabel(line, new_label(self._secret, line.scope))
        else:
            index.relabel(other, new_label(self._secret, line.scope))
            index.current[line.label] = line
            self.changed[other] = None
