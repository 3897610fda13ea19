"""pool/rounds.py and pool/pacing.py: the throughput profile in the pool."""

import pytest

from pool.model import ModelKey, ProbeKind, ProbeResult, Source
from pool.policy import Regime
from pool.search import Found, GiveUp, ProbeThis
from tests.fakes.pool import (
    GO,
    MINUTE,
    MODEL,
    NOW,
    SECOND,
    STOCK,
    Process,
    fast,
    names,
    refused,
    routes,
    settings,
    spare,
    wish,
)

KEY = f"c1::{GO}::{MODEL}"


def anyone(_stock):
    return True


def pool(*spares, **sections):
    return routes(*spares, **({"probe": {"profile": "throughput"}} | sections))


def turn(tps=120.0, **more):
    return fast(900.0, tps=tps, first_event_ms=900.0, completion_tokens=200, input_tokens=2_000, **more)


def play(made, now, outcome=None, **more):
    """One turn of conversation c1; its start and what was told."""
    start = made.start(wish(**more), now)
    return start, made.observe(start, outcome or turn(), now) + made.notes()


def probed(routed_id, tps=None, kind=ProbeKind.FAST, ttfb_ms=900.0) -> ProbeResult:
    reason = "too slow" if kind is ProbeKind.SLOW else None
    return ProbeResult(routed_id, kind, None, ttfb_ms, True, 200, tps=tps, ttfb_ms=ttfb_ms, reason=reason, tokens=120)


def run(one, now, *results):
    """Drive a round; ``results`` are (tps, kind) of each probe. Returns how it ended and the ids that were asked."""
    asked, left = [], list(results)
    while isinstance(step := one.next(now), ProbeThis):
        now += round(step.wait_ms) + SECOND
        asked.append(step.id)
        tps, kind = left.pop(0)
        one.feed(probed(step.id, tps, kind), now)
    assert not left
    return step, asked


GOOD, GREAT, SLOW = (100.0, ProbeKind.FAST), (160.0, ProbeKind.FAST), (30.0, ProbeKind.SLOW)
DEAD = (None, ProbeKind.OVERLOADED)


def facts(notes, name):
    (found,) = [one.facts for one in notes if one.name == name]
    return found


def test_the_first_turn_runs_on_the_natural_id_and_is_its_measurement():
    made = pool(spare("s1"))
    start, notes = play(made, NOW)
    assert (start.source, start.routed_id) == (Source.NATURAL, "natural-c1")
    assert "keep-natural" in names(notes)
    kept = facts(notes, "keep-natural")
    assert (kept["natural"], kept["natural_tps"], kept["chosen_tps"], kept["gain"]) == ("ok", 120.0, 120.0, 1.0)
    assert made.next_round(NOW, anyone) is None
    assert made.refill_plan(NOW + 10 * MINUTE, anyone) == []
    assert play(made, NOW + MINUTE)[0].routed_id == "natural-c1"


def test_a_slow_natural_id_is_left_for_the_best_of_a_round_in_the_background():
    made = pool()
    _, notes = play(made, NOW, turn(40.0))
    assert "mark" in names(notes)
    one = made.next_round(NOW, anyone)
    end, asked = run(one, NOW, SLOW, GOOD, (130.0, ProbeKind.FAST))
    assert isinstance(end, Found)
    assert len(asked) == 3  # the turn was the first of four candidates
    notes = made.notes()
    assert names(notes) == ["probe", "probe-reject", "probe", "probe", "probe-round"]
    told = facts(notes, "probe-round")
    assert (told["candidates"], told["admitted"], told["best_tps"], told["reason"]) == (3, 2, 130.0, "candidates")
    start, notes = play(made, NOW + MINUTE)
    assert start.routed_id == asked[2]
    pinned = facts(notes, "pin")
    assert pinned == facts(notes, "compare") | {"source": "probe", "id": pinned["id"]}
    assert (pinned["natural"], pinned["natural_tps"], pinned["chosen_tps"], pinned["gain"]) == (
        "rejected",
        40.0,
        130.0,
        3.25,
    )
    assert [one.id for one in made.parts.inventory.all()] == [asked[1]]


def test_a_round_stops_at_the_first_candidate_that_reaches_the_target():
    made = pool()
    play(made, NOW, turn(40.0))
    _, asked = run(made.next_round(NOW, anyone), NOW, GREAT)
    assert len(asked) == 1


def test_a_round_that_finds_nothing_says_so_and_is_not_repeated_at_once():
    made = pool()
    play(made, NOW, turn(40.0))
    end, _ = run(made.next_round(NOW, anyone), NOW, DEAD, SLOW, SLOW)
    assert isinstance(end, GiveUp)
    notes = made.notes()
    assert names(notes)[-2:] == ["probe-round", "skip-pin"]
    assert facts(notes, "skip-pin")["natural"] == "rejected"
    assert facts(notes, "probe-dead")["reason"] == "overloaded"
    made.start(wish(), NOW + 30 * SECOND)
    assert made.next_round(NOW + 30 * SECOND, anyone) is None
    made.start(wish(), NOW + 2 * MINUTE)
    assert made.next_round(NOW + 2 * MINUTE, anyone) is not None


