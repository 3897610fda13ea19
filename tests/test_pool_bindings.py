"""pool/bindings.py"""

import pytest

from pool.bindings import Bindings, stored_id, wire_id
from pool.ids import id_digest
from pool.model import Binding, Natural, Source, binding_key
from tests.fakes.pool import GO, HOUR, MINUTE, MODEL, NOW, settings


def binding(conversation="c1", routed_id="r1", *, source=Source.SPARE, at=NOW, **facts) -> Binding:
    return Binding(binding_key(conversation, GO, MODEL), GO, MODEL, routed_id, source, at, at, **facts)


def table(**sections) -> Bindings:
    return Bindings(settings(**sections))


def test_a_clients_own_value_is_held_as_its_digest_and_a_minted_one_as_it_is():
    assert stored_id(Natural("secret", minted=False, digest="abc")) == "digest:abc"
    assert stored_id(Natural("minted", minted=True, digest="abc")) == "minted"


def test_a_clients_value_comes_back_with_the_next_request_that_sends_it():
    one = binding(routed_id="digest:abc", source=Source.NATURAL)
    assert wire_id(one) is None
    assert wire_id(one, Natural("other", minted=False, digest="xyz")) is None
    assert wire_id(one, Natural("secret", minted=False, digest="abc")) == "secret"
    assert wire_id(one) == "secret"


@pytest.mark.parametrize(
    ("facts", "alive"),
    [
        ({}, True),
        ({"at": NOW - 8 * HOUR}, True),
        ({"at": NOW - 8 * HOUR - 1}, False),
        ({"failures": 1}, True),
        ({"failures": 2}, False),
        ({"failures": 2, "source": Source.NATURAL}, True),
    ],
)
def test_a_binding_lives_for_its_lease_and_until_it_is_struck_out(facts, alive):
    assert table().is_alive(binding(**facts), NOW) is alive


def test_a_retired_id_is_remembered_and_its_key_told():
    bindings = table()
    one = binding()
    bindings.put(one, NOW)
    bindings.retire(one, NOW)
    assert bindings.get(one.key) is None
    assert bindings.is_retired("r1")
    assert not bindings.is_retired("r2")
    assert bindings.had_route(one.key)
    assert bindings.outbox.pending[one.key].retire == {"r1": NOW}


def test_a_natural_binding_counts_and_is_written_from_its_second_turn_on():
    bindings = table()
    one = binding(source=Source.NATURAL)
    bindings.put(one, NOW)
    bindings.touch(one, NOW)
    assert bindings.durable() == []
    assert not bindings.outbox.pending
    bindings.keep(one, NOW)
    bindings.keep(one, NOW)
    assert bindings.durable() == [one]
    assert bindings.outbox.pending[one.key].bind


def told(bindings: Bindings) -> bool:
    """Was something of c1's binding to be written?"""
    return binding_key("c1", GO, MODEL) in bindings.outbox.collect()


def test_what_was_measured_is_written_at_most_every_five_seconds():
    bindings, one = table(), binding()
    bindings.mirror(one)
    bindings.touch(one, NOW)
    assert told(bindings)
    bindings.touch(one, NOW + 4_999)
    assert not told(bindings)
    bindings.touch(one, NOW + 5_000)
    assert told(bindings)


def test_what_was_bound_just_now_is_not_written_again_for_what_was_measured():
    bindings, one = table(), binding()
    bindings.put(one, NOW)
    assert told(bindings)
    bindings.touch(one, NOW + 4_999)
    assert not told(bindings)


def test_a_decision_about_a_binding_is_not_held_back():
    bindings, one = table(), binding()
    bindings.mirror(one)
    bindings.touch(one, NOW)
    assert told(bindings)
    bindings.touch(one, NOW + 1, pressing=True)
    assert told(bindings)


def test_a_clock_that_stepped_back_holds_nothing_up():
    bindings, one = table(), binding()
    bindings.put(one, NOW)
    assert told(bindings)
    bindings.touch(one, NOW - MINUTE)
    assert told(bindings)


def test_a_natural_binding_that_was_never_written_is_forgotten_without_a_word():
    bindings = table()
    one = binding(source=Source.NATURAL)
    bindings.put(one, NOW)
    bindings.forget(one, NOW)
    assert not bindings.outbox.pending


