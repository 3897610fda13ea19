"""pool/judge.py"""

import pytest

from pool.model import Blame, Outcome, Source
from pool.pauses import FAR
from tests.fakes.pool import (
    GO,
    MINUTE,
    MODEL,
    NOW,
    SECOND,
    fast,
    first_event,
    limited,
    names,
    refused,
    routes,
    slow,
    spare,
    unauthorized,
    waited,
    wish,
)

KEY = f"c1::{GO}::{MODEL}"


def bound(**sections):
    """A conversation on a spare, after one healthy turn."""
    pool = routes(spare("s1"), **sections)
    pool.observe(pool.start(wish(), NOW), fast(), NOW)
    return pool


def turn(pool, outcome, now=NOW):
    return names(pool.observe(pool.start(wish(), now), outcome, now))


def test_a_very_slow_turn_retires_a_routed_id_at_once():
    pool = bound()
    assert turn(pool, slow()) == ["retire"]
    assert pool.parts.bindings.is_retired("s1")


def test_two_strikes_retire_and_a_healthy_turn_between_them_forgives():
    pool = bound()
    assert turn(pool, fast(7000)) == ["strike"]
    assert turn(pool, fast(3000)) == []
    assert turn(pool, fast(7000)) == ["strike"]
    assert turn(pool, fast(7000)) == ["retire"]


def test_the_first_turn_of_a_routed_id_is_never_held_against_it():
    pool = routes(spare("s1"))
    assert turn(pool, slow(40_000)) == []
    assert pool.start(wish(), NOW).routed_id == "s1"


def test_a_healthy_turn_is_taken_down():
    pool = bound()
    turn(pool, fast(1234, endpoint="ep-7"), NOW + SECOND)
    binding = pool.parts.bindings.get(KEY)
    assert (binding.upstream_ms, binding.verified_at, binding.endpoint) == (1234, NOW + SECOND, "ep-7")
    assert (binding.turns, binding.last_seen_at) == (2, NOW + SECOND)


def test_the_time_to_the_first_event_is_no_upstream_time():
    pool = bound()
    turn(pool, first_event(9_000))
    assert pool.parts.bindings.get(KEY).upstream_ms == 900.0


def test_a_verdict_on_an_id_that_the_conversation_has_left_changes_nothing():
    pool = bound()
    old = pool.start(wish(), NOW)
    pool.repin("c1", NOW)
    pool.parts.inventory.admit(spare("s2"))
    pool.start(wish(), NOW)
    assert pool.observe(old, slow(), NOW) == []
    assert pool.observe(old, refused(), NOW) == []
    assert pool.start(wish(), NOW).routed_id == "s2"


def test_concurrent_slow_turns_retire_one_id_once():
    pool = bound()
    starts = [pool.start(wish(), NOW) for _ in range(3)]
    assert [names(pool.observe(start, slow(), NOW)) for start in starts] == [["retire"], [], []]


def test_three_slow_ids_within_a_minute_are_the_gateways_fault_and_the_third_is_spared():
    pool = routes(*[spare(f"s{n}") for n in range(4)])
    for name in "abcd":
        pool.observe(pool.start(wish(name), NOW), fast(), NOW)
    made = [names(pool.observe(pool.start(wish(name), NOW), slow(), NOW)) for name in "abcd"]
    assert made == [["retire"], ["retire"], ["fault"], ["fault"]]
    assert names(pool.observe(pool.start(wish("d"), NOW + 2 * MINUTE), slow(), NOW + 2 * MINUTE)) == ["retire"]


def test_a_limit_blames_no_id_and_stops_probes_for_its_window():
    pool = bound(probe={})
    pool.parts.shared_key = False
    assert turn(pool, limited(pause_ms=5 * MINUTE)) == ["pause"]
    assert pool.parts.pauses.active(GO, "", MODEL, NOW) == (NOW + 5 * MINUTE, "limit")
    assert pool.start(wish(), NOW).routed_id == "s1"
    assert turn(pool, fast()) == ["resume"]
    assert pool.parts.pauses.active(GO, "", MODEL, NOW) is None


def test_a_limit_before_the_first_answer_does_not_send_the_retry_out_on_another_id():
    pool = routes()
    assert pool.start(wish(), NOW).routed_id == "natural-c1"
    turn(pool, limited())
    pool.parts.inventory.admit(spare("s1"))
    assert pool.start(wish(), NOW + SECOND).routed_id == "natural-c1"


def test_one_slow_answer_from_another_endpoint_is_a_strike_and_the_next_from_home_forgives_it():
    pool = routes(spare("s1"))
    pool.observe(pool.start(wish(), NOW), fast(endpoint="home"), NOW)
    assert turn(pool, slow(endpoint="elsewhere")) == ["strike"]
    assert turn(pool, fast(endpoint="home")) == []
    assert pool.parts.bindings.get(KEY).failures == 0
    assert turn(pool, slow(endpoint="home")) == ["retire"]


