"""Ids and evidence together: which conversation a request belongs to, and whether its id can be believed.

An owner id decides, and costs no more than a look at how the request opens, unless it is new or in doubt. Inside a
cohort, and without any id, the content decides.
"""

from collections.abc import Callable
from typing import NamedTuple

from proxy.conversation.asked import ALIAS, ANSWER, COHORT, NEW, RETRY, SUMMARY, TOOL_ID, Asked, Decision
from proxy.conversation.body import BodyFacts
from proxy.conversation.evidence import Evidence, Track
from proxy.conversation.ids import Reading
from proxy.conversation.labels import identity_of, label_of
from proxy.conversation.precedence import Kind
from proxy.conversation.probation import Probation, Watch
from proxy.conversation.side import looks_aside

_LINKS = frozenset({TOOL_ID, ANSWER, SUMMARY, RETRY})
_PROOFS = frozenset({TOOL_ID, ANSWER})
OWNER = "owner"


class Recognised(NamedTuple):
    """The label of a request's conversation, what decided, and where its answer is to be noted, if at all."""

    label: str
    match: str
    side: bool = False
    track: Track | None = None


class Recogniser:
    """Decides for one daemon. ``known`` tells whether a label's conversation was seen before this request."""

    def __init__(self, evidence: Evidence, secret: bytes, known: Callable[[str, Reading], bool]) -> None:
        self.evidence = evidence
        self.probation = Probation()
        self._secret = secret
        self._known = known

    def recognise(self, reading: Reading, scope: str, facts: BodyFacts | None, now: int) -> Recognised | None:
        """Where a request belongs; None when it names nothing and says nothing."""
        kind = reading.kind
        if kind is Kind.NONE:
            return self._by_content(reading, scope, facts, now, None)
        label = label_of(self._secret, scope, identity_of(reading))
        if kind is Kind.COHORT:
            return self._by_content(reading, scope, facts, now, label) or Recognised(label, reading.match)
        if reading.rank == 0 or reading.side:  # the user's own word; and a side call shows nothing of how it goes on
            return Recognised(label, reading.match)
        watch = self.probation.of(label)
        if watch is not None and not watch.doubted and (watch.committed or looks_aside(facts)):
            self.probation.repeated(watch, reading.signal)
            if self._opens_alike(watch, facts):
                self.evidence.touch(scope, label, now)
                return Recognised(label, reading.match)
        found = self._by_owner(watch or label, reading, scope, facts, now)
        return found or Recognised(label, reading.match)

    def _opens_alike(self, watch: Watch, facts: BodyFacts | None) -> bool:
        content = facts.content if facts is not None else None
        return content is None or looks_aside(facts) or content.opener_key() == watch.key

    def _by_owner(
        self, watch: Watch | str, reading: Reading, scope: str, facts: BodyFacts | None, now: int
    ) -> Recognised | None:
        """An id that is new (its label) or in doubt; None when nothing is said that would tell more than the id."""
        asked = self.evidence.ask(facts, None, now, retry=reading.retry)
        if asked is None:
            return None
        if self.probation.unread(scope, reading.signal, asked.content.client(), now):
            return self._by_content(reading, scope, facts, now, None)
        if isinstance(watch, str):
            return self._first(reading, scope, asked, watch)
        if watch.demoted:
            return self._by_content(reading, scope, facts, now, watch.label)
        if watch.alias is not None:
            return self._aliased(watch, scope, asked)
        return self._doubted(watch, reading, scope, asked)

    def _first(self, reading: Reading, scope: str, asked: Asked, label: str) -> Recognised:
        """An id that was not seen before: perhaps another name of a conversation that was."""
        watch = self.probation.begin(label, scope, asked.content.client())
        decision = self.evidence.decide(asked, scope)
        line = decision.line
        if (
            line is not None
            and line.label != label
            and decision.rule in _PROOFS
            and not (line.in_flight or self.evidence.busy(line.label))
            and not decision.side
            and line.cohort is None
            and not self._known(label, reading)
        ):
            self.probation.alias(watch, line.label, reading.signal, asked.now)
            return Recognised(line.label, ALIAS, track=self.evidence.commit(asked, decision, scope))
        return self._own(watch, reading, scope, asked, decision)

    def _own(self, watch: Watch, reading: Reading, scope: str, asked: Asked, decision: Decision) -> Recognised:
        """The id decides; what was said is noted so that it can be compared."""
        label = watch.label
        if decision.line is None or decision.line.label != label or decision.side:
            current = self.evidence.current(scope, label)
            decision = Decision(OWNER, current)
            asked.steps += ((OWNER, reading.signal, label),)
        if not asked.aside:
            watch.committed = True
            if not watch.key:
                watch.opens(asked.content.opener_key(), asked.now, linked=True)
        track = self.evidence.commit(asked, decision, scope, label, owned=True)
        return Recognised(label, reading.match, track=track)

    def _doubted(self, watch: Watch, reading: Reading, scope: str, asked: Asked) -> Recognised:
        """Does what is said under the id go on, or is it another conversation?"""
        decision = self.evidence.decide(asked, scope)
        current = self.evidence.current(scope, watch.label)
        linked = decision.line is not None and decision.line is current and decision.rule in _LINKS
        if not asked.aside and watch.opens(asked.content.opener_key(), asked.now, linked=linked):
            self.probation.demote(watch, reading.signal)
            self.evidence.disown(scope, watch.label)
            found = self._by_content(reading, scope, asked.facts, asked.now, watch.label)
            return found or Recognised(watch.label, reading.match)
        return self._own(watch, reading, scope, asked, decision)

    def _aliased(self, watch: Watch, scope: str, asked: Asked) -> Recognised:
        label = watch.alias
        assert label is not None
        decision = self.evidence.decide(asked, scope)
        if decision.line is None or decision.line.label != label:
            decision = Decision(ALIAS, self.evidence.current(scope, label))
        track = self.evidence.commit(asked, decision, scope, label)
        return Recognised(track.line.label, ALIAS, decision.side, track)

    def _by_content(
        self, reading: Reading, scope: str, facts: BodyFacts | None, now: int, cohort: str | None
    ) -> Recognised | None:
        evidence = self.evidence
        asked = evidence.ask(facts, cohort, now, retry=reading.retry)
        if asked is None:
            return None
        decision = evidence.decide(asked, scope)
        label = None
        first = cohort is not None and evidence.current(scope, cohort) is None and not self._known(cohort, reading)
        if decision.line is None and first:
            label = cohort
        if reading.side and decision.line is not None:
            decision.side = True
        track = evidence.commit(asked, decision, scope, label)
        match = decision.rule
        if match == COHORT or (match == NEW and label is not None):
            match = reading.match
        return Recognised(track.line.label, match, decision.side, track)
