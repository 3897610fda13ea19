"""pool/learning.py: what the pool does with what the estimator finds."""

import pytest

from pool.model import Latency, ModelKey, ProbeKind, Source
from pool.policy import Regime
from tests.fakes.pool import (
    GO,
    HOUR,
    MINUTE,
    MODEL,
    NOW,
    SECOND,
    Process,
    fast,
    first_event,
    names,
    probed,
    routes,
    slow,
    spare,
    wish,
)

KEY = ModelKey(GO, MODEL)


def anyone(_stock):
    return True


def converse(pool, conversations, now, *, turns=6, served):
    """Turns of several conversations, interleaved; ``served(conversation, turn)`` says by whom. Returns the notes."""
    notes = []
    for turn in range(turns):
        for number in range(conversations):
            start = pool.start(wish(f"c{number}"), now)
            notes += pool.observe(start, fast(endpoint=served(number, turn)), now)
            now += SECOND
    return notes + pool.notes()


def sticky(number, _turn):
    return f"native-{number % 3}"


def balanced(number, turn):
    return f"worker-{(number * 7 + turn * 3) % 4}"


def regime(pool):
    return pool.routing(GO, MODEL, NOW + HOUR)["regime"]


def test_sticky_routing_is_found_out_and_told_with_its_evidence():
    pool = routes()
    notes = [one for one in converse(pool, 4, NOW, served=sticky) if one.name == "routing"]
    assert [(one.facts["before"], one.facts["regime"]) for one in notes] == [("unknown", "sticky")]
    facts = notes[0].facts
    assert facts["same_id"] == 1.0
    assert facts["other_ids"] < 0.6
    assert facts["confidence"] > 0.95
    assert "endpoint" in facts["because"]
    assert pool.parts.policies[KEY].stock == 3


def test_where_it_is_balanced_conversations_start_naturally_nothing_is_probed_and_latency_retires_nothing():
    pool = routes(spare("s1"), spare("s2"))
    converse(pool, 4, NOW, served=balanced)
    assert regime(pool) == "balanced"
    at = NOW + MINUTE
    start = pool.start(wish("new"), at)
    assert (start.source, start.routed_id) == (Source.NATURAL, "natural-new")
    assert pool.refill_plan(at + 10 * MINUTE, anyone) == []
    bound = pool.start(wish("c0"), at)
    for _ in range(3):
        assert "retire" not in names(pool.observe(bound, slow(40_000, endpoint="worker-1"), at))
    assert pool.start(wish("c0"), at).routed_id == bound.routed_id


def test_a_change_moves_no_bound_conversation_in_either_direction():
    pool = routes(spare("s1"), spare("s2"))
    converse(pool, 4, NOW, served=sticky)
    before = {f"c{number}": pool.route_of(f"c{number}", GO, MODEL) for number in range(4)}
    converse(pool, 4, NOW + MINUTE, turns=12, served=balanced)
    assert regime(pool) == "balanced"
    converse(pool, 4, NOW + 3 * MINUTE, turns=20, served=sticky)
    assert regime(pool) == "sticky"
    assert {name: pool.route_of(name, GO, MODEL) for name in before} == before


def test_a_natural_id_that_was_marked_is_not_left_after_it_turned_out_that_routing_is_balanced():
    pool = routes()
    pool.observe(pool.start(wish("c0"), NOW), slow(9_000, endpoint="worker-0"), NOW)
    assert pool.parts.bindings.get(f"c0::{GO}::{MODEL}").marked
    converse(pool, 4, NOW + SECOND, turns=8, served=balanced)
    assert regime(pool) == "balanced"
    converse(pool, 4, NOW + 2 * MINUTE, turns=20, served=sticky)
    pool.parts.inventory.admit(spare("late"))
    assert pool.start(wish("c0"), NOW + 4 * MINUTE).routed_id == "natural-c0"


def test_without_names_and_timing_headers_speed_tells():
    pool = routes()
    now = NOW
    for turn in range(8):
        for number in range(4):
            start = pool.start(wish(f"c{number}"), now)
            latency = 25_000 if number % 2 else 1_200
            pool.observe(start, first_event(latency, request_bytes=800), now)
            now += 2 * MINUTE if turn == 0 else 31 * SECOND  # three slow ids a minute would be the gateway's fault
    assert pool.routing(GO, MODEL, now)["regime"] == "sticky"
    assert pool.routing(GO, MODEL, now)["by"] == "speed"


def test_what_a_prompt_takes_to_read_is_not_the_routes_and_a_large_one_tells_nothing():
    pool = routes()
    start = pool.start(wish(), NOW)
    pool.observe(start, fast(5_500, uncached_tokens=19_000), NOW)
    pool.observe(start, fast(30_000, uncached_tokens=90_000), NOW)
    (home,) = pool.parts.estimator._tracks[KEY].ids.values()
    assert home.slow is False
    pool.observe(pool.start(wish("c2"), NOW), fast(300, latency=Latency.WAITED, accepted=False), NOW)
    assert len(pool.parts.estimator._tracks[KEY].ids) == 1


def test_while_nothing_is_known_probes_follow_the_conversations_and_are_few():
    pool = routes()
    pool.observe(pool.start(wish(), NOW), fast(), NOW)
    sent, now = 0, NOW + 15 * SECOND
    while now < NOW + 5 * HOUR:
        for one in pool.refill_plan(now, anyone):
            pool.admit(one, probed(f"p{sent}", ProbeKind.FAST if sent % 2 else ProbeKind.SLOW), now)
            sent += 1
        now += SECOND
    assert sent <= 8


