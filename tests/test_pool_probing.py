"""pool/probing.py"""

import pytest

from pool.model import ProbeKind
from pool.pauses import FAR
from pool.probing import supply, wants
from pool.refill import Supply
from tests.fakes.pool import GO, HOUR, MODEL, NOW, SECOND, STOCK, fast, limited, names, probed, routes, spare, wish

DUE = NOW + 15_000


def anyone(_stock):
    return True


def live(*spares, **sections):
    """A pool whose model is in demand and had a live 2xx."""
    pool = routes(*spares, **sections)
    pool.observe(pool.start(wish(), NOW), fast(), NOW)
    return pool


def cycle(pool, now, kinds, *, latency=800.0):
    """Run the probes of a cycle; how many were sent."""
    kinds = list(kinds)
    sent = 0
    while kinds and (plan := pool.refill_plan(now, anyone)):
        one = plan[0]
        routed_id = one.reverify.id if one.reverify else f"probe-{now}-{sent}"
        pool.admit(one, probed(routed_id, kinds.pop(0), latency), now)
        sent += 1
        now += SECOND
    return sent


def test_probes_fill_the_reserve_up_to_its_size_and_stop():
    pool = live(pool={"adaptive": False})
    assert cycle(pool, DUE, [ProbeKind.FAST] * 9) == 3
    assert pool.parts.inventory.fresh(STOCK, DUE + 9000, 1_800_000) == 3


def test_slow_ids_are_not_admitted_and_the_cycle_is_bounded():
    pool = live()
    assert cycle(pool, DUE, [ProbeKind.SLOW] * 9) == 6
    assert pool.parts.inventory.count(STOCK) == 0


def test_an_idle_daemon_and_a_model_that_never_worked_are_not_probed():
    assert routes().refill_plan(NOW + HOUR, anyone) == []
    pool = routes()
    pool.start(wish(), NOW)
    assert pool.refill_plan(NOW + HOUR, anyone) == []
    assert live().refill_plan(NOW + 2 * HOUR + 1, anyone) == []


@pytest.mark.parametrize("sections", [{"probe": {"enabled": False}}, {"routing": {"mode": "off"}}])
def test_switched_off_means_no_probe(sections):
    pool = live()
    pool.reconfigure(routes(**sections).parts.settings)
    assert pool.refill_plan(DUE, anyone) == []


def test_without_a_credential_there_is_nothing_to_send():
    assert live().refill_plan(DUE, lambda stock: stock.scope == "other") == []


def test_stale_spares_are_verified_again_before_new_ids_are_tried():
    pool = live()
    pool.parts.inventory.admit(spare("old", verified_at=NOW - HOUR))
    one = pool.refill_plan(DUE, anyone)[0]
    assert one.reverify.id == "old"
    pool.admit(one, probed("old", upstream_ms=650.0), DUE)
    assert pool.start(wish("c2"), DUE).routed_id == "old"


@pytest.mark.parametrize(
    ("kind", "left"),
    [
        (ProbeKind.SLOW, 0),
        (ProbeKind.TIMEOUT, 0),
        (ProbeKind.MISMATCH, 0),
        (ProbeKind.OVERLOADED, 0),
        (ProbeKind.LIMIT, 1),
        (ProbeKind.UNAUTHORIZED, 1),
        (ProbeKind.REJECTED, 1),
        (ProbeKind.TRANSPORT, 1),
    ],
)
def test_a_stale_spare_is_dropped_only_when_the_probe_says_something_about_it(kind, left):
    pool = live()
    pool.parts.inventory.admit(spare("old", verified_at=NOW - HOUR))
    pool.admit(pool.refill_plan(DUE, anyone)[0], probed("old", kind, None), DUE)
    assert pool.parts.inventory.count(STOCK) == left


def test_a_spare_that_was_taken_while_it_was_verified_does_not_come_back():
    pool = live()
    pool.parts.inventory.admit(spare("old", verified_at=NOW - HOUR))
    one = pool.refill_plan(DUE, anyone)[0]
    pool.parts.inventory.drop(one.reverify)
    pool.admit(one, probed("old"), DUE)
    assert pool.parts.inventory.count(STOCK) == 0


def test_one_probe_at_a_time_and_provider():
    pool = live()
    pool.observe(pool.start(wish(model="other"), NOW), fast(), NOW)
    pool.observe(pool.start(wish(provider="opencode"), NOW), fast(), NOW)
    plan = pool.refill_plan(DUE, anyone)
    assert [one.stock.provider for one in plan] == ["opencode", "opencode-go"]
    pool.admit(plan[1], probed("x"), DUE)
    assert [one.stock.provider for one in pool.refill_plan(DUE + 749, anyone)] == ["opencode"]
    assert len(pool.refill_plan(DUE + 750, anyone)) == 2