def test_a_clock_that_was_set_back_holds_no_round_up_for_longer():
    """Neither one that follows a round that found nothing, nor one that was ordered."""
    hours = 9 * 60 * MINUTE
    made = pool()
    play(made, NOW, turn(40.0))
    run(made.next_round(NOW, anyone), NOW, DEAD, SLOW, SLOW)
    made.disturbed(NOW - hours, -hours)
    now = NOW - hours + 2 * MINUTE
    made.start(wish(), now)
    assert made.next_round(now, anyone) is not None
    ordered = pool()
    play(ordered, NOW, turn(40.0))
    ordered.disturbed(NOW - hours, -hours)
    assert ordered.next_round(NOW - hours + 15 * SECOND, anyone) is not None


def test_a_sub_agents_conversation_leases_from_the_same_pool_and_probes_nothing():
    made = pool(spare("s1"))
    start = made.start(wish(child=True), NOW)
    assert start.source is Source.SPARE
    assert made.start(wish("c2"), NOW).source is Source.NATURAL
    assert "pin" in names(made.notes())


def test_with_a_budget_the_round_comes_before_the_first_turn_and_the_natural_id_first():
    made = pool(pool={"request_budget_ms": 60_000})
    start = made.start(wish(), NOW)
    assert start.budget_ms == 60_000
    end, asked = run(made.search(start, NOW), NOW, SLOW, GREAT)
    assert asked[0] == "natural-c1"
    assert end.start.routed_id == asked[1]
    notes = made.notes()
    assert facts(notes, "pin")["natural_tps"] == 30.0
    assert made.start(wish(), NOW + MINUTE).routed_id == asked[1]


def test_with_a_budget_a_good_natural_id_is_kept_and_nothing_else_is_tried():
    made = pool(pool={"request_budget_ms": 60_000})
    start = made.start(wish(), NOW)
    end, asked = run(made.search(start, NOW), NOW, GOOD)
    assert asked == ["natural-c1"]
    assert end.start.routed_id == "natural-c1"
    assert facts(made.notes(), "keep-natural")["source"] == "probe"


def test_a_budget_that_is_spent_sends_the_request_on_its_natural_id():
    made = pool(pool={"request_budget_ms": 4_000})
    start = made.start(wish(), NOW)
    one = made.search(start, NOW)
    step = one.next(NOW)
    one.feed(probed(step.id, None, ProbeKind.TIMEOUT), NOW + 3_000)
    end = one.next(NOW + 3_000)
    assert isinstance(end, GiveUp)
    assert end.start.routed_id == "natural-c1"
    assert facts(made.notes(), "skip-pin")["natural"] == "dead"


def pinned(made, now=NOW):
    """Conversation c1 on an id whose probe read 160."""
    play(made, now, turn(40.0))
    run(made.next_round(now, anyone), now, GREAT)
    made.notes()
    return made.start(wish(), now + MINUTE)


def test_a_probe_that_read_too_high_is_corrected_once():
    made = pool(binding={"lock_after_turns": 9})
    start = pinned(made)
    notes = made.observe(start, turn(90.0), NOW + MINUTE)
    evicted = facts(notes, "evict")
    assert (evicted["reason"], evicted["tps"], evicted["probe_tps"]) == ("correction", 90.0, 160.0)
    assert made.start(wish(), NOW + 2 * MINUTE).source is Source.NATURAL  # nothing is ready
    run(made.next_round(NOW + 2 * MINUTE, anyone), NOW + 2 * MINUTE, GREAT)
    again = made.start(wish(), NOW + 3 * MINUTE)
    assert again.routed_id not in {start.routed_id, "natural-c1"}
    assert "evict" not in names(made.observe(again, turn(80.0), NOW + 3 * MINUTE))
    assert made.start(wish(), NOW + 4 * MINUTE).routed_id == again.routed_id


def test_after_two_turns_a_conversation_is_locked_and_slow_turns_are_only_written_down():
    made = pool()
    start = pinned(made)
    made.observe(start, turn(150.0), NOW + MINUTE)
    for minute in range(2, 6):
        again = made.start(wish(), NOW + minute * MINUTE)
        assert again.routed_id == start.routed_id
        notes = made.observe(again, turn(12.0), NOW + minute * MINUTE)
        if minute > 2:
            assert names(notes) == ["turn"]
            assert facts(notes, "turn")["locked"]
            assert facts(notes, "turn")["slow"]


def test_many_input_tokens_lock_too_but_not_before_the_correction_was_decided():
    made = pool()
    start = pinned(made)
    large = turn(90.0)._replace(input_tokens=30_000)
    assert "evict" in names(made.observe(start, large, NOW + MINUTE))
    other = pool()
    start = pinned(other)
    assert names(other.observe(start, turn(155.0)._replace(input_tokens=30_000), NOW + MINUTE)) == ["turn"]
    assert other.parts.bindings.get(KEY).locked


