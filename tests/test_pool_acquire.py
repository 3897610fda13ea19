"""pool/acquire.py"""

import pytest

from pool.model import ModelKey, Shape, Source
from pool.policy import Regime
from tests.fakes.pool import GO, HOUR, MINUTE, MODEL, NOW, SECOND, STOCK, fast, names, routes, slow, spare, wish


def test_a_new_conversation_starts_on_a_fresh_spare():
    pool = routes(spare("s1"))
    start = pool.start(wish(), NOW)
    assert (start.routed_id, start.source, start.bound, start.first_turn) == ("s1", Source.SPARE, True, True)
    assert names(pool.notes()) == ["take", "pin"]
    assert pool.notes() == []


def test_a_bound_conversation_keeps_its_id():
    pool = routes(spare("s1"), spare("s2"))
    first = pool.start(wish(), NOW)
    pool.observe(first, fast(), NOW)
    again = pool.start(wish(), NOW + MINUTE)
    assert (again.routed_id, again.source, again.first_turn) == ("s1", Source.SPARE, False)


def test_two_conversations_never_share_a_spare():
    pool = routes(spare("s1"))
    assert pool.start(wish("c1"), NOW).routed_id == "s1"
    assert pool.start(wish("c2"), NOW).routed_id == "natural-c2"


def test_ids_are_owned_per_model():
    pool = routes(spare("s1"), spare("o1", stock=STOCK._replace(model="other")))
    assert pool.start(wish(), NOW).routed_id == "s1"
    assert pool.start(wish(model="other"), NOW).routed_id == "o1"


def test_without_a_fresh_spare_it_starts_on_its_natural_id_and_waits_for_nothing():
    pool = routes(spare(verified_at=NOW - HOUR))
    start = pool.start(wish(), NOW)
    assert (start.routed_id, start.source, start.bound, start.budget_ms) == ("natural-c1", Source.NATURAL, False, 0.0)
    assert pool.parts.inventory.count(STOCK) == 1


def test_a_healthy_natural_start_stays_there_although_spares_are_ready():
    pool = routes()
    pool.observe(pool.start(wish(), NOW), fast(), NOW)
    pool.parts.inventory.admit(spare("s1"))
    start = pool.start(wish(), NOW + MINUTE)
    assert (start.routed_id, start.source, start.bound) == ("natural-c1", Source.NATURAL, True)


def test_a_slow_natural_start_is_left_for_a_spare_at_its_next_turn():
    pool = routes()
    notes = pool.observe(pool.start(wish(), NOW), slow(), NOW)
    assert names(notes) == ["mark"]
    pool.parts.inventory.admit(spare("s1"))
    start = pool.start(wish(), NOW + MINUTE)
    assert (start.routed_id, start.source, start.first_turn) == ("s1", Source.SPARE, True)


def test_a_marked_natural_id_goes_on_while_no_spare_is_ready():
    pool = routes()
    pool.observe(pool.start(wish(), NOW), slow(), NOW)
    start = pool.start(wish(), NOW + MINUTE)
    assert (start.routed_id, start.source, start.bound) == ("natural-c1", Source.NATURAL, True)


def test_a_marked_natural_id_is_not_left_while_the_gateway_is_at_fault():
    pool = routes()
    pool.observe(pool.start(wish(), NOW), slow(), NOW)
    pool.parts.inventory.admit(spare("s1"))
    pool.parts.faults.replay_refused((wish().provider, MODEL), NOW)
    assert pool.start(wish(), NOW + SECOND).source is Source.NATURAL
    assert pool.start(wish(), NOW + MINUTE).routed_id == "s1"


def test_a_second_request_while_the_first_natural_one_is_under_way_goes_the_same_way():
    pool = routes()
    pool.start(wish(), NOW)
    pool.parts.inventory.admit(spare("s1"))
    assert pool.start(wish(), NOW + SECOND).routed_id == "natural-c1"


def test_an_idle_binding_expires_and_the_conversation_picks_again():
    pool = routes(spare("s1"))
    pool.observe(pool.start(wish(), NOW), fast(), NOW)
    later = NOW + 8 * HOUR + 1
    start = pool.start(wish(), later)
    assert (start.routed_id, start.source) == ("natural-c1", Source.NATURAL)
    assert pool.parts.bindings.is_retired("s1")
    assert names(pool.notes()) == ["take", "pin", "expire", "natural"]


def test_an_id_that_takes_the_place_of_a_routed_one_is_a_repin():
    pool = routes(spare("s1"))
    pool.observe(pool.start(wish(), NOW), fast(), NOW)
    pool.repin("c1", NOW)
    pool.parts.inventory.admit(spare("s2"))
    assert pool.start(wish(), NOW).source is Source.REPIN


