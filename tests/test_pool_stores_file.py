"""pool/stores/file.py"""

import orjson
import pytest

from pool.ids import id_digest
from pool.model import Binding, Source, binding_key
from pool.ports import Batch, Bind, Forget, Hold, Prune, Release, Reserve, Retire, Touch
from pool.stores.file import FileStore, read
from pool.stores.lock import exclusive
from pool.stores.trouble import Trouble
from tests.fakes.pool import GO, HOUR, MODEL, NOW, STOCK, spare

LEASE = 8 * HOUR
KEY = binding_key("c1", GO, MODEL)


def binding(conversation="c1", routed_id="r1", at=NOW) -> Binding:
    return Binding(binding_key(conversation, GO, MODEL), GO, MODEL, routed_id, Source.SPARE, at, at)


def store_at(path, **facts) -> FileStore:
    store = FileStore(path, wait_ms=200, **facts)
    store.start(NOW)
    return store


def commit(store, *operations, **facts):
    return store.commit(Batch(operations, LEASE, **facts), NOW)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ocpool" / "state.json"


def test_nothing_is_written_before_there_is_something_to_say(path):
    store = FileStore(path)
    synced = store.start(NOW)
    assert (synced.applied, synced.problem, synced.contents.free) == (True, None, ())
    assert commit(store).applied
    assert not path.exists()
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_what_one_process_writes_another_reads(path):
    one, two = store_at(path), store_at(path)
    synced = commit(one, Bind(binding()), Release((spare("s1"),)))
    assert synced.applied
    assert set(synced.contents.bindings) == {KEY}
    assert one.poll() is None
    seen = two.poll()
    assert [free.id for free in seen.contents.free] == ["s1"]
    assert seen.contents.lineage == synced.contents.lineage != ""
    assert two.poll() is None
    assert read(path) == seen.contents


def test_a_spare_is_reserved_by_one_process_only(path):
    one, two = store_at(path), store_at(path)
    commit(one, Release((spare("s1"), spare("s2"))))
    first = commit(one, Reserve(STOCK, 1)).reserved
    second = commit(two, Reserve(STOCK, 5)).reserved
    assert {s.id for s in (*first, *second)} == {"s1", "s2"}
    assert commit(one, Reserve(STOCK, 5)).reserved == ()
    assert [held.owner for held in read(path).reserved] == [one.owner, two.owner]


def test_every_operation_does_what_its_verb_says(path):
    store = store_at(path)
    commit(store, Bind(binding()), Bind(binding("c2", "r2")), Bind(binding("c3", "r3", NOW - 9 * HOUR)))
    touched = binding()
    touched.turns = 7
    synced = commit(
        store,
        Touch(touched),
        Retire(binding("c2").key, "r2", NOW),
        Hold((spare("h1"),)),
        Prune(LEASE, 256),
        Forget(KEY, "other"),
    )
    assert {key: b.turns for key, b in synced.contents.bindings.items()} == {KEY: 7}
    assert set(synced.contents.retired) == {id_digest("r2")}
    assert [held.spare.id for held in synced.contents.reserved] == ["h1"]


def test_an_unchanged_file_is_not_written_again(path):
    store = store_at(path)
    commit(store, Bind(binding()))
    before = path.stat().st_mtime_ns, path.stat().st_ino
    commit(store, Bind(binding()), Prune(LEASE, 256), Touch(binding()))
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before


@pytest.mark.parametrize(
    "data", [b"", b'{"version": 1, "entr', b"\x00\x01binary", b"[]", b'{"version": 1, "entries": 7}']
)
def test_a_corrupt_file_is_put_aside_and_counts_as_empty(path, data):
    path.parent.mkdir()
    path.write_bytes(data)
    store = FileStore(path)
    synced = store.start(NOW)
    assert (synced.applied, synced.problem, dict(synced.contents.bindings)) == (True, None, {})
    assert f"kept as state.json.corrupt-{NOW}" in synced.notice
    assert path.with_name(f"state.json.corrupt-{NOW}").read_bytes() == data
    assert commit(store, Bind(binding())).notice is None
    assert set(read(path).bindings) == {KEY}


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_a_running_process_writes_from_memory_when_the_file_is_lost(path, damage):
    store = store_at(path)
    lineage = commit(store, Bind(binding()), Retire("k", "gone", NOW)).contents.lineage
    path.write_bytes(damage) if damage is not None else path.unlink()
    seen = store.poll()
    assert seen.contents.lineage != lineage
    known = {"lineage": lineage, "restore": (binding(),), "retired": {id_digest("gone"): NOW}}
    synced = commit(store, **known)
    assert synced.contents.lineage not in {"", lineage}
    assert (set(synced.contents.bindings), set(synced.contents.retired)) == ({KEY}, {id_digest("gone")})
    assert (synced.notice is None) is (damage is None)


