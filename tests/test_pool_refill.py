"""pool/refill.py"""

import pytest

from pool.model import ModelKey, ProbeKind
from pool.refill import Cycle, Refill, Step, Supply, is_due, next_step
from tests.fakes.pool import GO, HOUR, MINUTE, MODEL, NOW, SECOND, STOCK, settings

POOL = settings().pool
KEY = ModelKey(GO, MODEL)
EMPTY = Supply(fresh=0, stale=0, target=3)


def cycle(**facts) -> Cycle:
    return Cycle(**({"demand_at": NOW, "next_at": None, "eager_at": None, "interval_ms": 300_000} | facts))


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        ({}, False),
        ({"next_at": NOW}, True),
        ({"next_at": NOW + 1}, False),
        ({"eager_at": NOW}, True),
        ({"eager_at": NOW, "not_before": NOW + 1}, False),
        ({"eager_at": NOW, "not_before": NOW + 1, "next_at": NOW}, True),
    ],
)
def test_when_a_cycle_begins(facts, due):
    assert is_due(cycle(**facts), NOW) is due


@pytest.mark.parametrize(
    ("facts", "supply", "step"),
    [
        ({}, EMPTY, Step.WAIT),
        ({"next_at": NOW}, EMPTY, Step.PROBE),
        ({"next_at": NOW}, Supply(3, 0, 3), Step.END),
        ({"next_at": NOW}, Supply(4, 2, 3), Step.END),
        ({"next_at": NOW}, Supply(2, 1, 3), Step.PROBE),
        ({"running": True, "attempts": 5}, EMPTY, Step.PROBE),
        ({"running": True, "attempts": 6}, EMPTY, Step.END),
        ({"next_at": NOW}, Supply(0, 0, 0), Step.END),
    ],
)
def test_what_a_cycle_does_next(facts, supply, step):
    assert next_step(cycle(**facts), supply, POOL, NOW) is step


def run(refill, now, kinds, supply=EMPTY):
    """Probes of one cycle, as long as it wants any."""
    sent = 0
    for kind in kinds:
        if refill.step(STOCK, supply, now) is not Step.PROBE:
            break
        refill.result(STOCK, kind, now)
        sent += 1
    return sent


def test_a_taken_spare_is_replaced_after_the_delay_not_before():
    refill = Refill(POOL)
    refill.demanded(STOCK, NOW)
    assert refill.step(STOCK, EMPTY, NOW + 14_999) is Step.WAIT
    assert refill.step(STOCK, EMPTY, NOW + 15_000) is Step.PROBE


def test_later_takes_do_not_put_it_off():
    refill = Refill(POOL)
    refill.demanded(STOCK, NOW)
    refill.demanded(STOCK, NOW + 14 * SECOND)
    assert refill.step(STOCK, EMPTY, NOW + 15_000) is Step.PROBE


def test_a_delay_of_zero_leaves_it_to_the_refresh():
    refill = Refill(settings(pool={"refill_delay_ms": 0}).pool)
    refill.demanded(STOCK, NOW)
    assert refill.step(STOCK, EMPTY, NOW + 299_999) is Step.WAIT
    assert refill.step(STOCK, EMPTY, NOW + 300_000) is Step.PROBE


def test_an_interval_of_zero_turns_the_timer_off_but_not_the_refill():
    refill = Refill(settings(pool={"refresh_interval_ms": 0}).pool)
    refill.demanded(STOCK, NOW)
    assert run(refill, NOW + 15_000, [ProbeKind.FAST] * 9) == 6
    assert refill.step(STOCK, EMPTY, NOW + 24 * HOUR) is Step.WAIT
    refill.demanded(STOCK, NOW + 24 * HOUR)
    assert refill.step(STOCK, EMPTY, NOW + 24 * HOUR + 15_000) is Step.PROBE


def test_a_cycle_sends_at_most_twice_the_size():
    refill = Refill(POOL)
    refill.demanded(STOCK, NOW)
    assert run(refill, NOW + 15_000, [ProbeKind.SLOW] * 20) == 6


@pytest.mark.parametrize(
    "kind",
    [
        ProbeKind.TRANSPORT,
        ProbeKind.LIMIT,
        ProbeKind.UNAUTHORIZED,
        ProbeKind.REJECTED,
    ],
)
def test_a_cycle_stops_at_what_more_probes_cannot_mend(kind):
    refill = Refill(POOL)
    refill.demanded(STOCK, NOW)
    assert run(refill, NOW + 15_000, [ProbeKind.FAST, kind, ProbeKind.FAST]) == 2


def test_an_overloaded_probe_is_its_own_ids_no_and_the_cycle_goes_on():
    refill = Refill(POOL)
    refill.demanded(STOCK, NOW)
    assert run(refill, NOW + 15_000, [ProbeKind.OVERLOADED] * 2 + [ProbeKind.FAST] * 4) == 6


