"""pool/search.py and pool/ground.py"""

import pytest

from pool.model import ProbeKind, Source
from pool.search import Found, GiveUp, ProbeThis
from tests.fakes.pool import GO, HOUR, MODEL, NOW, SECOND, STOCK, fast, probed, routes, slow, spare, wish

BUDGETS = {"startup_budget_ms": 6000, "request_budget_ms": 4000}
KEY = f"c1::{GO}::{MODEL}"


def searching(*spares, **sections):
    """A pool that may wait, and the search of a conversation's first request."""
    pool = routes(*spares, **({"pool": BUDGETS} | sections))
    start = pool.start(wish(), NOW)
    return pool, start, pool.search(start, NOW)


def test_the_first_request_may_wait_for_one_budget_and_later_ones_for_another():
    pool, start, search = searching()
    assert start.budget_ms == 6000
    search.stop("over", NOW)
    pool.parts.cooldown.clear()
    pool.observe(start, slow(), NOW)
    assert pool.start(wish(), NOW).budget_ms == 4000


def test_without_budgets_nobody_searches():
    pool = routes()
    start = pool.start(wish(), NOW)
    assert start.budget_ms == 0.0
    assert pool.search(start, NOW) is None


def test_new_ids_are_probed_until_one_is_fast_and_it_is_bound_without_entering_the_reserve():
    pool, _, search = searching()
    step = search.next(NOW)
    assert isinstance(step, ProbeThis)
    assert (step.wait_ms, step.timeout_ms) == (0, 6000)
    search.feed(probed(step.id, ProbeKind.SLOW, 3000.0), NOW + 3000)
    step = search.next(NOW + 3000)
    assert (step.wait_ms, step.timeout_ms) == (750, 2250)
    search.feed(probed(step.id, ProbeKind.FAST, 700.0), NOW + 4500)
    found = search.next(NOW + 4500)
    assert isinstance(found, Found)
    assert (found.start.routed_id, found.start.source, found.start.bound) == (step.id, Source.PROBE, True)
    assert pool.parts.inventory.count(STOCK) == 0
    assert pool.start(wish(), NOW + 5000).routed_id == step.id
    assert search.next(NOW + 9000) is found


def test_a_stale_spare_is_verified_before_new_ids_are_tried():
    pool, _, search = searching(spare("old", verified_at=NOW - HOUR))
    step = search.next(NOW)
    assert step.id == "old"
    search.feed(probed("old"), NOW + 900)
    assert search.next(NOW + 900).start.routed_id == "old"
    assert pool.parts.inventory.count(STOCK) == 0


def test_a_stale_spare_that_is_slow_is_dropped_and_the_search_goes_on():
    pool, _, search = searching(spare("old", verified_at=NOW - HOUR))
    search.next(NOW)
    search.feed(probed("old", ProbeKind.SLOW, 3000.0), NOW + 1000)
    assert isinstance(search.next(NOW + 1000), ProbeThis)
    assert pool.parts.inventory.count(STOCK) == 0


@pytest.mark.parametrize(
    ("kind", "left"),
    [
        (ProbeKind.UNAUTHORIZED, 1),
        (ProbeKind.REJECTED, 1),
        (ProbeKind.LIMIT, 1),
        (ProbeKind.TRANSPORT, 1),
        (ProbeKind.OVERLOADED, 0),
    ],
)
def test_a_stale_spare_that_could_not_be_judged_ends_the_search(kind, left):
    pool, start, search = searching(spare("old", verified_at=NOW - HOUR))
    search.next(NOW)
    search.feed(probed("old", kind, None), NOW + 100)
    end = search.next(NOW + 100)
    assert end == GiveUp(start, kind.value)
    assert pool.parts.inventory.count(STOCK) == left


def test_no_probe_is_started_with_less_than_a_second_and_a_half():
    _, start, search = searching()
    step = search.next(NOW)
    search.feed(probed(step.id, ProbeKind.SLOW, 4000.0), NOW + 4000)
    assert search.next(NOW + 4000) == GiveUp(start, "budget")


