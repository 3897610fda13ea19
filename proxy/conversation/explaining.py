"""Why a request belongs where it does: the decision path in words, decided again without writing anything down."""

from dataclasses import dataclass

from proxy.conversation.body import BodyFacts
from proxy.conversation.evidence import Evidence
from proxy.conversation.ids import Reading
from proxy.conversation.labels import identity_of, label_of
from proxy.conversation.lineage import Step
from proxy.conversation.precedence import Kind


@dataclass(frozen=True, slots=True)
class Explanation:
    """``conversation`` is a label, None for a new one. ``steps`` are (rule, what it found, the label it is about)."""

    conversation: str | None
    match: str
    side: bool
    steps: tuple[Step, ...]


def explain(
    evidence: Evidence, secret: bytes, reading: Reading, *, scope: str, facts: BodyFacts | None, now: int
) -> Explanation:
    """What would be decided about this request now; nothing is changed. Probation of ids is not played through."""
    steps: list[Step] = []
    named = label_of(secret, scope, identity_of(reading)) if reading.kind is not Kind.NONE else None
    steps.append(("ids", f"{reading.match} decides" if named else "no id was sent", named))
    steps += [("ids", f"{other} says something else", None) for other in reading.disagrees]
    if reading.kind is Kind.OWNER:
        return Explanation(named, reading.match, reading.side, tuple(steps))
    asked = evidence.ask(facts, named, now, retry=reading.retry)
    if asked is None:
        steps.append(("content", "there are no messages that could be read", None))
        return Explanation(named, reading.match, reading.side, tuple(steps))
    steps.append(("content", f"{len(asked.transcript)} messages, {asked.transcript.answers} of them answers", None))
    decision = evidence.decide(asked, scope)
    label = decision.line.label if decision.line is not None else decision.label
    return Explanation(label, decision.rule, decision.side or reading.side, (*steps, *asked.steps))


def steps_of(evidence: Evidence, label: str) -> list[dict[str, object]]:
    """How the latest request of each line of a live conversation was decided, the latest first."""
    lines = sorted(evidence.lines_labelled(label), key=lambda line: -line.seen_at)
    return [
        {
            "messages": line.length,
            "in_flight": line.in_flight,
            "seen_at": line.seen_at,
            "cohort": line.cohort is not None,
            "steps": [{"rule": rule, "found": found, "conversation": about} for rule, found, about in line.decided],
        }
        for line in lines
    ]
