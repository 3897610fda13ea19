"""Files that are appended to and renamed when full."""

import os
import stat

import pytest

from proxy.insight.rotation import RotatingFile, family, numbered


def test_a_full_file_is_renamed_and_only_some_are_kept(tmp_path):
    """Newest first: log, log.1, log.2; what is older is gone."""
    log = RotatingFile(tmp_path / "log", 10, 2)
    for number in range(5):
        log.write(b"line %d...\n" % number)
    assert [path.read_bytes()[:6] for path in family(tmp_path / "log")] == [b"line 2", b"line 3", b"line 4"]
    assert numbered(tmp_path / "log", 0) == tmp_path / "log"


def test_nothing_older_is_kept_when_none_is_wanted(tmp_path):
    """keep = 0 starts over in an empty file."""
    log = RotatingFile(tmp_path / "log", 10, 0)
    log.write(b"first.....\n")
    log.write(b"second....\n")
    assert [path.read_bytes() for path in family(tmp_path / "log")] == [b"second....\n"]


def test_a_line_longer_than_a_file_is_written_whole(tmp_path):
    """A bound on files never cuts a line."""
    log = RotatingFile(tmp_path / "log", 4, 1)
    log.write(b"much longer\n")
    assert (tmp_path / "log").read_bytes() == b"much longer\n"


def test_files_are_private_whatever_the_umask(tmp_path):
    """0600 in a 0700 folder, also after a rotation and when the file was there before."""
    before = os.umask(0)
    try:
        folder = tmp_path / "new"
        log = RotatingFile(folder / "log", 4, 1)
        log.write(b"one\n")
        log.write(b"two\n")
        (tmp_path / "old").write_bytes(b"")
        (tmp_path / "old").chmod(0o666)
        RotatingFile(tmp_path / "old", 0, 1).write(b"x\n")
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in [*family(folder / "log"), tmp_path / "old"]} == {0o600}


def test_a_deleted_or_renamed_file_is_made_anew(tmp_path):
    """Somebody cleans up, or another process rotates: the next lines are at the path again."""
    log = RotatingFile(tmp_path / "log", 0, 1)
    log.write(b"one\n")
    (tmp_path / "log").unlink()
    log.write(b"two\n")
    (tmp_path / "log").rename(tmp_path / "elsewhere")
    log.write(b"three\n")
    assert (tmp_path / "log").read_bytes() == b"three\n"


def test_a_line_that_a_killed_writer_left_half_is_ended_first(tmp_path):
    """The next line is never glued to a broken one."""
    (tmp_path / "log").write_bytes(b"whole\nhal")
    RotatingFile(tmp_path / "log", 0, 1).write(b"next\n")
    assert (tmp_path / "log").read_bytes() == b"whole\nhal\nnext\n"


def test_what_cannot_be_written_is_an_error_now_and_works_again_later(tmp_path):
    """A folder in the way: OSError; once it is gone, lines are written."""
    (tmp_path / "log").mkdir()
    log = RotatingFile(tmp_path / "log", 0, 1)
    with pytest.raises(OSError):
        log.write(b"one\n")
    (tmp_path / "log").rmdir()
    log.write(b"two\n")
    assert (tmp_path / "log").read_bytes() == b"two\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_an_error_and_no_device_is_renamed():
    """/dev/full refuses every write, and is still a device afterwards."""
    log = RotatingFile(__import__("pathlib").Path("/dev/full"), 1, 3)
    for _ in range(2):
        with pytest.raises(OSError):
            log.write(b"one\n")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_names_that_only_look_like_older_files_are_left_alone(tmp_path):
    """log.old and log.1x belong to somebody else."""
    for name in ("log.old", "log.1x", "log.2", "log"):
        (tmp_path / name).write_bytes(b"")
    assert [path.name for path in family(tmp_path / "log")] == ["log.2", "log"]
    assert family(tmp_path / "nowhere" / "log") == []