def test_a_backoff_that_outlives_the_budget_ends_it_and_a_shorter_one_is_waited_for():
    _, _, search = searching()
    step = search.next(NOW)
    search.feed(probed(step.id, ProbeKind.OVERLOADED, None, retry_after_ms=2000.0), NOW + 500)
    assert search.next(NOW + 500).wait_ms == 2000
    _, start, search = searching()
    step = search.next(NOW)
    search.feed(probed(step.id, ProbeKind.OVERLOADED, None, retry_after_ms=30_000.0), NOW + 500)
    assert search.next(NOW + 500) == GiveUp(start, "budget")


def test_while_probes_are_paused_nobody_waits():
    pool, start, search = searching()
    pool.pause(GO, None, NOW + HOUR, "circuit open")
    assert search.next(NOW) == GiveUp(start, "paused")
    pool, start, search = searching()
    pool.parts.faults.replay_refused((GO, MODEL), NOW)
    assert search.next(NOW) == GiveUp(start, "paused")


def test_a_failed_search_is_not_repeated_for_the_cooldown():
    pool, _, search = searching()
    search.stop("no probe was granted", NOW)
    assert pool.start(wish("c1"), NOW + SECOND).budget_ms == 0
    again = pool.start(wish("c2"), NOW + 61 * SECOND)
    pool.search(again, NOW + 61 * SECOND).stop("x", NOW + 61 * SECOND)
    assert list(pool.parts.cooldown) == ["c2::" + KEY.partition("::")[2]]


def test_a_spare_that_becomes_ready_meanwhile_is_taken():
    pool, _, search = searching()
    pool.parts.inventory.admit(spare("s1"))
    end = search.next(NOW + SECOND)
    assert (end.start.routed_id, end.start.source) == ("s1", Source.SPARE)


def test_a_second_request_of_the_conversation_does_not_search_as_well():
    pool, _, search = searching()
    second = pool.start(wish(), NOW + SECOND)
    assert second.budget_ms == 5000
    assert pool.search(second, NOW + SECOND) is None
    step = search.next(NOW + SECOND)
    search.feed(probed(step.id), NOW + 2 * SECOND)
    assert pool.start(wish(), NOW + 2 * SECOND).routed_id == step.id


def test_a_conversation_that_got_its_id_elsewhere_meanwhile_keeps_that_one():
    pool, _, search = searching()
    step = search.next(NOW)
    pool.parts.bindings.lose(KEY)
    pool.parts.inventory.admit(spare("s1"))
    assert pool.start(wish(), NOW).routed_id == "s1"
    search.feed(probed(step.id), NOW + SECOND)
    assert search.next(NOW + SECOND).start.routed_id == "s1"
    pool, _, search = searching()
    pool.parts.bindings.lose(KEY)
    pool.parts.inventory.admit(spare("s2"))
    pool.start(wish(), NOW)
    assert search.next(NOW).start.routed_id == "s2"


def test_an_abandoned_search_puts_back_the_spare_it_was_verifying():
    pool, start, search = searching(spare("old", verified_at=NOW - HOUR))
    search.next(NOW)
    assert search.stop("client gone", NOW) == GiveUp(start, "client gone")
    assert pool.parts.inventory.count(STOCK) == 1
    search.feed(probed("old"), NOW)
    assert search.stop("again", NOW) == GiveUp(start, "client gone")


def test_no_budget_is_given_when_probes_are_off():
    pool = routes(pool=BUDGETS, probe={"enabled": False})
    assert pool.start(wish(), NOW).budget_ms == 0.0


def test_a_healthy_natural_conversation_never_searches():
    pool, start, search = searching()
    search.stop("x", NOW)
    pool.parts.cooldown.clear()
    pool.observe(start, fast(), NOW)
    assert pool.start(wish(), NOW).budget_ms == 0.0


def test_an_id_found_for_a_conversation_without_any_binding_left_is_bound():
    pool, _, search = searching()
    step = search.next(NOW)
    pool.parts.bindings.lose(KEY)
    search.feed(probed(step.id), NOW + SECOND)
    assert pool.start(wish(), NOW + SECOND).routed_id == step.id
