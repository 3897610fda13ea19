"""pool/keeper.py"""

import pytest

from pool.model import Source, binding_key
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
    seed,
    slow,
    spare,
    wish,
)

KEY = binding_key("c1", GO, MODEL)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.json"


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
