"""pool/keeper.py on a file that fails, or is lost"""

import orjson
import pytest

from pool.ids import id_digest
from pool.model import binding_key
from pool.stores.file import read
from pool.stores.lock import exclusive
from tests.fakes.pool import (
    GO,
    HOUR,
    MINUTE,
    MODEL,
    NOW,
    SECOND,
    Process,
    names,
    pair,
    seed,
    slow,
    spare,
    wish,
)

KEY = binding_key("c1", GO, MODEL)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.json"


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


def test_trouble_with_looking_is_told_too(path):
    process = Process(path)
    path.mkdir()
    process.settle(NOW)
    assert names(process.notes) == ["state_problem"]


def test_a_running_process_puts_a_corrupt_file_aside_although_it_has_nothing_to_write(path):
    process = Process(path)
    path.write_bytes(b"garbage")
    process.settle(NOW)
    assert not path.exists()
    assert names(process.notes) == ["state_notice"]
    assert len(list(path.parent.glob("state.json.corrupt-*"))) == 1