@pytest.mark.parametrize(
    ("kind", "retry", "until", "reason"),
    [
        (ProbeKind.LIMIT, None, DUE + 60_000, "limit"),
        (ProbeKind.LIMIT, 5000.0, DUE + 5000, "limit"),
        (ProbeKind.UNAUTHORIZED, None, FAR, "unauthorized"),
        (ProbeKind.REJECTED, None, DUE + HOUR, "rejected"),
        (ProbeKind.OVERLOADED, 7000.0, DUE + 7000, "retry-after"),
    ],
)
def test_what_a_probe_is_told_is_heeded(kind, retry, until, reason):
    pool = live()
    notes = pool.admit(pool.refill_plan(DUE, anyone)[0], probed("x", kind, None, retry_after_ms=retry), DUE)
    assert names(notes) == ["probe", "probe-dead", "pause"]
    assert pool.parts.pauses.active(GO, "", MODEL, DUE) == (until, reason)
    assert pool.refill_plan(DUE + SECOND, anyone) == []


def test_an_overload_without_a_window_and_a_repeated_pause_say_nothing_more():
    pool = live()
    one = pool.refill_plan(DUE, anyone)[0]
    assert names(pool.admit(one, probed("x", ProbeKind.OVERLOADED, None), DUE)) == ["probe", "probe-dead"]
    assert names(pool.admit(one, probed("y", ProbeKind.LIMIT, None), DUE)) == ["probe", "probe-dead", "pause"]
    assert names(pool.admit(one, probed("z", ProbeKind.LIMIT, None), DUE)) == ["probe", "probe-dead"]


def test_a_live_limit_and_a_gateway_at_fault_pause_probes():
    pool = live()
    pool.observe(pool.start(wish(), NOW), limited(pause_ms=HOUR), NOW)
    assert pool.refill_plan(DUE, anyone) == []
    pool = live()
    pool.parts.faults.replay_refused((GO, MODEL), DUE)
    assert pool.refill_plan(DUE + SECOND, anyone) == []
    assert pool.refill_plan(DUE + 60_000, anyone) != []


def test_a_refused_probe_goes_on_after_a_reload():
    pool = live()
    pool.admit(pool.refill_plan(DUE, anyone)[0], probed("x", ProbeKind.UNAUTHORIZED, None), DUE)
    pool.reconfigure(pool.parts.settings, shared_key=True, now=DUE)
    assert pool.refill_plan(DUE + HOUR, anyone) != []


def test_when_the_hour_is_spent_probes_wait_a_minute():
    pool = live()
    assert names(pool.capped(GO, DUE)) == ["pause"]
    assert pool.capped(GO, DUE) == []
    assert pool.refill_plan(DUE + 59_999, anyone) == []
    assert pool.refill_plan(DUE + 60_000, anyone) != []


def test_after_a_disturbance_spares_are_stale_and_nothing_is_probed_for_fifteen_seconds():
    pool = live(spare("s0"))
    pool.parts.inventory.admit(spare("s1"))
    assert names(pool.disturbed(DUE)) == ["disturbed"]
    assert pool.start(wish("c2"), DUE).routed_id == "natural-c2"
    assert pool.refill_plan(DUE + 14_999, anyone) == []
    assert pool.refill_plan(DUE + 15_000, anyone)[0].reverify.id == "s1"


def test_what_serves_anyone_counts_for_a_scope_of_its_own():
    mine = spare("s2", stock=STOCK._replace(scope="me"))
    pool = routes(spare("s1"), mine, shared_key=False, pool={"adaptive": False})
    mine = STOCK._replace(scope="me")
    assert supply(pool.parts, mine, NOW) == Supply(2, 0, 3)
    assert supply(pool.parts, STOCK, NOW) == Supply(1, 0, 3)


def test_what_lies_free_in_the_store_is_wanted_before_anything_is_probed():
    pool = routes(shared_key=False)
    pool.start(wish(scope="me"), NOW)
    pool.parts.inventory.admit(spare("s1"))
    mine = STOCK._replace(scope="me")
    assert wants(pool.parts, NOW) == [(STOCK, 2), (mine, 3)]


def test_a_full_reserve_wants_nothing_from_the_store():
    pool = routes(*[spare(f"s{n}") for n in range(4)])
    pool.start(wish(), NOW)
    assert wants(pool.parts, NOW) == []


def test_probes_can_be_switched_off_for_one_model():
    pool = live(models={MODEL: {"enabled": False}})
    assert pool.refill_plan(DUE, anyone) == []
