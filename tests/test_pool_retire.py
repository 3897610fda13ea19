"""pool/retire.py"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pool.model import Blame, Latency, ModelKey, Outcome
from pool.policy import policy_for
from pool.retire import TABLE, Case, Effect, case_of, effect_of, plain_effect, rule_for
from tests.fakes.pool import GO, MODEL, fast, first_event, limited, refused, settings, waited


def case(outcome, **facts) -> Case:
    known = {"natural": False, "first_turn": False, "failures": 0, "latency_retires": True} | facts
    tree = settings()
    return case_of(outcome, tree.quarantine, prefill_tokens=tree.binding.lock_after_input_tokens, **known)


HEAVY = {"uncached_tokens": 20_001}
LIGHT = {"uncached_tokens": 20_000}
S, H, X, R, M = Effect.SEEN, Effect.HEALTHY, Effect.STRIKE, Effect.RETIRE, Effect.MARK


@pytest.mark.parametrize(
    ("outcome", "facts", "routed", "natural"),
    [
        (fast(900), {}, H, H),
        (fast(5999), {}, H, H),
        (fast(6000), {}, X, X),
        (fast(6000), {"failures": 1}, R, M),
        (fast(7999), {}, X, X),
        (fast(8000), {}, R, M),
        (fast(43_000), {}, R, M),
        # Prefill is not the route's fault.
        (fast(43_000), {"first_turn": True}, S, M),
        (fast(7000), {"first_turn": True}, S, S),
        (fast(900), {"first_turn": True}, H, H),
        (fast(43_000, **HEAVY), {}, S, S),
        (fast(7000, **HEAVY), {}, S, S),
        (fast(43_000, **LIGHT), {}, R, M),
        (fast(43_000, request_bytes=80_004), {}, S, S),
        (fast(43_000, request_bytes=80_003), {}, R, M),
        (fast(43_000, request_bytes=10_000_000, **LIGHT), {}, R, M),
        # Without server-timing only the late first event counts.
        (first_event(19_999), {}, H, H),
        (first_event(20_000), {}, X, M),
        (first_event(20_000), {"failures": 1}, R, M),
        (first_event(20_000), {"first_turn": True}, S, M),
        (first_event(30_000, **HEAVY), {}, S, S),
        # A client that left has waited at least that long.
        (waited(1000), {}, S, S),
        (waited(6500), {}, X, X),
        (waited(9000), {}, R, M),
        (waited(9000), {"first_turn": True}, S, M),
        # Refusals.
        (refused(), {}, R, M),
        (refused(), {"first_turn": True}, R, M),
        (limited(), {}, S, S),
        # What is not to be judged.
        (fast(43_000, judged=False), {}, S, S),
        (fast(43_000), {"latency_retires": False}, S, S),
        (fast(None), {}, S, S),
        (fast(43_000, blame=Blame.OURSELVES), {}, S, S),
        (fast(900, accepted=False, blame=Blame.UPSTREAM), {}, S, S),
        (Outcome(Blame.UPSTREAM, accepted=False, judged=True), {}, S, S),
    ],
)
def test_what_an_outcome_does_to_a_routed_and_to_a_natural_id(outcome, facts, routed, natural):
    assert effect_of(case(outcome, **facts)) is routed
    assert effect_of(case(outcome, natural=True, **facts)) is natural


def test_thresholds_can_differ_per_model():
    tree = settings(models={MODEL: {"quarantine_ms": 2000}})
    quarantine = tree.quarantine_for(MODEL)
    facts = {"natural": False, "first_turn": False, "failures": 0, "latency_retires": True, "prefill_tokens": 20_000}
    assert effect_of(case_of(fast(2500), quarantine, **facts)) is Effect.RETIRE
    assert plain_effect(fast(2500), policy_for(tree, ModelKey(GO, MODEL))) is None


def test_one_slow_answer_from_elsewhere_is_a_strike_and_two_are_not_forgiven():
    """A hop is not the id's fault; an id that stays away is."""
    assert effect_of(case(fast(9000), elsewhere=True)) is Effect.STRIKE
    assert effect_of(case(fast(9000), elsewhere=True, failures=1)) is Effect.RETIRE
    assert effect_of(case(fast(9000), elsewhere=True, natural=True)) is Effect.STRIKE


def test_every_row_is_reached_by_some_case():
    outcomes = [
        (fast(900), {}),
        (fast(900, accepted=False), {}),
        (fast(None), {}),
        (fast(7000), {}),
        (fast(7000), {"failures": 1}),
        (fast(7000), {"first_turn": True}),
        (fast(9000), {}),
        (fast(9000), {"first_turn": True}),
        (fast(9000), {"elsewhere": True}),
        (first_event(1), {}),
        (first_event(20_000), {}),
        (first_event(20_000), {"failures": 1}),
        (first_event(20_000), {"first_turn": True}),
        (waited(5), {}),
        (refused(), {}),
    ]
    assert {rule_for(case(outcome, **facts)).name for outcome, facts in outcomes} == {row.name for row in TABLE}


@given(
    latency=st.one_of(st.none(), st.floats(0, 1e7)),
    kind=st.sampled_from(Latency),
    blame=st.sampled_from(Blame),
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans()),
    tokens=st.one_of(st.none(), st.integers(0, 10**7)),
    failures=st.integers(0, 5),
)
def test_a_natural_id_is_never_retired_and_a_routed_one_never_marked(latency, kind, blame, flags, tokens, failures):
    accepted, judged, was_refused, first = flags
    outcome = Outcome(
        blame, accepted, judged, refused=was_refused, latency_ms=latency, latency=kind, uncached_tokens=tokens
    )
    facts = {"first_turn": first, "failures": failures}
    assert effect_of(case(outcome, natural=True, **facts)) is not Effect.RETIRE
    routed = effect_of(case(outcome, **facts))
    assert routed is not Effect.MARK
    if first and not was_refused:
        assert not routed.bad
    for retires in (True, False):
        policy = policy_for(settings(), ModelKey(GO, MODEL))._replace(latency_retires=retires)
        plain = plain_effect(outcome, policy)
        asked = {effect_of(case(outcome, natural=own, latency_retires=retires, **facts)) for own in (True, False)}
        assert plain is None or asked == {plain}  # the short way says what the table says
