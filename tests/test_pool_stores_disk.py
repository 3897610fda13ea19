"""pool/stores/disk.py"""

import orjson
import pytest

from pool.stores import disk
from pool.stores.trouble import Trouble

GOOD = {"version": 1, "entries": [], "bindings": {}}


def test_a_document_is_written_whole_private_and_without_leftovers(tmp_path):
    path = tmp_path / "state.json"
    path.write_text("old")
    path.chmod(0o644)
    disk.write(path, GOOD)
    assert disk.read(path) == disk.Reading(GOOD)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["state.json"]


def test_a_missing_file_is_neither_document_nor_corrupt(tmp_path):
    assert disk.read(tmp_path / "state.json") == disk.Reading(None)
    assert disk.signature(tmp_path / "state.json") is None


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is empty"),
        (b'{"version": 1, "ent', "is not JSON"),
        (b"\x00\xff\xfe" * 100, "is not JSON"),
        (b"[1, 2]", "is not a state file"),
        (b'{"version": "one"}', "is not a state file"),
    ],
)
def test_what_is_no_document_is_corrupt_and_says_why(tmp_path, data, why):
    path = tmp_path / "state.json"
    path.write_bytes(data)
    assert disk.read(path) == disk.Reading(None, why)


def test_a_file_of_absurd_size_is_not_read(tmp_path):
    path = tmp_path / "state.json"
    with path.open("wb") as file:
        file.truncate(disk.LARGEST_BYTES + 1)
    assert disk.read(path).corrupt == f"has {disk.LARGEST_BYTES + 1} bytes"


def test_a_directory_or_a_pipe_in_its_place_is_trouble_and_hangs_nobody(tmp_path):
    import os

    with pytest.raises(Trouble, match="is a directory"):
        disk.read(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Trouble, match="no regular file"):
        disk.read(tmp_path / "pipe")


def test_a_loop_of_links_is_trouble(tmp_path):
    path = tmp_path / "state.json"
    path.symlink_to(path)
    with pytest.raises(Trouble, match="cannot be read"):
        disk.read(path)


def test_what_cannot_be_written_leaves_the_old_file_and_no_temporary_one(tmp_path):
    path = tmp_path / "state.json"
    disk.write(path, GOOD)
    with pytest.raises(Trouble, match="a number that JSON cannot"):
        disk.write(path, GOOD | {"theirs": 2**70})
    (tmp_path / "folder").mkdir()
    with pytest.raises(Trouble, match="cannot be written"):
        disk.write(tmp_path / "folder", GOOD)
    assert disk.read(path).raw == GOOD
    assert sorted(one.name for one in tmp_path.iterdir()) == ["folder", "state.json"]


def test_corrupt_files_are_kept_aside_and_only_the_newest_three(tmp_path):
    path = tmp_path / "state.json"
    for at in (5, 30, 100, 200, 1000):
        path.write_text(str(at))
        assert disk.put_aside(path, at).name == f"state.json.corrupt-{at}"
    assert sorted(one.name for one in tmp_path.iterdir()) == [f"state.json.corrupt-{at}" for at in (100, 1000, 200)]
    assert disk.put_aside(path, 2000) is None


def test_putting_aside_what_cannot_be_moved_is_trouble(tmp_path):
    (tmp_path / "state.json.corrupt-7").mkdir()
    path = tmp_path / "state.json"
    path.write_text("x")
    with pytest.raises(Trouble, match="cannot be put aside"):
        disk.put_aside(path, 7)


def test_leftovers_of_killed_writers_are_swept_and_nothing_else(tmp_path):
    path = tmp_path / "st[a]te.json"
    for name in (".st[a]te.json.77.ab.tmp", ".other.json.77.ab.tmp", "st[a]te.json"):
        (tmp_path / name).write_text("x")
    assert disk.sweep(path) == 1
    assert sorted(one.name for one in tmp_path.iterdir()) == [".other.json.77.ab.tmp", "st[a]te.json"]


def test_a_new_folder_is_private_and_an_old_one_is_left_as_it_is(tmp_path):
    disk.make_folder(tmp_path / "a" / "state.json")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    (tmp_path / "b").mkdir(mode=0o755)
    disk.make_folder(tmp_path / "b" / "state.json")
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o755
    (tmp_path / "file").write_text("x")
    with pytest.raises(Trouble, match="cannot be made"):
        disk.make_folder(tmp_path / "file" / "state.json")


def test_every_replacement_has_another_signature(tmp_path):
    path = tmp_path / "state.json"
    seen = set()
    for number in range(50):
        disk.write(path, GOOD | {"n": number % 2})
        seen.add(disk.signature(path))
        assert orjson.loads(path.read_bytes())["n"] == number % 2
    assert len(seen) == 50
