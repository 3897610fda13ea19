"""pool/keeper.py and pool/adoption.py"""

import orjson
import pytest

from pool.ids import id_digest
from pool.keeper import Done
from pool.model import Source, binding_key
from pool.ports import Batch, Release
from pool.stores.file import FileStore, read
from pool.stores.lock import exclusive
from tests.fakes.pool import (
    GO,
    HOUR,
    MINUTE,
    MODEL,
    NOW,
    SECOND,
    STOCK,
    Process,
    fast,
    names,
    refused,
    slow,
    spare,
    wish,
)

KEY = binding_key("c1", GO, MODEL)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.json"


def seed(path, *spares):
    FileStore(path).commit(Batch((Release(spares),)), NOW)


# -- the life of a process --------------------------------------------------------------------------


def test_a_start_reserves_what_lies_free_up_to_the_size(path):
    seed(path, *[spare(f"s{n}", upstream_ms=n) for n in range(5)])
    process = Process(path)
    assert process.inventory.count(STOCK) == 3
    assert len(read(path).free) == 2


def test_a_clean_stop_puts_unused_spares_back_and_keeps_bindings(path):
    seed(path, spare("s1"), spare("s2", upstream_ms=2000.0))
    process = Process(path)
    assert process.turn(wish(), NOW).routed_id == "s1"
    process.close(NOW)
    contents = read(path)
    assert [one.id for one in contents.free] == ["s2"]
    assert contents.reserved == ()
    assert contents.bindings[KEY].routed_id == "s1"


def test_a_crash_loses_spares_and_never_duplicates_them(path):
    seed(path, *[spare(f"s{n}") for n in range(6)])
    Process(path)
    other = Process(path, NOW + 1)
    assert {one.id for one in other.inventory.all()} == {"s3", "s4", "s5"}
    late = Process(path, NOW + 9 * HOUR)
    assert late.inventory.count(STOCK) == 0
    assert read(path).reserved == ()


def test_bindings_survive_a_restart(path):
    seed(path, spare("s1"))
    one = Process(path)
    one.turn(wish(), NOW)
    one.settle(NOW)
    two = Process(path, NOW + MINUTE)
    start = two.routes.start(wish(), NOW + MINUTE)
    assert (start.routed_id, start.source, start.bound, start.first_turn) == ("s1", Source.SPARE, True, False)


def test_a_clients_value_is_on_disk_as_digest_only_and_comes_back_with_its_request(path):
    one = Process(path)
    client = wish(minted=False, value="client-secret-value")
    for at in (NOW, NOW + 1):
        one.turn(client, at)
    one.settle(NOW)
    assert b"client-secret-value" not in path.read_bytes()
    assert read(path).bindings[KEY].routed_id == f"digest:{client.natural.digest}"
    two = Process(path, NOW + MINUTE)
    assert two.routes.natural_holder(client.natural.digest) == "c1"
    assert two.routes.route_of("c1", GO, MODEL) is None
    two.inventory.admit(spare("s1", verified_at=NOW + MINUTE))
    assert two.routes.start(client, NOW + MINUTE).routed_id == "client-secret-value"
    assert two.routes.route_of("c1", GO, MODEL) == "client-secret-value"


def test_a_minted_natural_id_is_on_disk_and_is_used_again(path):
    one = Process(path)
    for at in (NOW, NOW + 1):
        one.turn(wish(), at)
    one.settle(NOW)
    two = Process(path, NOW + MINUTE)
    other_mint = wish(value="another-minted")
    assert two.routes.start(other_mint, NOW + MINUTE).routed_id == "natural-c1"


def test_a_one_turn_conversation_on_its_natural_id_is_not_written(path):
    process = Process(path)
    process.turn(wish(), NOW)
    process.settle(NOW)
    assert not path.exists()


def test_without_persistence_no_binding_is_in_the_file_and_spares_are_shared_all_the_same(path):
    seed(path, spare("s1"), spare("s2"))
    process = Process(path, binding={"persist": False})
    process.turn(wish(), NOW)
    process.turn(wish(), NOW + 1, slow(uncached_tokens=1))
    process.settle(NOW)
    process.close(NOW)
    contents = read(path)
    assert contents.bindings == {}
    assert [one.id for one in contents.free] == ["s2"]


def test_in_mode_off_nothing_is_taken_from_the_file(path):
    seed(path, spare("s1"))
    process = Process(path, routing={"mode": "off"})
    process.settle(NOW)
    assert [one.id for one in read(path).free] == ["s1"]


