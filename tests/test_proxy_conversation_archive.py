"""What is known of conversations on disk: found again after a restart, nothing readable, never in the way."""

import asyncio
import os
import re
import sqlite3
import threading
from contextlib import closing

import pytest

from proxy.archiving import Archiving
from proxy.conversation.archive import VERSION, Archive, ArchiveError
from proxy.conversation.evidence import Evidence
from proxy.conversation.packing import Row, pack, unpack
from tests.fakes.talk import SECRET, Talk, assistant, label, limits, result, system, user

ASK = "Please look at the parser and find out why it fails on empty input."
SAID = "It splits an empty list in the second step, which nobody expected to be empty."
ID = "call_9aF3kQ7xZ2mW"
NOW = 2_000_000_000_000


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "state.json.conversations"


def archiving(talk, path, problems=None):
    told = [] if problems is None else problems
    return Archiving(talk.evidence, Archive(path), lambda: talk.now, told.append)


def kept(path):
    """The rows that are in the archive."""
    with closing(Archive(path)) as archive:
        return archive.load(0, 1000)


async def saved(talk, path):
    keeper = archiving(talk, path)
    await keeper.open()
    await keeper.close()


async def restarted(path, now, problems=None, **conversation):
    """Another process, which has read the archive."""
    talk = Talk(now=now, **conversation)
    keeper = archiving(talk, path, problems)
    await keeper.open()
    await keeper.close()
    return talk


def begun(talk):
    return talk.turn([system("cwd /secret/place"), user(ASK)], SAID, (ID, "read", '{"path": "secret.py"}'))


NEXT = [user(ASK), assistant(SAID, (ID, "read", '{"path": "secret.py"}')), result(ID)]


async def test_a_conversation_is_found_again_after_a_restart(path):
    """With its label, and goes on."""
    talk = Talk(now=NOW)
    first = begun(talk)
    await saved(talk, path)
    after = await restarted(path, talk.now)
    second = after.turn(NEXT, "I see the fault.")
    assert (label(second), second.match) == (label(first), "tool-id")
    moved = [user("Something that the client puts first."), *NEXT, assistant("I see the fault."), user("Mend it.")]
    assert label(after.turn(moved, "Mended.")) == label(first)


async def test_counter_ids_of_another_chat_do_not_join_after_a_restart(path):
    """One of two chats with the same counted ids is restored: no merge."""
    talk = Talk(now=NOW)
    call = ("functions.read:0", "read", '{"path": "setup.py"}')
    one = talk.turn([user("Explain the build of this project, please.")], "", call)
    await saved(talk, path)
    after = await restarted(path, talk.now)
    other = after.turn([user("Write the release notes for the version.")], "", call)
    back = after.turn(
        [user("Explain the build of this project, please."), assistant("", call), result(call[0])], "Make."
    )
    assert label(back) == label(one)
    on = after.turn([user("Write the release notes for the version."), assistant("", call), result(call[0])], "Done.")
    assert label(on) == label(other) != label(one)


async def test_nothing_readable_is_stored(path):
    """No word of a prompt, an answer, an id, a path or a tool; and for its owner only."""
    talk = Talk(now=NOW)
    begun(talk)
    await saved(talk, path)
    data = b"".join(file.read_bytes() for file in path.parent.iterdir())
    for word in re.findall(r"\w{4,}", f"{ASK} {SAID} {ID} secret place path read kimi"):
        assert word.encode() not in data, word
    assert path.stat().st_mode & 0o777 == 0o600


async def test_ten_thousand_conversations_and_then_an_old_one(path):
    """Bounded in memory, found all the same, after a restart too."""
    talk = Talk(now=NOW)
    first = begun(talk)
    for number in range(9_900):
        talk.turn(
            [user(f"Question number {number}: what is the square of it?")],
            f"It is {number * number}, I think.",
            after=1,
        )
    assert len(talk.evidence) <= talk.evidence.most
    assert len(talk.registry) <= 2000
    second = talk.turn(NEXT, "I see the fault.")
    assert label(second) == label(first)
    await saved(talk, path)
    after = await restarted(path, talk.now)
    third = after.turn([*NEXT, assistant("I see the fault."), user("Mend it.")], "Mended.")
    assert label(third) == label(first)


async def test_what_was_idle_for_too_long_is_gone(path):
    """In memory and on disk."""
    talk = Talk(now=NOW, idle_ttl_ms=60_000)
    first = begun(talk)
    await saved(talk, path)
    after = await restarted(path, talk.now + 70_000, idle_ttl_ms=60_000)
    assert label(after.turn(NEXT, "Well.")) != label(first)
    talk.now += 70_000
    assert label(talk.turn(NEXT, "Well.")) != label(first)
    await saved(talk, path)
    assert len(kept(path)) == 1


async def test_a_broken_archive_is_put_aside(path):
    """And begun anew; traffic never hears of it."""
    path.parent.mkdir()
    path.write_bytes(b"this is no database, but it is long enough to be taken for one " * 40)
    problems = []
    talk = await restarted(path, NOW, problems)
    first = begun(talk)
    assert problems[0].startswith(str(path))
    assert path.with_name(f"{path.name}.corrupt").exists()
    await saved(talk, path)
    assert label((await restarted(path, talk.now)).turn(NEXT, "Well.")) == label(first)


