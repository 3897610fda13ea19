"""pool/adoption.py: several processes on one file"""

import pytest

from pool.ids import id_digest
from pool.keeper import Done
from pool.model import binding_key
from pool.stores.file import read
from tests.fakes.pool import (
    GO,
    HOUR,
    MINUTE,
    MODEL,
    NOW,
    STOCK,
    Process,
    fast,
    names,
    pair,
    refused,
    slow,
    spare,
    wish,
)

KEY = binding_key("c1", GO, MODEL)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.json"


def test_a_retirement_in_the_file_is_honoured_by_others_within_two_seconds(path):
    one, two = pair(path)
    one.turn(wish(), NOW + 2_000, slow(uncached_tokens=1))
    one.settle(NOW + 2_000, 500)
    now = two.settle(NOW + 2_500, 600)
    assert two.routes.start(wish(), now).routed_id == "natural-c1"
    assert "retired_elsewhere" in names(two.notes)


def test_a_retirement_is_honoured_after_a_restart_and_never_undone_by_anothers_memory(path):
    one, two = pair(path)
    one.turn(wish(), NOW + 2_000, slow(uncached_tokens=1))
    one.settle(NOW + 2_000, 500)
    for at in (2_500, 2_600):  # before it has looked, the other still measures the id
        two.routes.observe(two.routes.start(wish(), NOW + at), fast(7000, uncached_tokens=1), NOW + at)
    two.settle(NOW + 2_600)
    one.settle(NOW + 2_600)
    assert KEY not in read(path).bindings
    assert Process(path, NOW + MINUTE).routes.start(wish(), NOW + MINUTE).routed_id == "natural-c1"


def test_two_that_bind_one_conversation_agree_on_the_earlier_and_retire_the_other(path):
    one, two = Process(path), Process(path)
    one.inventory.admit(spare("s1"))
    two.inventory.admit(spare("s2"))
    two.turn(wish(), NOW)
    one.turn(wish(), NOW + 1)
    one.settle(NOW + 1)
    two.settle(NOW + 1)
    one.settle(NOW + 2_001)
    assert [p.routes.start(wish(), NOW + 5_000).routed_id for p in (one, two)] == ["s2", "s2"]
    assert id_digest("s1") in read(path).retired
    assert one.bindings.is_retired("s1")


def test_measurements_and_marks_of_others_are_taken_over(path):
    one, two = pair(path)
    two.turn(wish(), NOW + 9_000, fast(7000, uncached_tokens=1))
    two.settle(NOW + 9_000)
    one.settle(NOW + 11_000)
    binding = one.bindings.get(KEY)
    assert (binding.failures, binding.turns, binding.last_seen_at) == (1, 1 + 1, NOW + 9_000)
    assert names(
        one.routes.observe(one.routes.start(wish(), NOW + 12_000), fast(7000, uncached_tokens=1), NOW + 12_000)
    ) == ["retire"]


def test_a_standby_is_known_to_others(path):
    one, two = pair(path)
    one.inventory.admit(spare("s2"))
    first = one.routes.start(wish(), NOW + 2_000)
    one.routes.observe(one.routes.replace(first, NOW + 2_000), refused(replayed=True), NOW + 2_000)
    one.settle(NOW + 2_000)
    two.settle(NOW + 4_000)
    later = NOW + 5 * MINUTE
    assert two.routes.replace(two.routes.start(wish(), later), later).routed_id == "s2"


def test_a_repin_by_one_process_moves_the_other(path):
    one, two = pair(path)
    one.routes.repin("c1", NOW + 2_000)
    one.inventory.admit(spare("s9", verified_at=NOW + 2_000))
    one.routes.start(wish(), NOW + 2_000)
    one.settle(NOW + 2_000)
    two.settle(NOW + 4_000)
    assert two.routes.start(wish(), NOW + 6_000).routed_id == "s9"


def test_a_binding_that_another_dropped_is_dropped(path):
    one, two = pair(path)
    natural = wish("c2")
    for at in (NOW + 2_000, NOW + 2_100):
        one.turn(natural, at)
    one.settle(NOW + 2_100)
    two.settle(NOW + 4_100)
    assert two.bindings.get(binding_key("c2", GO, MODEL)) is not None
    one.bindings.forget(one.bindings.get(binding_key("c2", GO, MODEL)), NOW + 6_100)
    one.settle(NOW + 6_100)
    two.settle(NOW + 8_100)
    assert two.bindings.get(binding_key("c2", GO, MODEL)) is None
    assert "dropped_elsewhere" in names(two.notes)


def test_a_conversation_on_its_natural_id_here_goes_where_another_process_has_bound_it(path):
    one, two = Process(path), Process(path)
    first = two.routes.start(wish(), NOW)
    one.inventory.admit(spare("s1"))
    one.turn(wish(), NOW + 100)
    one.settle(NOW + 100)
    two.settle(NOW + 2_100)
    assert two.routes.start(wish(), NOW + 4_100).routed_id == "s1"
    assert two.routes.observe(first, slow(), NOW + 4_200) == []
    assert "adopt" in names(two.notes)


def test_a_route_that_loses_to_a_natural_id_bound_earlier_is_retired(path):
    one, two = Process(path), Process(path)
    for at in (NOW, NOW + 10):
        one.turn(wish(), at)
    two.inventory.admit(spare("s1"))
    two.turn(wish(), NOW + 20)
    one.settle(NOW + 20)
    two.bindings.outbox.collect()  # as if it had been written and dropped by a copy put back
    two.settle(NOW + 2_020)
    assert two.routes.start(wish(), NOW + 5_000).routed_id == "natural-c1"
    assert two.bindings.is_retired("s1")


def test_a_binding_that_died_elsewhere_does_not_take_the_place_of_a_living_one(path):
    one = Process(path)
    one.inventory.admit(spare("s1"))
    one.turn(wish(), NOW)
    one.settle(NOW)
    later = NOW + 8 * HOUR + MINUTE
    two = Process(path, later, opening=False)
    two.routes.start(wish(), later)
    two.notes += two.keeper.done(Done({}, two.store.start(later)), later)
    assert two.routes.start(wish(), later).routed_id == "natural-c1"


def test_a_retired_spare_of_the_reserve_is_dropped(path):
    one, two = Process(path), Process(path)
    two.inventory.admit(spare("s1"))
    one.bindings.outbox.retire("k", "s1", NOW)
    one.settle(NOW)
    two.settle(NOW + 2_000)
    assert two.inventory.count(STOCK) == 0


def test_what_waits_to_be_written_is_not_dropped_before_it_was(path):
    one, two = pair(path)
    one.turn(wish(), NOW + 2_000, slow(uncached_tokens=1))
    one.settle(NOW + 2_000)
    two.bindings.retired.update(read(path).retired)  # it knows of it, so only the missing entry is news
    two.bindings.touch(two.bindings.get(KEY), NOW + 4_000, pressing=True)
    two.keeper.done(Done(None, two.store.poll()), NOW + 4_000)
    assert two.bindings.get(KEY) is not None
    two.settle(NOW + 4_000)
    assert two.bindings.get(KEY) is None


def test_a_natural_id_that_took_the_place_of_a_retired_route_is_not_dropped_with_it(path):
    one, _ = pair(path)
    one.turn(wish(), NOW + 2_000, slow(uncached_tokens=1))
    first = one.routes.start(wish(), NOW + 2_100)
    one.inventory.admit(spare("s2"))
    one.settle(NOW + 2_100)
    assert one.routes.start(wish(), NOW + 4_200).routed_id == first.routed_id == "natural-c1"
