"""Ids and evidence together: which conversation a request belongs to, and whether its id can be believed.

An owner id decides, and costs no more than a look at how the request opens, unless it is new or in doubt. Inside a
cohort, and without any id, the content decides.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from proxy.conversation.asked import ALIAS, ANSWER, COHORT, NEW, RETRY, SUMMARY, TOOL_ID, Asked, Decision
from proxy.conversation.body import BodyFacts
from proxy.conversation.evidence import Evidence, Track
from proxy.conversation.ids import Reading
from proxy.conversation.labels import identity, is_label, label_of
from proxy.conversation.precedence import OURS, Kind
from proxy.conversation.probation import Probation, Watch

_LINKS = frozenset({TOOL_ID, ANSWER, SUMMARY, RETRY})
_PROOFS = frozenset({TOOL_ID, ANSWER})
_NONE, _COHORT = Kind.NONE, Kind.COHORT
OWNER = "owner"


class Recognised(NamedTuple):
    """The label of a request's conversation, what decided, and where its answer is to be noted, if at all."""

    label: str
    match: str
    side: bool = False
    track: Track | None = None


@lru_cache(maxsize=4096)
def by_id(secret: bytes, scope: str, signal: str, value: str, match: str) -> Recognised:
    """Where a request belongs by its id alone. That is the same each time that the id comes."""
    if signal == OURS and is_label(secret, scope, value):
        return Recognised(value, match)
    return Recognised(label_of(secret, scope, identity(signal, value)), match)


class Recogniser:
    """Decides for one daemon. ``known`` tells whether a label's conversation was seen before this request."""

    def __init__(self, evidence: Evidence, secret: bytes, known: Callable[[str, Reading], bool]) -> None:
        self.evidence = evidence
        self.probation = Probation()
        self._secret = secret
        self._known = known

    def recognise(self, reading: Reading, scope: str, facts: BodyFacts, now: int, aside: bool) -> Recognised | None:
        """Where a request belongs; None when it names nothing and says nothing. ``aside``: it may be a side call."""
        kind = reading.kind
        if kind is _NONE:
            return self._by_content(reading, scope, facts, now, None)
        signal = reading.signal
        named = by_id(self._secret, scope, signal, reading.value, reading.match)
        label = named.label
        if kind is _COHORT and label != reading.value:
            return self._by_content(reading, scope, facts, now, label) or named
        if not reading.rank or reading.side:  # the user's own word; and a side call shows nothing of how it goes on
            return named
        watch = self.probation.again(label, signal, aside=aside)
        content = facts.content
        if watch is not None and (aside or content is None or content.opener_key() == watch.key):
            if not (aside or content is None):
                content.remember()
            self.evidence.touch(scope, label, now)
            return named
        return self._by_owner(self.probation.of(label) or label, reading, scope, facts, now) or named

    def _by_owner(
        self, watch: Watch | str, reading: Reading, scope: str, facts: BodyFacts, now: int
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
            decision = Decision(OWNER, current, steps=[*asked.steps, (OWNER, reading.signal, label)])
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
            decision = Decision(ALIAS, self.evidence.current(scope, label), steps=asked.steps)
        track = self.evidence.commit(asked, decision, scope, label)
        return Recognised(track.line.label, ALIAS, decision.side, track)

    def _by_content(
        self, reading: Reading, scope: str, facts: BodyFacts, now: int, cohort: str | None
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