# -- when it writes and looks -------------------------------------------------------------------------


def test_decisions_are_in_the_file_within_a_second(path):
    process = Process(path)
    process.inventory.admit(spare("s1"))
    process.turn(wish(), NOW)
    process.settle(NOW, 1_000)
    assert read(path).bindings[KEY].routed_id == "s1"


def test_nothing_to_do_is_no_job_and_looking_is_twice_a_second(path):
    process = Process(path)
    jobs = sum(process.keeper.next_job(at) is not None for at in range(NOW, NOW + 10_000, 100))
    assert 18 <= jobs <= 21


def test_last_seen_is_written_every_five_seconds_at_most(path):
    process = Process(path)
    process.inventory.admit(spare("s1"))
    stamps = set()
    for at in range(NOW, NOW + 20_000, 500):
        process.turn(wish(), at)
        process.tick(at)
        if path.exists() and KEY in read(path).bindings:
            stamps.add(read(path).bindings[KEY].last_seen_at)
    assert 4 <= len(stamps) <= 5


def test_the_reserve_is_listed_for_others_to_see(path):
    process = Process(path)
    process.inventory.admit(spare("s1"))
    process.settle(NOW)
    assert [(one.spare.id, one.owner) for one in read(path).reserved] == [("s1", process.store.owner)]
    process.turn(wish(), NOW + 2_000)
    process.settle(NOW + 2_000)
    assert read(path).reserved == ()


def test_what_others_put_back_is_reserved_when_there_is_demand(path):
    process = Process(path)
    process.turn(wish(), NOW)
    seed(path, spare("s1"), spare("s2", stock=STOCK._replace(model="unwanted")))
    process.settle(NOW)
    assert [one.id for one in process.inventory.all()] == ["s1"]
    assert [one.id for one in read(path).free] == ["s2"]


def test_old_bindings_are_pruned_from_file_and_memory(path):
    process = Process(path)
    process.inventory.admit(spare("s1"))
    process.turn(wish(), NOW)
    process.settle(NOW)
    later = NOW + 9 * HOUR
    process.settle(later)
    assert read(path).bindings == {}
    assert len(process.bindings) == 0


def test_closing_writes_the_last_measurements(path):
    process = Process(path)
    process.inventory.admit(spare("s1"))
    process.turn(wish(), NOW)
    process.settle(NOW)
    process.turn(wish(), NOW + 3_000, fast(1111))
    process.close(NOW + 3_100)
    written = read(path).bindings[KEY]
    assert (written.turns, written.upstream_ms, written.last_seen_at) == (2, 1111, NOW + 3_000)


def test_settings_that_changed_are_obeyed(path):
    process = Process(path)
    process.keeper.reconfigure(Process(path, binding={"persist": False}).settings)
    assert process.keeper._to_restore() == ()
    assert process.keeper.store is process.store


# -- several processes --------------------------------------------------------------------------------


def pair(path, *spares):
    """Two processes that know of one conversation on spare s1."""
    seed(path, spare("s1"))
    one = Process(path)
    one.turn(wish(), NOW)
    one.settle(NOW)
    two = Process(path, NOW + 2_000)
    for process in (one, two):
        for another in spares:
            process.inventory.admit(another)
    return one, two


def test_a_retirement_in_the_file_is_honoured_by_others_within_two_seconds(path):
    one, two = pair(path)
    one.turn(wish(), NOW + 2_000, slow(uncached_tokens=1))
    one.settle(NOW + 2_000, 500)
    now = two.settle(NOW + 2_500, 600)
    assert two.routes.start(wish(), now).routed_id == "natural-c1"
    assert "retired elsewhere" in names(two.notes)


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
    assert "dropped elsewhere" in names(two.notes)


# -- a file that fails ----------------------------------------------------------------------------------


def test_while_the_file_is_locked_routing_goes_on_and_one_line_says_so(path):
    process = Process(path, wait_ms=10)
    process.inventory.admit(spare("s1"))
    with exclusive(path, 100):
        assert process.turn(wish(), NOW).routed_id == "s1"
        process.settle(NOW, 4_000)
        assert "locked" in process.keeper.problem
        assert process.turn(wish(), NOW + 4_000).routed_id == "s1"
    process.settle(NOW + 4_000, 6_000)
    assert process.keeper.problem is None
    assert [name for name in names(process.notes) if name.startswith("state")] == ["state_problem", "state_ok"]
    assert read(path).bindings[KEY].routed_id == "s1"


