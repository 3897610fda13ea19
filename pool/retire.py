"""What the outcome of an attempt does to the id it was measured on: one table, read top down.

The thresholds are those of pi-opencode-session-pool: a turn of ``degrade_ms`` is a strike, of ``quarantine_ms``
or a refusal retires at once. A routed id is retired for good; a natural id is only marked, because it is what a
conversation falls back to. Prefill is not the route's fault: a routed id's first turn and turns with much
uncached input are exempt. An answer that came from another endpoint than the id's own is a hop: once, it is a strike.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from config.sections.quarantine import QuarantineSection
from pool.model import Blame, Latency, Outcome
from pool.policy import Policy

BYTES_PER_TOKEN = 4  # of a request whose uncached input is unknown
_NOBODY, _UPSTREAM = Blame.NONE, Latency.UPSTREAM


class Effect(StrEnum):
    """What becomes of the id."""

    SEEN = "seen"  # it answered, or somebody else is to blame: lastSeen moves, nothing else
    HEALTHY = "healthy"  # strikes are forgotten, its latency is taken down
    STRIKE = "strike"
    RETIRE = "retire"  # a routed id: gone for good
    MARK = "mark"  # a natural id: left as soon as a spare is ready

    @property
    def bad(self) -> bool:
        """Does it count as evidence that the route, or the whole gateway, is slow or refusing?"""
        return self in _BAD


SEEN, HEALTHY = Effect.SEEN, Effect.HEALTHY
_BAD = (Effect.STRIKE, Effect.RETIRE, Effect.MARK)


class Case(NamedTuple):
    """One outcome, beside what is known of the id and what the settings say."""

    outcome: Outcome
    natural: bool
    first_turn: bool
    failures: int
    latency_retires: bool
    strikes: int
    degrade_ms: float
    quarantine_ms: float
    degrade_ttfb_ms: float
    prefill_tokens: int
    elsewhere: bool = False  # another endpoint than the id's last one answered

    @property
    def prefilled(self) -> bool:
        """Did the provider have so much to read that its latency says nothing about the route?"""
        tokens = self.outcome.uncached_tokens
        if tokens is None:
            tokens = self.outcome.request_bytes // BYTES_PER_TOKEN
        return tokens > self.prefill_tokens

    @property
    def latency(self) -> float:
        return self.outcome.latency_ms or 0.0

    @property
    def exempt(self) -> bool:
        """A natural id's first turn counts, because it is the only measurement it may ever get."""
        return self.prefilled or (self.first_turn and not self.natural)

    @property
    def hopped(self) -> bool:
        """Was it slow elsewhere, and may it yet come home?"""
        return self.elsewhere and not self.last_strike

    @property
    def last_strike(self) -> bool:
        return self.failures + 1 >= self.strikes


class Row(NamedTuple):
    """``routed`` and ``natural`` are what becomes of either kind of id when ``fits``."""

    name: str
    fits: Callable[[Case], bool]
    routed: Effect
    natural: Effect


def _first_event(case: Case) -> bool:
    return case.outcome.latency is Latency.FIRST_EVENT


def _unmeasured(case: Case) -> bool:
    outcome = case.outcome
    return (
        outcome.latency_ms is None
        or not outcome.judged
        or not case.latency_retires
        or outcome.blame in {Blame.LIMIT, Blame.OURSELVES}
    )


TABLE: tuple[Row, ...] = (
    Row("refused", lambda c: c.outcome.refused, Effect.RETIRE, Effect.MARK),
    Row("unmeasured", _unmeasured, Effect.SEEN, Effect.SEEN),
    Row("early event", lambda c: _first_event(c) and c.latency < c.degrade_ttfb_ms, Effect.HEALTHY, Effect.HEALTHY),
    Row("late event, exempt", lambda c: _first_event(c) and c.exempt, Effect.SEEN, Effect.SEEN),
    Row("late event, struck out", lambda c: _first_event(c) and c.last_strike, Effect.RETIRE, Effect.MARK),
    Row("late event", _first_event, Effect.STRIKE, Effect.MARK),
    Row("quarantine, exempt", lambda c: c.latency >= c.quarantine_ms and c.exempt, Effect.SEEN, Effect.SEEN),
    Row("quarantine, a hop", lambda c: c.latency >= c.quarantine_ms and c.hopped, Effect.STRIKE, Effect.STRIKE),
    Row("quarantine", lambda c: c.latency >= c.quarantine_ms, Effect.RETIRE, Effect.MARK),
    Row(
        "degraded, exempt",
        lambda c: c.latency >= c.degrade_ms and (c.exempt or c.first_turn),
        Effect.SEEN,
        Effect.SEEN,
    ),
    Row("struck out", lambda c: c.latency >= c.degrade_ms and c.last_strike, Effect.RETIRE, Effect.MARK),
    Row("degraded", lambda c: c.latency >= c.degrade_ms, Effect.STRIKE, Effect.STRIKE),
    # Whoever left after a second has not shown that the route is fast.
    Row("left early", lambda c: c.outcome.latency is Latency.WAITED, Effect.SEEN, Effect.SEEN),
    Row("fast", lambda c: c.outcome.accepted, Effect.HEALTHY, Effect.HEALTHY),
    Row("no answer", lambda _: True, Effect.SEEN, Effect.SEEN),
)


def case_of(
    outcome: Outcome,
    quarantine: QuarantineSection,
    *,
    natural: bool,
    first_turn: bool,
    failures: int,
    latency_retires: bool,
    prefill_tokens: int,
    elsewhere: bool = False,
) -> Case:
    """A case with the thresholds that hold for its model."""
    return Case(
        outcome=outcome,
        natural=natural,
        first_turn=first_turn,
        failures=failures,
        latency_retires=latency_retires,
        strikes=quarantine.failures,
        degrade_ms=quarantine.degrade_ms,
        quarantine_ms=quarantine.quarantine_ms,
        degrade_ttfb_ms=quarantine.degrade_ttfb_ms,
        prefill_tokens=prefill_tokens,
        elsewhere=elsewhere,
    )


def rule_for(case: Case) -> Row:
    """The row that decides; the last one always fits."""
    return next(row for row in TABLE if row.fits(case))


def effect_of(case: Case) -> Effect:
    """What becomes of the id."""
    row = rule_for(case)
    return row.natural if case.natural else row.routed


def plain_effect(outcome: Outcome, policy: Policy) -> Effect | None:
    """What becomes of an id whose answer was none to talk about: whole, and fast or not measured, as nearly all are.

    So says the table. None: it has to be asked.
    """
    if outcome.refused or not outcome.accepted:
        return None
    latency_ms = outcome.latency_ms
    if latency_ms is None or not outcome.judged or not policy.latency_retires:
        return SEEN
    if latency_ms >= policy.fast_ms or outcome.latency is not _UPSTREAM or outcome.blame is not _NOBODY:
        return None
    return HEALTHY
