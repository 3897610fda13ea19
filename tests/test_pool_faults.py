"""pool/faults.py"""

from pool.faults import Faults
from pool.model import ModelKey
from tests.fakes.pool import GO, MODEL, NOW, SECOND

KEY = ModelKey(GO, MODEL)


def test_three_different_ids_within_a_minute_are_the_gateways_fault():
    faults = Faults()
    assert [faults.saw(KEY, name, NOW + at) for name, at in (("a", 0), ("b", 10), ("c", 59_999))] == [
        False,
        False,
        True,
    ]


def test_the_same_id_three_times_is_not():
    faults = Faults()
    assert not any(faults.saw(KEY, "a", NOW + at) for at in range(5))


def test_it_passes_when_the_minute_has_passed():
    faults = Faults()
    for at, name in enumerate("abc"):
        faults.saw(KEY, name, NOW + at * SECOND)
    assert faults.until(KEY, NOW + 2 * SECOND) == NOW + 60_000
    assert faults.until(KEY, NOW + 60_000) is None
    assert not faults.saw(KEY, "d", NOW + 61_500)


def test_spread_over_more_than_a_minute_they_are_single_routes():
    faults = Faults()
    assert not any(faults.saw(KEY, str(n), NOW + n * 31_000) for n in range(10))


def test_a_replay_that_is_refused_too_is_enough():
    faults = Faults()
    faults.replay_refused(KEY, NOW)
    assert faults.models(NOW + 1) == {KEY: NOW + 60_000}
    assert faults.models(NOW + 60_000) == {}


def test_three_bad_ids_are_their_own_fault_while_others_are_served_well():
    faults = Faults()
    for at, name in enumerate("abc"):
        sent = NOW + at * SECOND
        faults.served(KEY, sent + 5 * SECOND)
        assert not faults.saw(KEY, name, sent + 30 * SECOND, sent)


def test_a_good_answer_before_the_bad_ones_were_sent_is_no_excuse():
    faults = Faults()
    faults.served(KEY, NOW)
    assert [faults.saw(KEY, name, NOW + SECOND) for name in "abc"] == [False, False, True]


def test_a_fault_stays_unproven_until_somebody_is_served_well_or_an_hour_has_passed():
    faults = Faults()
    assert not faults.unproven(KEY, NOW)
    faults.replay_refused(KEY, NOW)
    assert faults.unproven(KEY, NOW + 5 * 60_000)
    assert not faults.unproven(KEY, NOW + 3_600_000)
    faults.served(KEY, NOW + 6 * 60_000)
    assert not faults.unproven(KEY, NOW + 7 * 60_000)


def test_one_model_says_nothing_about_another():
    faults = Faults()
    faults.replay_refused(KEY, NOW)
    assert faults.until(ModelKey(GO, "other"), NOW) is None


def test_a_clock_that_stepped_back_does_not_prolong_it():
    faults = Faults()
    faults.replay_refused(KEY, NOW)
    assert faults.until(KEY, NOW - 3_600_000) is None


def test_its_memory_is_bounded():
    faults = Faults()
    for number in range(1000):
        faults.saw(KEY, str(number), NOW)
    assert len(faults._bad[KEY]) == 64