def test_a_file_that_can_never_be_written_is_tried_less_and_less_often(tmp_path):
    (tmp_path / "file").write_text("x")
    process = Process(tmp_path / "file" / "state.json")
    process.inventory.admit(spare("s1"))
    assert process.turn(wish(), NOW).routed_id == "s1"
    writes = 0
    for at in range(NOW, NOW + 2 * MINUTE, 100):
        job = process.keeper.next_job(at)
        if job is not None:
            done = job()
            writes += done.carried is not None
            process.notes += process.keeper.done(done, at)
    assert writes <= 8
    assert [name for name in names(process.notes) if name.startswith("state")] == ["state_problem"]
    process.close(NOW + 2 * MINUTE)


@pytest.mark.parametrize("damage", [b"", b"half a docu", None])
def test_a_file_that_is_lost_is_written_again_from_memory(path, damage):
    one, two = pair(path)
    one.inventory.admit(spare("s2"))
    one.turn(wish("c2"), NOW + 2_000, slow())
    one.settle(NOW + 2_000)
    two.settle(NOW + 4_000)
    one.turn(wish("c2"), NOW + 6_000, slow(uncached_tokens=1))  # s2 is retired
    one.settle(NOW + 6_000)
    path.write_bytes(damage) if damage is not None else path.unlink()
    two.settle(NOW + 8_000, 1_500)
    one.settle(NOW + 8_000, 1_500)
    two.settle(NOW + 9_500, 1_500)
    contents = read(path)
    assert contents.bindings[KEY].routed_id == "s1"
    assert set(contents.bindings) == {KEY}
    assert id_digest("s2") in contents.retired
    assert (damage is None) or ("state_notice" in names(one.notes + two.notes))
    assert [p.routes.start(wish(), NOW + 12_000).routed_id for p in (one, two)] == ["s1", "s1"]


def test_a_newer_file_is_read_left_alone_and_named(path):
    seed(path, spare("s1"))
    document = orjson.loads(path.read_bytes()) | {"version": 2}
    path.write_bytes(orjson.dumps(document))
    process = Process(path)
    process.inventory.admit(spare("s2"))
    process.turn(wish(), NOW)
    process.settle(NOW, 5_000)
    assert "version 2" in process.keeper.problem
    assert orjson.loads(path.read_bytes()) == document


def test_an_opening_that_comes_late_does_not_undo_what_happened_meanwhile(path):
    seed(path, spare("s1"))
    one = Process(path)
    one.turn(wish(), NOW)
    one.settle(NOW)
    two = Process(path, NOW + 2_000, opening=False)
    job = two.keeper.opening(NOW + 2_000)
    two.inventory.admit(spare("s2", verified_at=NOW + 2_000))
    assert two.turn(wish(), NOW + 2_000).routed_id == "s2"
    two.notes += two.keeper.done(job(), NOW + 2_500)
    assert two.routes.start(wish(), NOW + 2_500).routed_id == "s2"
    two.settle(NOW + 2_500)
    assert two.routes.start(wish(), NOW + 5_000).routed_id == "s1"
    assert two.bindings.is_retired("s2")


def test_a_binding_stamped_in_the_future_is_not_adopted(path):
    seed(path, spare("s1"))
    one = Process(path, NOW)
    one.turn(wish(), NOW)
    one.settle(NOW)
    two = Process(path, NOW - HOUR)
    assert two.routes.start(wish(), NOW - HOUR).routed_id == "natural-c1"


def test_a_retired_binding_that_comes_back_from_a_copy_is_removed_again(path):
    one, _ = pair(path)
    copy = path.read_bytes()
    one.turn(wish(), NOW + 2_000, slow(uncached_tokens=1))
    one.settle(NOW + 2_000)
    path.write_bytes(copy)
    one.settle(NOW + 4_000, 1_500)
    assert read(path).bindings == {}
    assert id_digest("s1") in read(path).retired


def test_a_job_that_found_nothing_new_changes_nothing(path):
    process = Process(path)
    job = None
    for at in range(NOW, NOW + 1_000, 100):
        job = job or process.keeper.next_job(at)
    assert process.keeper.done(job(), NOW + SECOND) == []


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


def test_trouble_with_looking_is_told_too(path):
    process = Process(path)
    path.mkdir()
    process.settle(NOW)
    assert names(process.notes) == ["state_problem"]


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
