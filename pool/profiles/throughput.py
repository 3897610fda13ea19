"""The throughput profile: routes are chosen by how many tokens a second they write.

The rules and numbers are those of dsh-plugin-opencode-route. A probe asks for 96 tokens. It is admitted when it is
alive, reaches its first token within ``ttfb_max_ms``, ends within ``total_max_ms``, and either has the form of the
fast workers' ids or writes ``degrade_tps``. A conversation keeps its route: after two turns or 20,000 tokens of input
it is locked, and slow turns are only written down. A short probe may read too high, so the first real turn may
correct it, once.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from config.sections.probe import ProbeSection
from pool.model import ProbeKind
from pool.profiles import latency
from pool.retire import Effect

PROMPT: Final = "Count from 1 to 100, one number a line."
CORRECTION: Final = 0.6  # of the probe's speed: a first real turn below it shows that the probe read too high


class PacedFacts(NamedTuple):
    """What was seen of one probe. ``ttfb_ms`` is the time to the first token, ``total_ms`` to the end."""

    answer: latency.ProbeFacts
    ttfb_ms: float | None = None
    total_ms: float | None = None
    tps: float | None = None


class Grade(NamedTuple):
    """``kind`` FAST: admitted, SLOW: rejected for ``reason``, any other: dead."""

    kind: ProbeKind
    reason: str | None


class Row(NamedTuple):
    """Why a probe that was answered is rejected, when ``fits``."""

    reason: str
    fits: Callable[[PacedFacts, ProbeSection], bool]


TABLE: tuple[Row, ...] = (
    Row("no tokens", lambda facts, _: facts.ttfb_ms is None or facts.total_ms is None),
    Row("late first token", lambda facts, probe: (facts.ttfb_ms or 0.0) > probe.ttfb_max_ms),
    Row("took too long", lambda facts, probe: (facts.total_ms or 0.0) > probe.total_max_ms),
    Row("too slow", lambda facts, probe: not is_own_worker(facts) and (facts.tps or 0.0) < probe.degrade_tps),
)


def is_own_worker(facts: PacedFacts) -> bool:
    """Does the answer's id look like one of the gateway's own fast workers'?"""
    return (facts.answer.body_id or "").startswith(latency.OWN_WORKER)


def grade(facts: PacedFacts, probe: ProbeSection) -> Grade:
    """What a probe is worth: dead, rejected or admitted."""
    kind = latency.answered(facts.answer, probe)
    if kind is not None:
        return Grade(kind, kind.value)
    reason = next((row.reason for row in TABLE if row.fits(facts, probe)), None)
    return Grade(ProbeKind.FAST if reason is None else ProbeKind.SLOW, reason)


class Turn(NamedTuple):
    """A finished turn beside what is known of its id. ``probe_tps``: what the id's probe read; None: it had none."""

    natural: bool
    refused: bool
    measured: bool
    first: bool  # the first turn on this id
    locked: bool
    corrected: bool
    failures: int
    strikes: int
    tps: float | None
    estimated: bool
    ttfb_ms: float | None
    prefilled: bool
    probe_tps: float | None
    degrade_tps: float
    degrade_ttfb_ms: float

    @property
    def slow(self) -> bool:
        """Slow by usage or by its first token; a speed that was only estimated never counts."""
        crawls = self.tps is not None and not self.estimated and self.tps < self.degrade_tps
        late = self.ttfb_ms is not None and self.ttfb_ms >= self.degrade_ttfb_ms and not self.prefilled
        return crawls or late

    @property
    def overestimated(self) -> bool:
        """Is this the one turn that shows the probe to have read too high?"""
        if self.natural or not self.first or self.corrected or self.probe_tps is None:
            return False
        return self.tps is not None and not self.estimated and self.tps < CORRECTION * self.probe_tps


class Judgement(NamedTuple):
    """What becomes of the id, and why."""

    effect: Effect
    reason: str = ""


def judge(turn: Turn) -> Judgement:
    """What a turn does to its id; the order is the rule."""
    if turn.refused:
        return Judgement(Effect.MARK if turn.natural else Effect.RETIRE, "dead")
    if not turn.measured or turn.locked:
        return Judgement(Effect.SEEN)
    if turn.overestimated:
        return Judgement(Effect.RETIRE, "correction")
    if turn.slow:
        struck_out = turn.failures + 1 >= turn.strikes
        routed = Effect.RETIRE if struck_out else Effect.STRIKE
        return Judgement(Effect.MARK if turn.natural else routed, "slow")
    return Judgement(Effect.HEALTHY if turn.tps is not None else Effect.SEEN)


def locks(turns: int, input_tokens: int | None, after_turns: int, after_tokens: int) -> bool:
    """Is it too late to move a conversation for its speed? Its prompt cache is worth more."""
    return turns >= after_turns or (input_tokens or 0) >= after_tokens