def test_a_newer_version_is_read_and_never_written(path):
    path.parent.mkdir()
    data = orjson.dumps({"version": 2, "entries": [], "bindings": {}, "new": True})
    path.write_bytes(data)
    store = FileStore(path)
    assert "version 2" in store.start(NOW).problem
    synced = commit(store, Bind(binding()), Reserve(STOCK, 3))
    assert (synced.applied, synced.reserved) == (False, ())
    assert "only read" in synced.problem
    assert store.grant_probes(GO, 2, 1, NOW) == 1
    store.return_probes(GO, 1, NOW)
    assert store.grant_probes(GO, 2, 1, NOW) == 1
    assert path.read_bytes() == data


def test_a_newer_version_whose_shape_we_do_not_know_is_no_exception(path):
    path.parent.mkdir()
    path.write_bytes(orjson.dumps({"version": 3, "entries": {"a": 1}, "bindings": [2]}))
    assert FileStore(path).start(NOW).contents.version == 3


def test_a_directory_in_its_place_is_a_problem_and_stays(path):
    path.mkdir(parents=True)
    store = FileStore(path)
    synced = store.start(NOW)
    assert (synced.applied, synced.contents) == (False, None)
    assert "is a directory" in synced.problem
    assert "is a directory" in commit(store, Bind(binding())).problem
    assert "is a directory" in store.poll().problem
    assert path.is_dir()


def test_a_file_where_its_folder_should_be_is_a_problem(tmp_path):
    (tmp_path / "file").write_text("x")
    synced = FileStore(tmp_path / "file" / "state.json").start(NOW)
    assert (synced.applied, synced.contents) == (False, None)
    assert "cannot be made" in synced.problem


def test_a_locked_file_is_still_read(path):
    one = store_at(path)
    commit(one, Bind(binding()))
    with exclusive(path, 100):
        two = FileStore(path, wait_ms=50)
        synced = two.start(NOW)
        assert (synced.applied, set(synced.contents.bindings)) == (False, {KEY})
        assert "locked by another process" in synced.problem
        assert two.grant_probes(GO, 5, 3, NOW) == 3
        assert two.grant_probes(GO, 5, 3, NOW) == 0
        two.return_probes(GO, 1, NOW)
    assert commit(two, Bind(binding("c2", "r2"))).problem is None


def test_a_corrupt_file_behind_a_lock_is_left_alone(path):
    path.parent.mkdir()
    path.write_text("garbage")
    with exclusive(path, 100):
        synced = FileStore(path, wait_ms=50).start(NOW)
    assert (synced.applied, synced.contents) == (False, None)
    assert path.read_text() == "garbage"
    with pytest.raises(Trouble, match="is not JSON"):
        read(path)


def test_the_cap_on_probes_is_shared_by_all_processes_and_no_process_exceeds_it_alone(path):
    one, two = store_at(path), store_at(path)
    assert one.grant_probes(GO, 3, 4, NOW) == 3
    assert two.grant_probes(GO, 3, 4, NOW + 1) == 1
    one.return_probes(GO, 2, NOW)
    assert two.grant_probes(GO, 3, 4, NOW + 2) == 2
    path.unlink()
    assert two.grant_probes(GO, 9, 4, NOW + 3) == 1
    assert two.grant_probes(GO, 9, 4, NOW + HOUR + 3) == 4


def test_a_link_to_the_file_stays_a_link(tmp_path):
    real, link = tmp_path / "real.json", tmp_path / "state.json"
    link.symlink_to(real)
    commit(store_at(link), Bind(binding()))
    assert link.is_symlink()
    assert set(read(link).bindings) == {KEY}


def test_a_start_sweeps_what_killed_writers_left(path):
    path.parent.mkdir()
    (path.parent / ".state.json.99.abcd.tmp").write_text("half")
    store_at(path)
    assert not list(path.parent.glob(".state*tmp"))


def test_a_missing_file_reads_as_empty_and_closing_needs_nothing(path):
    assert read(path).bindings == {}
    store_at(path).close()
    assert FileStore(path).owner != FileStore(path).owner