def test_a_refusal_moves_even_a_locked_conversation():
    made = pool()
    start = pinned(made)
    made.observe(start, turn(150.0), NOW + MINUTE)
    made.observe(start, turn(150.0), NOW + MINUTE)
    notes = made.observe(start, refused(), NOW + 3 * MINUTE)
    assert facts(notes, "evict")["reason"] == "dead"


def test_a_speed_that_was_only_counted_never_evicts():
    made = pool()
    _, notes = play(made, NOW, turn(12.0, estimated=True))
    assert "keep-natural" in names(notes)
    assert facts(notes, "keep-natural")["estimated"]


def test_a_natural_id_that_could_not_be_left_in_time_is_kept():
    made = pool()
    play(made, NOW, turn(40.0))
    _, notes = play(made, NOW + SECOND, turn(40.0))
    assert facts(notes, "skip-pin")["reason"] == "locked"
    made.parts.inventory.admit(spare("late"))
    assert made.start(wish(), NOW + MINUTE).routed_id == "natural-c1"
    assert made.next_round(NOW + MINUTE, anyone) is None


def test_observe_writes_down_what_would_be_done_and_does_nothing():
    made = pool(routing={"mode": "observe"})
    start, notes = play(made, NOW, turn(40.0))
    assert start.routed_id == "natural-c1"
    _, asked = run(made.next_round(NOW, anyone), NOW, GREAT)
    skipped = facts(made.notes(), "skip-pin")
    assert (skipped["reason"], skipped["observed"], skipped["gain"]) == ("observe", True, 4.0)
    start, notes = play(made, NOW + MINUTE)
    assert start.routed_id == "natural-c1"
    assert names(notes) == ["turn"]
    assert made.parts.inventory.all() == ()
    assert len(asked) == 1


def test_leftovers_are_no_more_than_the_pools_size_and_the_best_stay():
    made = pool(pool={"size": 2}, probe={"profile": "throughput", "candidates": 6})
    play(made, NOW, turn(40.0))
    run(made.next_round(NOW, anyone), NOW, *[(80.0 + number, ProbeKind.FAST) for number in range(5)])
    assert sorted(one.tps for one in made.parts.inventory.of(STOCK)) == [82.0, 83.0]


def test_a_spare_that_is_left_over_is_leased_before_anything_is_probed():
    made = pool()
    play(made, NOW, turn(40.0))
    run(made.next_round(NOW, anyone), NOW, GOOD, GOOD, GOOD)
    made.notes()
    start = made.start(wish("c2"), NOW)
    made.observe(start, turn(40.0), NOW)
    end, asked = run(made.next_round(NOW + MINUTE, anyone), NOW + MINUTE)
    assert isinstance(end, Found)
    assert asked == []
    assert made.start(wish("c2"), NOW + MINUTE).source is Source.SPARE


@pytest.mark.parametrize("kind", [ProbeKind.LIMIT, ProbeKind.UNAUTHORIZED, ProbeKind.REJECTED, ProbeKind.TRANSPORT])
def test_a_round_ends_at_what_more_probes_cannot_mend(kind):
    made = pool()
    play(made, NOW, turn(40.0))
    end, asked = run(made.next_round(NOW, anyone), NOW, (None, kind))
    assert isinstance(end, GiveUp)
    assert len(asked) == 1


def test_where_routing_is_balanced_nothing_is_tried_and_nothing_is_left():
    made = pool()
    made.parts.policies.believe(ModelKey(GO, MODEL), Regime.BALANCED)
    _, notes = play(made, NOW, turn(12.0))
    assert sorted(names(notes)) == ["natural", "turn"]
    assert made.next_round(NOW, anyone) is None


def test_the_lock_and_the_speed_survive_a_restart(tmp_path):
    first = Process(tmp_path / "state.json", probe={"profile": "throughput"})
    start = pinned(first.routes)
    first.routes.observe(start, turn(150.0), NOW + MINUTE)
    first.routes.observe(start, turn(150.0), NOW + MINUTE)
    first.settle(NOW + 2 * MINUTE)
    second = Process(tmp_path / "state.json", NOW + 3 * MINUTE, probe={"profile": "throughput"})
    binding = second.bindings.get(KEY)
    assert (binding.locked, binding.tps, binding.routed_id) == (True, 160.0, start.routed_id)


def test_one_model_may_have_another_profile():
    tree = {"models": {"kimi-k3": {"profile": "throughput"}}}
    made = routes(spare("s1"), **tree)
    assert settings(**tree).profile_for(MODEL) == "latency"
    assert made.start(wish(), NOW).source is Source.SPARE
    assert made.start(wish("c9", model="kimi-k3"), NOW).source is Source.NATURAL