def test_without_persistence_nothing_is_to_be_written():
    bindings = table(binding={"persist": False})
    one, two = binding(), binding("c2", "n", source=Source.NATURAL)
    bindings.put(one, NOW)
    bindings.put(two, NOW)
    bindings.keep(two, NOW)
    bindings.touch(one, NOW, pressing=True)
    bindings.retire(one, NOW)
    bindings.forget(two, NOW)
    assert not bindings.outbox.pending


def test_over_the_cap_the_longest_idle_binding_goes():
    bindings = table(binding={"max_count": 2})
    bindings.put(binding("c1", "r1", at=NOW - 3), NOW)
    bindings.put(binding("c2", "r2", at=NOW - 1), NOW)
    evicted = bindings.put(binding("c3", "r3", at=NOW - 9), NOW)
    assert [one.routed_id for one in evicted] == ["r1"]
    assert {one.routed_id for one in bindings} == {"r2", "r3"}


def test_one_turn_conversations_on_natural_ids_do_not_push_others_out():
    bindings = table(binding={"max_count": 1}, conversation={"max_count": 3})
    bindings.put(binding("c0", "r0", at=NOW - HOUR), NOW)
    for number in range(6):
        bindings.put(binding(f"n{number}", f"n{number}", source=Source.NATURAL, at=NOW + number), NOW)
    assert len(bindings) == 4
    assert [one.routed_id for one in bindings.durable()] == ["r0"]
    assert not any(pending.forget for pending in bindings.outbox.pending.values())


def test_pruning_drops_what_is_idle_and_old_retirements():
    bindings = table()
    bindings.put(binding("c1", "r1", at=NOW - 9 * HOUR), NOW)
    bindings.put(binding("c2", "n2", source=Source.NATURAL, at=NOW - 9 * HOUR), NOW)
    bindings.put(binding("c3", "r3"), NOW)
    bindings.ban("old", NOW - 9 * HOUR)
    assert {one.routed_id for one in bindings.prune(NOW)} == {"r1", "n2"}
    assert bindings.is_retired("r1")
    assert not bindings.is_retired("old")
    assert not bindings.is_retired("n2")


def test_repinning_retires_a_routed_id_and_its_standby_and_marks_a_natural_one():
    bindings = table()
    one, two = binding(standby="s1"), binding("c2", "n2", source=Source.NATURAL)
    bindings.put(one, NOW)
    bindings.put(two, NOW)
    bindings.repin(one, NOW)
    bindings.repin(two, NOW)
    assert bindings.is_retired("r1")
    assert bindings.is_retired("s1")
    assert two.marked
    assert bindings.had_route(two.key)


def test_the_holder_of_a_clients_value_is_found_by_its_digest():
    bindings = table()
    bindings.put(binding("c7", "digest:abc", source=Source.NATURAL), NOW)
    assert bindings.holder("abc") == "c7"
    assert bindings.holder("abd") is None


def test_what_others_retired_is_dropped_as_route_and_as_standby():
    bindings = table()
    bindings.put(binding("c1", "r1"), NOW)
    bindings.put(binding("c2", "r2", standby="s2"), NOW)
    hit = bindings.learn_retired([(id_digest("r1"), NOW), (id_digest("s2"), NOW)])
    assert [one.routed_id for one in hit] == ["r1"]
    assert bindings.get(binding_key("c2", GO, MODEL)).standby is None
    assert bindings.learn_retired([(id_digest("r1"), NOW)]) == []


def test_the_memory_of_retired_ids_is_bounded():
    bindings = table()
    for number in range(5000):
        bindings.ban(str(number), NOW)
    assert len(bindings.retired) == 4096


def test_after_a_clock_stepped_back_nobody_was_seen_in_the_future():
    bindings = table()
    one = binding(at=NOW + HOUR)
    bindings.put(one, NOW)
    bindings.settle_clock(NOW)
    assert one.last_seen_at == NOW


def test_losing_what_is_not_there_is_nothing():
    bindings = table()
    assert bindings.lose("nobody") is None
    natural = binding(source=Source.NATURAL)
    bindings.put(natural, NOW)
    assert bindings.lose(natural.key) is natural
    assert not bindings.had_route(natural.key)


def test_the_memory_of_dropped_routes_is_bounded():
    bindings = table(binding={"persist": False})
    for number in range(4200):
        one = binding(f"c{number}", f"r{number}")
        bindings.put(one, NOW)
        bindings.retire(one, NOW)
    assert len(bindings._had_route) == 4096
