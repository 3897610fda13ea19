"""pool/failover.py"""

from pool.model import Source
from tests.fakes.pool import MINUTE, MODEL, NOW, SECOND, STOCK, fast, limited, names, refused, routes, slow, spare, wish

KEY = f"c1::opencode-go::{MODEL}"


def bound(*more):
    """A conversation on a spare of its own, after one turn."""
    pool = routes(spare("s1"))
    pool.observe(pool.start(wish(), NOW), fast(), NOW)
    for one in more:
        pool.parts.inventory.admit(spare(one))
    return pool


def test_a_refused_attempt_is_replaced_by_a_fresh_spare_and_the_refused_id_is_retired_when_that_works():
    pool = bound("s2")
    first = pool.start(wish(), NOW)
    second = pool.replace(first, NOW)
    assert (second.routed_id, second.source, second.first_turn) == ("s2", Source.REPIN, True)
    assert pool.observe(first, refused(), NOW) == []
    assert not pool.parts.bindings.is_retired("s1")
    assert "retire" in names(pool.observe(second, fast(replayed=True), NOW))
    assert pool.parts.bindings.is_retired("s1")
    assert pool.start(wish(), NOW).routed_id == "s2"


def test_a_replay_that_is_refused_too_retires_neither_and_its_spare_stays_with_the_conversation():
    pool = bound("s2", "s3")
    first = pool.start(wish(), NOW)
    second = pool.replace(first, NOW)
    pool.observe(first, refused(), NOW)
    assert names(pool.observe(second, refused(replayed=True), NOW)) == ["fault"]
    assert not pool.parts.bindings.is_retired("s1")
    assert not pool.parts.bindings.is_retired("s2")
    assert pool.parts.bindings.get(KEY).standby == "s2"
    assert pool.start(wish(), NOW).routed_id == "s1"


def test_until_somebody_is_served_well_another_conversations_refusal_spends_no_spare():
    pool = bound("s2", "s3", "s4")
    other = pool.start(wish("c2"), NOW)
    pool.observe(other, fast(), NOW)
    first = pool.start(wish(), NOW + SECOND)
    pool.observe(pool.replace(first, NOW + SECOND), refused(replayed=True), NOW + SECOND)
    later = NOW + 3 * MINUTE
    before = pool.parts.inventory.count(STOCK)
    assert pool.replace(pool.start(wish("c2"), later), later) is None
    assert pool.parts.inventory.count(STOCK) == before
    pool.observe(pool.start(wish(), later), fast(), later)
    assert pool.replace(pool.start(wish("c2"), later), later) is not None
    assert pool.parts.inventory.count(STOCK) == before - 1


def test_an_overload_drains_at_most_one_spare_a_conversation():
    pool = bound(*[f"x{n}" for n in range(10)])
    for turn in range(20):
        now = NOW + turn * 2 * MINUTE
        first = pool.start(wish(), now)
        second = pool.replace(first, now)
        if second is not None:
            pool.observe(second, refused(replayed=True), now)
        pool.observe(first, refused(), now)
    assert pool.parts.inventory.count(STOCK) == 9


def test_while_the_gateway_is_at_fault_no_spare_is_spent_and_nothing_is_retired():
    pool = bound("s2")
    pool.parts.faults.replay_refused((wish().provider, MODEL), NOW)
    first = pool.start(wish(), NOW + SECOND)
    assert pool.replace(first, NOW + SECOND) is None
    assert names(pool.observe(first, refused(), NOW + SECOND)) == ["fault"]
    assert pool.parts.inventory.count(STOCK) == 1
    assert pool.start(wish(), NOW + SECOND).routed_id == "s1"


def test_the_third_conversation_refused_within_a_minute_gets_no_spare():
    pool = routes(*[spare(f"s{n}") for n in range(3)])
    for name in "abc":
        pool.observe(pool.start(wish(name), NOW), fast(), NOW)
    for n in range(3):
        pool.parts.inventory.admit(spare(f"x{n}"))
    replaced = []
    for name in "abc":
        first = pool.start(wish(name), NOW)
        replaced.append(pool.replace(first, NOW) is not None)
        pool.observe(first, refused(), NOW)
    assert replaced == [True, True, False]
    assert not any(pool.parts.bindings.is_retired(f"s{n}") for n in range(3))


def test_without_a_spare_a_refused_routed_id_is_retired_at_once():
    pool = bound()
    first = pool.start(wish(), NOW)
    assert pool.replace(first, NOW) is None
    assert names(pool.observe(first, refused(), NOW)) == ["retire"]
    assert pool.start(wish(), NOW).routed_id == "natural-c1"


def test_concurrent_refusals_on_one_binding_share_one_spare():
    pool = bound("s2", "s3")
    starts = [pool.start(wish(), NOW) for _ in range(3)]
    replays = [pool.replace(start, NOW) for start in starts]
    assert {replay.routed_id for replay in replays} == {"s2"}
    for start, replay in zip(starts, replays, strict=True):
        pool.observe(start, refused(), NOW)
        pool.observe(replay, fast(replayed=True), NOW)
    assert pool.parts.inventory.count(STOCK) == 1
    assert pool.start(wish(), NOW).routed_id == "s2"