async def test_a_newer_archive_is_left_alone(path):
    """Nothing is read from it, nothing written into it."""
    path.parent.mkdir()
    with sqlite3.connect(path) as newer:
        newer.execute("CREATE TABLE line (anything TEXT)")
        newer.execute(f"PRAGMA user_version = {VERSION + 1}")
    newer.close()
    before = path.read_bytes()
    problems = []
    talk = Talk(now=NOW)
    keeper = archiving(talk, path, problems)
    await keeper.open()
    begun(talk)
    await keeper.save()
    await keeper.close()
    assert "newer" in problems[0]
    assert path.read_bytes() == before
    assert not talk.evidence.changed


async def test_a_locked_archive_is_tried_again(path):
    """What could not be written is written later."""
    talk = Talk(now=NOW)
    begun(talk)
    await saved(talk, path)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    problems = []
    keeper = archiving(talk, path, problems)
    first = talk.turn([user("Another conversation, begun while the file is locked.")], SAID)
    await keeper.save()
    assert "locked" in problems[0]
    assert talk.evidence.changed
    holder.execute("COMMIT")
    holder.close()
    await keeper.save()
    await keeper.close()
    assert problems[-1] is None
    assert label(first) in {row.label for row in kept(path)}


async def test_a_full_disk_is_tried_again(path):
    """SQLite says so itself when its file may not grow."""
    talk = Talk(now=NOW)
    archive = Archive(path)
    problems = []
    keeper = Archiving(talk.evidence, archive, lambda: talk.now, problems.append)
    await keeper.open()
    archive._connection.execute("PRAGMA max_page_count = 4")
    for number in range(300):
        talk.turn([user(f"Question number {number}: what is the square of it?")], f"It is {number * number}, I think.")
    await keeper.save()
    assert "full" in problems[-1]
    assert len(talk.evidence.changed) == 300
    await keeper.save()  # the limit went with the connection
    await keeper.close()
    assert problems[-1] is None
    assert len(kept(path)) == 300


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
async def test_a_folder_that_cannot_be_written(tmp_path):
    """Is said once, and no more."""
    tmp_path.chmod(0o500)
    problems = []
    await restarted(tmp_path / "state" / "conversations", NOW, problems)
    assert problems


async def test_a_folder_that_is_a_file(tmp_path):
    """It cannot be created; traffic goes on."""
    (tmp_path / "state").write_text("")
    problems = []
    talk = await restarted(tmp_path / "state" / "conversations", NOW, problems)
    begun(talk)
    assert problems


async def test_an_archive_that_hangs_holds_up_nobody(path):
    """The start goes on after a bound, and so does the end."""

    class Hanging(Archive):
        release = threading.Event()

        def load(self, since, most):
            self.release.wait(30)
            try:
                return super().load(since, most)
            finally:
                self.close()  # nobody else is left to

        def save(self, rows, gone, before):
            try:
                super().save(rows, gone, before)
            finally:
                self.close()

    talk = Talk(now=NOW)
    problems = []
    keeper = Archiving(talk.evidence, Hanging(path), lambda: talk.now, problems.append)
    async with asyncio.timeout(10):
        await keeper.open()
        begun(talk)
        await keeper.close()
    Hanging.release.set()
    assert problems


async def test_rows_that_are_none_are_dropped(path):
    """Of any content."""
    talk = Talk(now=NOW)
    first = begun(talk)
    await saved(talk, path)
    with sqlite3.connect(path) as store:
        for number, said in enumerate((b"", b"\0" * 67, os.urandom(200), "text", None and b"", b"\xff" * 400), 1):
            store.execute("INSERT INTO line VALUES (?, 's', 'l', NULL, 1, ?, ?)", (number, talk.now, said or b""))
    store.close()
    after = await restarted(path, talk.now)
    assert len(after.evidence) == 1
    assert label(after.turn(NEXT, "Well.")) == label(first)


def test_packing_loses_nothing_that_is_compared():
    """Every number and flag comes back."""
    talk = Talk(now=NOW)
    first = begun(talk)
    line = talk.evidence.current("alice", label(first))
    line.cohort, line.owned, line.failed_at = "c" * 16, True, 7
    row = pack(line, waiting=True)
    back = unpack(row, "tool_calls")
    for name in (
        "label",
        "scope",
        "cohort",
        "owned",
        "points",
        "marks",
        "ids",
        "request",
        "full",
        "last",
        "latest",
        "opener",
    ):
        assert getattr(back, name) == getattr(line, name), name
    for name in ("length", "first", "offset", "failed_at", "seen_at", "began_at", "row", "tools", "stream", "finish"):
        assert getattr(back, name) == getattr(line, name), name
    with pytest.raises(ValueError):
        unpack(row._replace(said=row.said + b"\0"), "tool_calls")


def test_two_processes_write_into_one_archive(path):
    """Neither loses what the other wrote."""
    for number in range(2):
        talk = Talk(now=NOW, evidence=Evidence(limits(), SECRET))
        talk.turn([user(f"The question of process {number}, which is its own.")], SAID)
        rows = [pack(line, waiting=False) for line in talk.evidence.changed]
        archive = Archive(path)
        archive.save(rows, [], 0)
        archive.close()
    assert len(kept(path)) == 2


def test_an_archive_that_is_a_folder(tmp_path):
    """Is an error with a reason, and no other exception."""
    with pytest.raises(ArchiveError):
        Archive(tmp_path).load(0, 10)
    with pytest.raises(ArchiveError):
        Archive(tmp_path).save([Row(1, "s", "l", None, 1, 1, b"")], [], 0)