def test_a_limit_without_a_window_lasts_a_minute():
    pool = bound()
    turn(pool, limited())
    assert pool.parts.pauses.active(GO, "", MODEL, NOW) == (NOW + MINUTE, "limit")


def test_a_limit_of_a_caller_pauses_the_shared_key_and_a_success_ends_it():
    pool = routes(shared_key=True)
    pool.observe(pool.start(wish(scope="me"), NOW), limited(), NOW)
    assert pool.parts.pauses.active(GO, "", MODEL, NOW) is not None
    assert names(pool.observe(pool.start(wish(scope="me"), NOW), fast(), NOW)) == ["resume", "keep-natural"]
    assert pool.parts.pauses.active(GO, "", MODEL, NOW) is None


def test_an_unauthorized_caller_stops_its_own_probes_only():
    pool = routes(shared_key=False)
    assert names(pool.observe(pool.start(wish(scope="me"), NOW), unauthorized(), NOW)) == ["pause"]
    assert pool.parts.pauses.active(GO, "me", MODEL, NOW) == (FAR, "credential refused")
    assert pool.parts.pauses.active(GO, "them", MODEL, NOW) is None


def test_retry_after_on_an_overloaded_route_keeps_probes_away_from_the_model():
    pool = bound()
    assert turn(pool, refused(pause_ms=9_000)) == ["pause", "retire"]
    assert pool.parts.pauses.active(GO, "", MODEL, NOW) == (NOW + 9_000, "retry-after")
    assert pool.parts.pauses.active(GO, "", "other", NOW) is None


def test_a_side_call_tells_of_limits_and_is_not_judged():
    pool = bound()
    side = pool.start(wish(turn=False), NOW)
    assert names(pool.observe(side, limited(), NOW)) == ["pause"]
    assert pool.observe(side, slow(), NOW)[1:] == []
    assert pool.start(wish(), NOW).routed_id == "s1"


def test_a_natural_start_that_failed_for_other_reasons_does_not_hold_the_conversation():
    pool = routes()
    pool.observe(pool.start(wish(), NOW), Outcome(Blame.CLIENT, accepted=False, judged=False), NOW)
    assert len(pool.parts.bindings) == 0
    pool.parts.inventory.admit(spare("s1"))
    assert pool.start(wish(), NOW).routed_id == "s1"


def test_a_natural_turn_with_much_to_read_is_not_slow_and_stays():
    pool = routes()
    assert turn(pool, slow(uncached_tokens=50_000)) == []
    pool.parts.inventory.admit(spare("s1"))
    assert pool.start(wish(), NOW).source is Source.NATURAL


def test_a_client_that_waited_in_vain_marks_its_natural_id():
    pool = routes()
    assert turn(pool, waited(9_000)) == ["mark"]
    assert turn(pool, waited(9_000)) == []
    pool.parts.inventory.admit(spare("s1"))
    assert pool.start(wish(), NOW).routed_id == "s1"


def test_a_natural_turn_that_ends_well_after_its_binding_was_dropped_is_bound_again():
    pool = routes()
    one, two = (pool.start(wish(), NOW) for _ in range(2))
    pool.observe(one, Outcome(Blame.CLIENT, accepted=False, judged=False), NOW)
    pool.observe(two, fast(), NOW)
    assert pool.parts.bindings.get(KEY).turns == 1


def test_where_requests_are_balanced_latency_retires_nothing_and_refusals_do():
    from pool.model import ModelKey
    from pool.policy import Regime

    pool = bound()
    pool.parts.policies.believe(ModelKey(GO, MODEL), Regime.BALANCED)
    assert turn(pool, slow()) == []
    assert pool.replace(pool.start(wish(), NOW), NOW) is None
    assert turn(pool, refused()) == ["retire"]


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_in_other_modes_nothing_is_bound_or_retired(mode):
    pool = routes(spare("s1"), routing={"mode": mode})
    pool.observe(pool.start(wish(), NOW), slow(), NOW)
    assert len(pool.parts.bindings) == 0


def test_a_strike_is_told_to_others_at_once_and_a_healthy_turn_within_seconds():
    pool = bound()
    pool.parts.bindings.outbox.collect()
    turn(pool, fast(), NOW + 1)
    assert not pool.parts.bindings.outbox.pending
    turn(pool, fast(7000), NOW + 2)
    assert pool.parts.bindings.outbox.pending[KEY].touch


def test_facts_name_ids_by_digest_only():
    pool = bound()
    notes = pool.notes() + pool.observe(pool.start(wish(), NOW), slow(), NOW)
    assert notes
    assert not any("s1" in map(str, note.facts.values()) for note in notes)


def test_a_limit_that_is_known_already_is_not_told_again():
    pool = bound()
    assert turn(pool, limited(pause_ms=5 * MINUTE)) == ["pause"]
    assert turn(pool, limited()) == []
