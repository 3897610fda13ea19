"""pool/outbox.py"""

from pool.outbox import Outbox
from tests.fakes.pool import NOW


def test_decisions_are_written_soon_and_together():
    outbox = Outbox()
    outbox.bind("a", NOW)
    outbox.retire("b", "id", NOW + 200)
    assert not outbox.due(NOW + 249)
    assert outbox.due(NOW + 250)
    taken = outbox.collect()
    assert taken["a"].bind
    assert taken["b"].retire == {"id": NOW + 200}
    assert not outbox.due(NOW + 10_000)


def test_what_was_measured_is_written_soon_too():
    outbox = Outbox()
    outbox.touch("a", NOW)
    assert outbox.due(NOW + 250)
    assert outbox.collect()["a"].touch


def test_a_clock_that_stepped_back_holds_nothing_up():
    outbox = Outbox()
    outbox.bind("a", NOW)
    assert outbox.due(NOW - 60_000)


def test_dropping_a_binding_cancels_what_was_to_be_written_of_it():
    outbox = Outbox()
    outbox.bind("a", NOW)
    outbox.forget("a", "id", NOW)
    pending = outbox.collect()["a"]
    assert (pending.bind, pending.touch, pending.forget) == (False, False, {"id"})


def test_what_could_not_be_written_waits_again_with_what_came_since():
    outbox = Outbox()
    outbox.bind("kept", NOW)
    outbox.bind("gone", NOW)
    outbox.retire("twice", "one", NOW)
    taken = outbox.collect()
    outbox.retire("gone", "id", NOW + 1)
    outbox.retire("twice", "two", NOW + 1)
    outbox.put_back(taken, NOW + 2)
    pending = outbox.collect()
    assert pending["kept"].bind
    assert not pending["gone"].bind
    assert pending["twice"].retire == {"one": NOW, "two": NOW + 1}


def test_a_state_that_can_never_be_written_costs_bounded_memory():
    outbox = Outbox()
    for number in range(9_000):
        outbox.retire(str(number), "id", NOW)
    outbox.put_back(outbox.collect(), NOW)
    assert len(outbox.pending) == 8192


def test_putting_nothing_back_presses_nothing():
    outbox = Outbox()
    outbox.put_back({}, NOW)
    assert not outbox.due(NOW + 10_000)