def test_cycles_without_an_admission_double_the_interval_up_to_an_hour_and_one_admission_resets_it():
    refill = Refill(settings(pool={"refill_delay_ms": 0}).pool)  # nobody but the timer begins one
    now = NOW
    refill.demanded(STOCK, now)
    now += 300_000
    waits = []
    for _ in range(6):
        assert run(refill, now, [ProbeKind.SLOW] * 6) == 6
        refill.demanded(STOCK, now)
        wait = refill.view(now)[STOCK].next_at - now
        assert refill.step(STOCK, EMPTY, now + wait - 1) is Step.WAIT
        waits.append(wait // MINUTE)
        now += wait
    assert waits == [10, 20, 40, 60, 60, 60]
    assert run(refill, now, [ProbeKind.SLOW, ProbeKind.FAST, *[ProbeKind.SLOW] * 4]) == 6
    assert refill.view(now)[STOCK].interval_ms == 300_000


def waits_of_the_needy(kinds, cycles=9):
    """How long a conversation without a spare waits after each cycle that found these, in seconds."""
    refill = Refill(POOL)
    now, waits = NOW + 15_000, []
    refill.demanded(STOCK, NOW)
    for _ in range(cycles):
        run(refill, now, kinds)
        since = now
        while refill.step(STOCK, EMPTY, now) is Step.WAIT:
            now += SECOND
            refill.demanded(STOCK, now)
        waits.append((now - since) // SECOND)
    return waits


def test_only_slow_ids_may_be_chance_so_that_who_lacks_a_spare_waits_less_than_the_timer():
    """With half of the ids slow, one cycle in 64 meets nothing else; the next id may be a good one."""
    for kind in (ProbeKind.SLOW, ProbeKind.TIMEOUT, ProbeKind.MISMATCH):
        assert waits_of_the_needy([kind] * 6) == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_a_good_id_makes_the_wait_short_again():
    refill = Refill(POOL)
    refill.demanded(STOCK, NOW)
    now = NOW + 15_000
    for kinds, hold_ms in (
        ([ProbeKind.SLOW] * 6, 30_000),
        ([ProbeKind.SLOW] * 6, 60_000),
        ([ProbeKind.FAST] * 6, 0),
        ([ProbeKind.SLOW] * 6, 30_000),
    ):
        refill.demanded(STOCK, now)
        now += HOUR
        run(refill, now, kinds)
        assert refill.view(now)[STOCK].hold_ms == hold_ms


@pytest.mark.parametrize("kind", [ProbeKind.TRANSPORT, ProbeKind.OVERLOADED, ProbeKind.REJECTED, ProbeKind.LIMIT])
def test_a_gateway_that_refuses_is_not_asked_sooner_for_anybody(kind):
    """The double of five minutes at once, and so on."""
    assert waits_of_the_needy([ProbeKind.SLOW, *[kind] * 5], 4) == [600, 1200, 2400, 3600]


def test_a_full_reserve_ends_a_cycle_without_a_probe():
    refill = Refill(POOL)
    refill.demanded(STOCK, NOW)
    assert refill.step(STOCK, Supply(3, 0, 3), NOW + 15_000) is Step.END
    assert refill.view(NOW)[STOCK].next_at == NOW + 315_000


def test_two_hours_without_demand_and_a_stock_is_left_alone():
    refill = Refill(POOL)
    refill.demanded(STOCK, NOW)
    assert refill.in_demand(NOW + 2 * HOUR) == [STOCK]
    assert refill.in_demand(NOW + 2 * HOUR + 1) == []


def test_a_model_is_live_for_two_hours_after_a_success():
    refill = Refill(POOL)
    assert not refill.is_live(KEY, NOW)
    refill.answered_at[KEY] = NOW
    assert refill.is_live(KEY, NOW + 2 * HOUR)
    assert not refill.is_live(KEY, NOW + 2 * HOUR + 1)


def test_probes_to_one_provider_keep_their_distance():
    refill = Refill(POOL)
    assert refill.may_probe(GO, 750, NOW)
    assert refill.ready_at(GO, 750) == 0
    refill.probed(GO, NOW)
    assert not refill.may_probe(GO, 750, NOW + 749)
    assert refill.may_probe(GO, 750, NOW + 750)
    assert refill.may_probe("opencode", 750, NOW)
    assert refill.ready_at(GO, 750) == NOW + 750
    assert refill.may_probe(GO, 750, NOW - HOUR)


def test_a_command_begins_a_cycle_at_once():
    refill = Refill(POOL)
    refill.demanded(STOCK, NOW)
    assert refill.hurry(NOW) == 1
    assert refill.step(STOCK, EMPTY, NOW) is Step.PROBE


def test_no_stock_starves_behind_another():
    refill = Refill(POOL)
    other = STOCK._replace(model="other")
    for stock in (STOCK, other):
        refill.demanded(stock, NOW)
        refill.step(stock, EMPTY, NOW + 15_000)
    refill.result(STOCK, ProbeKind.FAST, NOW + 15_000)
    assert refill.least_recent([STOCK, other]) == [other, STOCK]


def test_results_of_unknown_stocks_and_stopped_cycles_change_nothing():
    refill = Refill(POOL)
    refill.result(STOCK, ProbeKind.FAST, NOW)
    refill.demanded(STOCK, NOW)
    refill.result(STOCK, ProbeKind.FAST, NOW)
    assert refill.view(NOW)[STOCK].attempts == 0


def test_other_settings_start_every_interval_over():
    refill = Refill(POOL)
    refill.demanded(STOCK, NOW)
    run(refill, NOW + 15_000, [ProbeKind.SLOW] * 6)
    refill.reconfigure(settings(pool={"refresh_interval_ms": 60_000}).pool, NOW + 15_000)
    assert refill.view(NOW)[STOCK].next_at == NOW + 75_000
    refill.reconfigure(settings(pool={"refresh_interval_ms": 0}).pool)
    assert refill.view(NOW)[STOCK].next_at is None


def test_a_take_while_a_cycle_runs_is_answered_by_another_cycle():
    refill = Refill(POOL)
    refill.demanded(STOCK, NOW)
    assert refill.step(STOCK, EMPTY, NOW + 15_000) is Step.PROBE
    refill.result(STOCK, ProbeKind.FAST, NOW + 15_000)
    refill.demanded(STOCK, NOW + 16_000)
    refill.result(STOCK, ProbeKind.TRANSPORT, NOW + 17_000)
    assert refill.step(STOCK, EMPTY, NOW + 30_999) is Step.WAIT
    assert refill.step(STOCK, EMPTY, NOW + 31_000) is Step.PROBE
