"""pool/routes.py and pool/view.py"""

import orjson

from pool.model import ModelKey, Source
from tests.fakes.pool import (
    GO,
    HOUR,
    MINUTE,
    MODEL,
    NOW,
    STOCK,
    fast,
    names,
    probed,
    refused,
    routes,
    slow,
    spare,
    wish,
)


def test_a_parents_route_is_known_by_conversation_provider_and_model():
    pool = routes(spare("s1"), spare("o1", stock=STOCK._replace(model="other")))
    assert pool.route_of("c1", GO, MODEL) is None
    assert pool.route_of("c1", GO, None) is None
    pool.start(wish(), NOW)
    pool.start(wish(model="other"), NOW + 1)
    assert pool.route_of("c1", GO, MODEL) == "s1"
    assert pool.route_of("c1", GO, None) == "o1"
    assert pool.route_of("c1", "opencode", None) is None


def test_the_route_of_a_conversation_on_a_clients_value_is_that_value():
    pool = routes()
    one = wish(minted=False, value="client-value")
    pool.observe(pool.start(one, NOW), fast(), NOW)
    assert pool.route_of("c1", GO, MODEL) == "client-value"
    assert pool.natural_holder(one.natural.digest) == "c1"
    assert pool.natural_holder("0" * 16) is None


def test_repinning_one_conversation_leaves_the_others_alone():
    pool = routes(spare("s1"), spare("s2"))
    pool.start(wish("c1"), NOW)
    pool.start(wish("c2"), NOW)
    assert names(pool.repin("c1", NOW)) == ["repin"]
    assert pool.start(wish("c1"), NOW).routed_id == "natural-c1"
    assert pool.start(wish("c2"), NOW).routed_id == "s2"
    assert names(pool.repin(None, NOW)) == ["repin", "repin"]
    assert pool.repin("nobody", NOW) == []


def test_repinning_a_conversation_on_its_natural_id_moves_it_to_the_next_spare():
    pool = routes()
    pool.observe(pool.start(wish(), NOW), fast(), NOW)
    pool.repin("c1", NOW)
    assert pool.start(wish(), NOW).source is Source.NATURAL
    pool.parts.inventory.admit(spare("s1"))
    start = pool.start(wish(), NOW)
    assert (start.routed_id, start.source) == ("s1", Source.REPIN)


def test_a_pause_for_a_reason_of_its_own_can_be_ended_by_it():
    pool = routes()
    pool.pause(GO, None, NOW + MINUTE, "circuit open")
    assert pool.paused(GO, None, NOW) == (NOW + MINUTE, "circuit open")
    pool.resume(GO, "circuit open")
    assert pool.paused(GO, None, NOW) is None


def test_a_command_refreshes_everything_in_demand():
    pool = routes()
    pool.observe(pool.start(wish(), NOW), fast(), NOW)
    assert pool.refresh(NOW) == 1
    assert len(pool.refill_plan(NOW, lambda _: True)) == 1


def test_the_view_tells_pools_bindings_and_pauses_and_no_id():
    spares = [spare("spare-id-1"), spare("spare-id-2", verified_at=NOW - HOUR), spare("spare-id-3")]
    pool = routes(*spares, pool={"adaptive": False})
    first = pool.start(wish(), NOW)
    pool.observe(first, fast(), NOW)
    pool.observe(pool.start(wish("c2", minted=False, value="client-secret"), NOW), refused(), NOW)
    pool.pause(GO, None, NOW + MINUTE, "limit")
    pool.parts.faults.replay_refused(ModelKey(GO, MODEL), NOW)
    seen = pool.view(NOW)
    text = orjson.dumps(seen).decode()
    assert "spare-id" not in text
    assert "client-secret" not in text
    pools = seen["pools"]
    assert [(p["model"], p["fresh"], p["stale"], p["target"], p["bound"], p["live"]) for p in pools] == [
        (MODEL, 0, 1, 3, 1, True)
    ]
    assert seen["bindings"][0]["conversation"] == "c1"
    assert [one["reason"] for one in seen["pauses"]] == ["limit"]
    assert len(seen["faults"]) == 1


def test_the_view_of_a_disturbed_pool_says_that_the_age_is_unknown():
    pool = routes(spare("s1"))
    pool.disturbed(NOW)
    assert pool.view(NOW)["pools"][0]["ids"][0]["age_ms"] is None


def test_a_conversation_whose_client_value_is_not_back_yet_has_no_id_to_show():
    pool = routes()
    pool.observe(pool.start(wish(minted=False, value="v"), NOW), slow(), NOW)
    next(iter(pool.parts.bindings)).value = None
    assert pool.view(NOW)["bindings"][0]["id"] is None


def test_probing_shows_in_the_view():
    pool = routes()
    pool.observe(pool.start(wish(), NOW), fast(), NOW)
    one = pool.refill_plan(NOW + 15_000, lambda _: True)[0]
    pool.admit(one, probed("x"), NOW + 15_000)
    demand = pool.view(NOW + 15_000)["pools"][0]["demand"][0]
    assert (demand["probing"], demand["attempts"], demand["admitted"]) == (True, 1, 1)