def test_a_side_call_goes_where_its_conversation_is_and_takes_nothing():
    pool = routes(spare("s1"), spare("t1", stock=STOCK._replace(model="titles")))
    pool.start(wish(), NOW)
    side = pool.start(wish(model="titles", turn=False), NOW)
    assert (side.routed_id, side.source) == ("s1", Source.SPARE)
    alone = pool.start(wish("c2", turn=False), NOW)
    assert (alone.routed_id, alone.source, alone.bound) == ("natural-c2", Source.NATURAL, False)
    assert pool.parts.inventory.count(STOCK._replace(model="titles")) == 1


def test_a_request_without_a_model_goes_on_its_natural_id():
    pool = routes(spare("s1"))
    assert pool.start(wish(model=""), NOW).source is Source.NATURAL
    assert pool.wants(NOW) == []


@pytest.mark.parametrize("routing", [{"mode": "off"}, {"models": ["other"]}])
def test_what_is_not_routed_is_left_alone(routing):
    pool = routes(spare("s1"), routing=routing)
    start = pool.start(wish(), NOW)
    assert (start.routed_id, start.source) == ("natural-c1", Source.NONE)
    assert pool.observe(start, slow(), NOW) == []
    assert pool.replace(start, NOW) is None
    assert len(pool.parts.bindings) == 0


def test_observing_decides_and_spends_nothing():
    pool = routes(spare("s1"), routing={"mode": "observe"})
    starts = [pool.start(wish(name), NOW) for name in ("c1", "c2")]
    assert [(s.routed_id, s.source, s.bound) for s in starts] == [("s1", Source.SPARE, False)] * 2
    assert len(pool.parts.bindings) == 0
    pool.observe(starts[0], slow(), NOW)
    assert pool.parts.inventory.count(STOCK) == 1
    assert routes(routing={"mode": "observe"}).start(wish(), NOW).source is Source.NATURAL


def test_a_client_that_names_its_conversation_by_another_value_after_a_restart_starts_again():
    pool = routes()
    first = wish(minted=False, value="client-value")
    pool.observe(pool.start(first, NOW), fast(), NOW)
    pool.parts.bindings.get("c1::opencode-go::" + MODEL).value = None
    start = pool.start(wish(minted=False, value="another"), NOW)
    assert (start.routed_id, start.source) == ("another", Source.NATURAL)


def test_the_id_has_the_shape_its_client_expects():
    pool = routes(spare("u1"), spare("ses_x", stock=STOCK._replace(shape=Shape.SES)))
    assert pool.start(wish(shape=Shape.SES), NOW).routed_id == "ses_x"


def test_evictions_are_told():
    pool = routes(spare("s1"), spare("s2"), binding={"max_count": 1})
    pool.start(wish("c1"), NOW)
    pool.start(wish("c2"), NOW + 1)
    assert names(pool.notes()) == ["take", "pin", "evict", "take", "pin"]
    assert pool.start(wish("c1"), NOW + 2).routed_id == "natural-c1"


def test_taking_and_missing_a_spare_are_demand_and_a_bound_turn_is_none():
    pool = routes(spare("s1"))
    pool.start(wish(), NOW)
    pool.start(wish(), NOW + HOUR)
    assert pool.parts.refill.in_demand(NOW + 2 * HOUR) == [STOCK]
    assert pool.parts.refill.in_demand(NOW + 2 * HOUR + 1) == []


@pytest.mark.parametrize("mode", ["route", "observe"])
def test_where_every_request_is_balanced_conversations_start_on_their_natural_ids(mode):
    pool = routes(spare("s1"), routing={"mode": mode})
    pool.parts.policies.believe(ModelKey(GO, MODEL), Regime.BALANCED)
    assert pool.start(wish(), NOW).source is Source.NATURAL
    assert pool.wants(NOW) == []


def test_a_search_that_was_abandoned_without_a_word_does_not_hold_budgets_back_for_ever():
    pool = routes(pool={"startup_budget_ms": 2000, "request_budget_ms": 1000})
    start = pool.start(wish(), NOW)
    pool.search(start, NOW)
    assert pool.start(wish(), NOW + 500).budget_ms == 1500
    pool.observe(start, slow(), NOW + 3000)
    assert pool.start(wish(), NOW + 3000).budget_ms == 1000


def test_decisions_that_nobody_asks_for_cost_bounded_memory():
    pool = routes()
    for number in range(2000):
        pool.start(wish(f"c{number}"), NOW)
    assert len(pool.notes()) == 1024