def test_probes_that_found_nothing_while_nothing_was_known_hold_nothing_up_once_it_is_sticky():
    pool = routes()
    pool.observe(pool.start(wish("first"), NOW), fast(endpoint="native-1"), NOW)
    for number in range(6):  # a learning cycle, all of it slow: the next would be an interval away
        for one in pool.refill_plan(NOW + (15 + number) * SECOND, anyone):
            pool.admit(one, probed(f"p{number}", ProbeKind.SLOW), NOW + (15 + number) * SECOND)
    assert pool.refill_plan(NOW + 40 * SECOND, anyone) == []
    converse(pool, 4, NOW + 41 * SECOND, served=sticky)
    assert regime(pool) == "sticky"
    assert len(pool.refill_plan(NOW + 70 * SECOND, anyone)) == 1


def test_in_a_balanced_world_a_canary_looks_once_an_hour_whether_it_still_is():
    pool = routes()
    converse(pool, 4, NOW, served=balanced)
    seen, now = [], NOW
    while now < NOW + 3 * HOUR:
        pool.observe(pool.start(wish("c0"), now), fast(None), now)  # nothing to learn from, but in use
        for one in pool.refill_plan(now, anyone):
            assert one.canary
            routed_id = one.reverify.id if one.reverify is not None else "canary"
            seen.append(routed_id)
            pool.admit(one, probed(routed_id), now)
        now += MINUTE
    assert set(seen) == {"canary"}
    assert 2 <= len(seen) <= 3
    assert pool.parts.inventory.all() == ()


def test_switched_off_it_learns_and_nothing_follows():
    pool = routes(spare("s1"), pool={"adaptive": False})
    converse(pool, 4, NOW, served=balanced)
    assert regime(pool) == "balanced"
    assert pool.parts.policies[KEY].stock == 3
    assert pool.parts.policies[KEY].latency_retires


def test_what_is_known_survives_a_restart_for_six_hours_and_others_learn_it(tmp_path):
    first = Process(tmp_path / "state.json")
    converse(first.routes, 4, NOW, served=balanced)
    first.settle(NOW + MINUTE)
    second = Process(tmp_path / "state.json", NOW + HOUR)
    assert second.routes.routing(GO, MODEL, NOW + HOUR)["regime"] == "balanced"
    assert "routing" in names(second.notes)
    third = Process(tmp_path / "state.json", NOW + 7 * HOUR)
    assert third.routes.routing(GO, MODEL, NOW + 7 * HOUR)["regime"] == "unknown"


def test_what_is_known_is_written_once_and_then_only_from_time_to_time(tmp_path):
    process = Process(tmp_path / "state.json")
    converse(process.routes, 4, NOW, served=sticky)
    process.settle(NOW + MINUTE)
    assert process.routes.beliefs(NOW + MINUTE) == {}
    converse(process.routes, 4, NOW + MINUTE, served=sticky)
    assert process.routes.beliefs(NOW + 2 * MINUTE) == {}
    converse(process.routes, 4, NOW + 10 * MINUTE, served=sticky)
    assert [belief.regime for belief in process.routes.beliefs(NOW + 11 * MINUTE).values()] == [Regime.STICKY]


def test_after_the_clock_was_set_back_what_is_learned_is_written_at_once_again(tmp_path):
    """Not when the clock comes to the old time again; a restart in between would know nothing."""
    process = Process(tmp_path / "state.json")
    converse(process.routes, 4, NOW + 10 * HOUR, served=sticky)
    process.settle(NOW + 10 * HOUR + MINUTE)
    converse(process.routes, 4, NOW, served=sticky)
    assert [belief.regime for belief in process.routes.beliefs(NOW + MINUTE).values()] == [Regime.STICKY]
    process.settle(NOW + MINUTE, 10_000)
    assert process.routes.beliefs(NOW + 2 * MINUTE) == {}
    another = Process(tmp_path / "state.json", NOW + 3 * MINUTE)
    assert another.routes.routing(GO, MODEL, NOW + 3 * MINUTE)["regime"] == "sticky"


def test_what_is_remembered_is_bounded_however_many_models_clients_name():
    pool = routes()
    for number in range(300):
        for one in range(9):
            start = pool.start(wish(f"c{one}", model=f"model-{number}"), NOW)
            pool.observe(start, fast(endpoint="only"), NOW)
        pool.refill_plan(NOW, anyone)
    assert len(pool.parts.estimator.models()) <= 64
    assert len(pool.parts.policies.regimes) <= 200


@pytest.mark.parametrize("kind", [ProbeKind.LIMIT, ProbeKind.TRANSPORT, ProbeKind.REJECTED, ProbeKind.UNAUTHORIZED])
def test_probes_that_were_not_answered_teach_nothing(kind):
    pool = routes()
    pool.observe(pool.start(wish(), NOW), fast(), NOW)
    one = pool.refill_plan(NOW + 15 * SECOND, anyone)[0]
    pool.admit(one, probed("p", kind), NOW + 15 * SECOND)
    assert "p" not in pool.parts.estimator._tracks[KEY].ids