def test_a_refusal_that_comes_after_the_move_goes_where_the_conversation_is_now():
    pool = bound("s2", "s3")
    one, two = (pool.start(wish(), NOW) for _ in range(2))
    replay = pool.replace(one, NOW)
    pool.observe(one, refused(), NOW)
    pool.observe(replay, fast(replayed=True), NOW)
    late = pool.replace(two, NOW)
    assert late.routed_id == "s2"
    pool.observe(two, refused(), NOW)
    pool.observe(late, fast(replayed=True), NOW)
    assert not pool.parts.bindings.is_retired("s2")
    assert pool.parts.inventory.count(STOCK) == 1


def test_a_late_replay_that_is_refused_is_the_gateways_fault_too():
    pool = bound("s2")
    one, two = (pool.start(wish(), NOW) for _ in range(2))
    replay = pool.replace(one, NOW)
    pool.observe(replay, fast(replayed=True), NOW)
    late = pool.replace(two, NOW)
    pool.observe(late, refused(replayed=True), NOW)
    assert pool.parts.faults.models(NOW)
    assert pool.start(wish(), NOW).routed_id == "s2"


def test_a_refused_natural_start_moves_to_the_spare_that_worked():
    pool = routes()
    first = pool.start(wish(), NOW)
    pool.parts.inventory.admit(spare("s1"))
    second = pool.replace(first, NOW)
    assert (second.routed_id, second.source) == ("s1", Source.SPARE)
    pool.observe(first, refused(), NOW)
    pool.observe(second, fast(replayed=True), NOW)
    assert pool.start(wish(), NOW).routed_id == "s1"
    assert not pool.parts.bindings.is_retired("natural-c1")


def test_a_natural_start_refused_twice_keeps_its_natural_id_and_the_standby():
    pool = routes()
    first = pool.start(wish(), NOW)
    pool.parts.inventory.admit(spare("s1"))
    second = pool.replace(first, NOW)
    pool.observe(first, refused(), NOW)
    pool.observe(second, refused(replayed=True), NOW)
    assert pool.start(wish(), NOW).routed_id == "natural-c1"
    later = NOW + 2 * MINUTE
    assert pool.replace(pool.start(wish(), later), later).routed_id == "s1"


def test_a_natural_binding_that_was_evicted_meanwhile_still_fails_over_once():
    pool = routes()
    first = pool.start(wish(), NOW)
    pool.parts.bindings.lose(KEY)
    pool.parts.inventory.admit(spare("s1"))
    second = pool.replace(first, NOW)
    assert (second.routed_id, second.replaces) == ("s1", "natural-c1")


def test_a_routed_binding_that_is_gone_meanwhile_is_replaced_for_good():
    pool = bound()
    one, two = (pool.start(wish(), NOW) for _ in range(2))
    pool.observe(one, refused(), NOW)
    assert pool.replace(two, NOW) is None
    pool.parts.inventory.admit(spare("s2"))
    second = pool.replace(two, NOW)
    assert (second.routed_id, second.source) == ("s2", Source.REPIN)
    pool.observe(two, refused(), NOW)
    pool.observe(second, fast(replayed=True), NOW)
    assert pool.start(wish(), NOW).routed_id == "s2"


def test_a_replay_that_met_a_limit_says_nothing_for_the_refused_id():
    pool = bound("s2")
    first = pool.start(wish(), NOW)
    second = pool.replace(first, NOW)
    pool.observe(first, refused(), NOW)
    pool.observe(second, limited(), NOW)
    assert pool.start(wish(), NOW).routed_id == "s2"


def test_a_standby_takes_the_place_of_an_id_that_is_retired_for_latency():
    pool = bound("s2", "s3")
    first = pool.start(wish(), NOW)
    pool.observe(pool.replace(first, NOW), refused(replayed=True), NOW)
    later = NOW + 5 * MINUTE
    pool.observe(pool.start(wish(), later), slow(uncached_tokens=5), later)
    assert pool.start(wish(), later).routed_id == "s2"
    assert pool.parts.inventory.count(STOCK) == 1


def test_a_marked_natural_id_is_left_for_its_standby_before_a_fresh_spare():
    pool = routes()
    first = pool.start(wish(), NOW)
    pool.parts.inventory.admit(spare("s1"))
    pool.observe(pool.replace(first, NOW), refused(replayed=True), NOW)
    later = NOW + 5 * MINUTE
    pool.parts.inventory.admit(spare("s2", verified_at=later))
    pool.observe(pool.start(wish(), later), slow(), later)
    assert pool.start(wish(), later).routed_id == "s1"


def test_a_side_call_is_not_failed_over():
    pool = routes(spare("s1"))
    assert pool.replace(pool.start(wish(turn=False), NOW), NOW) is None
