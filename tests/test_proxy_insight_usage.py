"""The usage ledger counts every answer, keeps what it cannot write, and never troubles a request."""

import os
import sqlite3
import stat
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from proxy.answers.usage import normalised
from proxy.control.status import status
from proxy.insight import usage_file
from proxy.insight.usage import Ledger, Spent
from proxy.insight.usage_file import Key, Sums, day_of
from proxy.insight.usage_report import report

DAY_MS = 86_400_000
NOW = 20_787 * DAY_MS + 43_200_000  # noon of 2026-11-30
USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 600}}
EARLIER = (
    *("turns", "side", "partial", "unknown", "unpriced", "input", "told"),
    *("cached", "written", "output", "reasoning", "cost", "saved"),
)
BY_ALL = ("day", "key", "provider", "model", "conversation")


def spent(
    usage: dict | None = USAGE, *, at: int = NOW, model: str = "kimi-k3", conversation: str = "c1", **more
) -> Spent:
    facts = {"scope": "0123456789abcdef", "provider": "opencode-go", "side": False, "partial": False} | more
    said = (
        at,
        facts["scope"],
        facts["provider"],
        model,
        conversation,
        facts["side"],
        facts["partial"],
        normalised(usage),
    )
    return Spent(*said, probe=facts.get("probe", False))


def ledger(path: Path | None, said: list[str] | None = None, now: int = NOW, **more) -> Ledger:
    return Ledger(path, lambda: now, warn=(said if said is not None else []).append, **more)


def noted(made: Ledger, *answers: Spent) -> Ledger:
    """Noted and written, without waiting for the thread."""
    made._waiting.extend(answers)
    made.settle()
    return made


def test_days_are_those_of_utc():
    assert (day_of(NOW), day_of(0)) == ("2026-11-30", "1970-01-01")
    assert (day_of(20_787 * DAY_MS - 1), day_of(20_787 * DAY_MS)) == ("2026-11-29", "2026-11-30")


def test_answers_are_summed_by_whatever_is_asked(tmp_path: Path):
    path = tmp_path / "usage.sqlite3"
    noted(
        ledger(path),
        spent(),
        spent(conversation="c2"),
        spent(model="glm-5.3", at=NOW - DAY_MS, scope="f" * 16),
    )
    models = report(path, ("provider", "model"), None)["rows"]
    assert [(row["model"], row["turns"], row["input"]) for row in models] == [
        ("kimi-k3", 2, 2000),
        ("glm-5.3", 1, 1000),
    ]
    assert [row["day"] for row in report(path, ("day",), None)["rows"]] == ["2026-11-29", "2026-11-30"]
    assert {row["key"] for row in report(path, ("key",), None)["rows"]} == {"01234567", "ffffffff"}
    assert len(report(path, ("conversation",), None)["rows"]) == 2
    assert report(path, ("day",), NOW)["total"]["turns"] == 2
    total = report(path, ("model",), None)["total"]
    assert (total["input"], total["cached"], total["output"], total["hit_rate"]) == (3000, 1800, 300, 0.6)
    assert total["cost_usd"] == pytest.approx(
        (2 * (400 * 3 + 600 * 0.3 + 100 * 15) + 400 * 1.4 + 600 * 0.26 + 440) / 1e6
    )
    assert total["saved_usd"] == pytest.approx((2 * 600 * 2.7 + 600 * 1.14) / 1e6)


def test_what_was_not_reported_is_unknown_and_what_has_no_price_is_unpriced(tmp_path: Path):
    path = tmp_path / "usage.sqlite3"
    noted(ledger(path), spent(None), spent(None, partial=True))
    total = report(path, ("model",), None)["total"]
    assert (total["turns"], total["unknown"], total["partial"]) == (2, 2, 1)
    assert total["cost_usd"] is total["saved_usd"] is total["hit_rate"] is None
    noted(ledger(path), spent(model="nobody-knows"), spent({"prompt_tokens": 10}, side=True))
    total = report(path, ("model",), None)["total"]
    assert (total["turns"], total["side_calls"], total["unpriced"], total["input"]) == (3, 1, 1, 1010)
    assert total["cost_usd"] == pytest.approx(10 * 3 / 1e6)
    assert total["hit_rate"] == 0.6  # of the one answer that said how much of it was cached


def test_probes_are_told_apart_from_what_was_asked_for(tmp_path: Path):
    path = tmp_path / "usage.sqlite3"
    told = {"prompt_tokens": 9, "completion_tokens": 1}
    probes = [spent(told, probe=True, conversation=""), spent(None, probe=True, conversation="")]
    made = noted(ledger(path), spent(), *probes, spent(told, probe=True, conversation="", model="mystery"))
    rows = {row["model"]: row for row in report(path, ("model",), None)["rows"]}
    found = rows["kimi-k3"]
    assert (found["turns"], found["unknown"], found["input"], found["output"]) == (1, 0, 1000, 100)
    assert (found["probes"], found["probe_tokens"]) == (2, 10)
    assert found["probe_cost_usd"] == pytest.approx((9 * 3 + 15) / 1e6)
    assert (rows["mystery"]["turns"], rows["mystery"]["unpriced"], rows["mystery"]["probe_tokens"]) == (0, 0, 10)
    assert rows["mystery"]["probe_cost_usd"] is None
    assert [row["probes"] for row in made.view()["since_start"]] == [2, 1]


@pytest.fixture
def of_an_earlier_version(tmp_path: Path) -> Path:
    """A file whose table has no column for what is counted since; its columns had no defaults."""
    path = tmp_path / "usage.sqlite3"
    columns = [f"{name} TEXT NOT NULL" for name in BY_ALL] + [f"{name} INTEGER NOT NULL" for name in EARLIER]
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(f"CREATE TABLE usage ({', '.join(columns)}, PRIMARY KEY ({', '.join(BY_ALL)})) WITHOUT ROWID")
        values = ("2026-11-30", "k", "opencode-go", "kimi-k3", "c1", *[1] * len(EARLIER))
        file.execute(f"INSERT INTO usage VALUES ({', '.join('?' * len(values))})", values)  # noqa: S608
        file.execute("PRAGMA user_version = 1")
    return path


def test_a_file_of_an_earlier_version_is_read_as_it_is_and_added_to(of_an_earlier_version: Path):
    path = of_an_earlier_version
    total = report(path, ("model",), None)["total"]
    assert (total["turns"], total["probes"], total["probe_cost_usd"]) == (1, 0, None)
    noted(ledger(path), spent(), spent(probe=True, conversation=""))
    total = report(path, ("model",), None)["total"]
    assert (total["turns"], total["probes"], total["probe_tokens"]) == (2, 1, 1100)


def test_an_earlier_version_can_still_add_to_the_file_of_this_one(tmp_path: Path):
    path = tmp_path / "usage.sqlite3"
    noted(ledger(path), spent())
    names = (*BY_ALL, *EARLIER)
    with closing(sqlite3.connect(path)) as file, file:
        values = ("2026-11-30", "k", "p", "m", "c", *[1] * len(EARLIER))
        file.execute(f"INSERT INTO usage ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})", values)  # noqa: S608
    assert report(path, ("model",), None)["total"]["turns"] == 2


def test_an_explicit_zero_is_a_hit_rate():
    made = noted(
        ledger(None), spent({"prompt_tokens": 10, "cached_tokens": 0}), spent({"prompt_tokens": 10}, model="glm-5.3")
    )
    rates = {row["model"]: row["hit_rate"] for row in made.view()["since_start"]}
    assert rates == {"kimi-k3": 0.0, "glm-5.3": None}


def test_a_restart_adds_to_what_was_counted_and_so_do_two_at_once(tmp_path: Path):
    path = tmp_path / "usage.sqlite3"
    ledgers = [ledger(path) for _ in range(4)]
    threads = [
        threading.Thread(target=lambda made=made: [noted(made, spent(), spent(conversation="x")) for _ in range(10)])
        for made in ledgers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for made in ledgers:  # whoever met a locked file has kept its counts
        made.settle()
    assert report(path, ("model",), None)["total"]["turns"] == 80


def test_the_thread_writes_what_was_noted_and_closing_waits_for_it(tmp_path: Path):
    path = tmp_path / "usage.sqlite3"
    made = ledger(path)
    for _ in range(100):
        made.note(spent())
    made.close()
    assert report(path, ("model",), None)["total"]["turns"] == 100
    assert not made.problems


def test_a_file_of_ones_own(tmp_path: Path):
    path = tmp_path / "folder" / "usage.sqlite3"
    noted(ledger(path), spent())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_broken_file_is_put_aside(tmp_path: Path):
    path = tmp_path / "usage.sqlite3"
    path.write_bytes(b"this is no database at all, but it is long enough to be looked at" * 40)
    path.with_name("usage.sqlite3-wal").write_bytes(b"junk")
    said: list[str] = []
    made = noted(ledger(path, said), spent())
    assert report(path, ("model",), None)["total"]["turns"] == 1
    assert not made.problems
    assert "broken" in said[0]
    assert len(list(tmp_path.glob("*.corrupt-*"))) == 1


def test_a_locked_file_costs_nothing_but_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "usage.sqlite3"
    monkeypatch.setattr(usage_file, "_BUSY_S", 0.05)
    said: list[str] = []
    made = noted(ledger(path, said), spent())
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        noted(made, spent())
        noted(made, spent())
        assert "locked" in made.problems[0]
    noted(made, spent())
    assert not made.problems
    assert report(path, ("model",), None)["total"]["turns"] == 4
    assert len(said) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("place", ["/dev/full", "/proc/usage.sqlite3", "/dev/null/usage.sqlite3"])
def test_a_place_that_takes_no_file_is_said_once(place):
    said: list[str] = []
    made = ledger(Path(place), said)
    noted(made, spent())
    noted(made, spent())
    assert len(said) == 1
    seen = status(SimpleNamespace(usage=made, problems={"state": "too"}), NOW)
    assert set(seen["problems"]) == {"state", "usage"}
    assert seen["usage"]["since_start"][0]["turns"] == 2


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_full_disk_keeps_counts_in_memory(tmp_path: Path):
    import resource

    path = tmp_path / "usage.sqlite3"
    made = noted(ledger(path), spent())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, limits[1]))
    try:
        noted(made, *(spent(conversation=f"c{n}") for n in range(6000)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert made.problems
    assert len(made._unwritten) <= 5001
    noted(made)
    assert not made.problems
    assert report(path, ("model",), None)["total"]["turns"] == 6001


def test_keys_and_models_without_end_wait_in_bounded_memory(tmp_path: Path):
    """None is lost from the sum, while the file cannot be written."""
    made = ledger(tmp_path)  # a folder
    noted(made, *(spent(model=f"m{n}", scope=f"{n:016x}", conversation=f"c{n}") for n in range(12_000)))
    assert len(made._unwritten) <= 10_001
    assert len(made.view()["since_start"]) <= 201
    made.path = tmp_path / "usage.sqlite3"
    noted(made)
    assert report(made.path, ("provider",), None)["total"]["turns"] == 12_000


def test_a_newer_file_is_left_alone(tmp_path: Path):
    path = tmp_path / "usage.sqlite3"
    noted(ledger(path), spent())
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 2")
    made = noted(ledger(path), spent())
    assert "newer" in made.problems[0]
    assert not list(tmp_path.glob("*.corrupt-*"))


def test_conversations_of_long_ago_are_put_together(tmp_path: Path):
    path = tmp_path / "usage.sqlite3"
    noted(ledger(path), *(spent(conversation=f"c{n}", at=NOW) for n in range(20)))
    before = report(path, ("model",), None)["total"]
    made = noted(ledger(path, now=NOW + 40 * DAY_MS), spent(at=NOW + 40 * DAY_MS, conversation="late"))
    rows = report(path, ("conversation",), None)["rows"]
    assert {row["conversation"]: row["turns"] for row in rows} == {"": 20, "late": 1}
    assert report(path, ("day",), None)["rows"][0]["cost_usd"] == before["cost_usd"]
    noted(made, spent(at=NOW, conversation="c1"))
    assert report(path, ("model",), None)["total"]["turns"] == 22


def test_names_that_no_file_can_hold(tmp_path: Path):
    path = tmp_path / "usage.sqlite3"
    noted(ledger(path), spent(model="\ud800" * 500), spent(model="'; DROP TABLE usage; --"))
    rows = report(path, ("model",), None)["rows"]
    assert {row["model"] for row in rows} == {"?" * 128, "'; DROP TABLE usage; --"}


def test_what_cannot_be_kept_is_dropped_and_counted():
    made = ledger(None)
    made._start = lambda: None
    for _ in range(50_010):
        made.note(spent())
    assert made.view()["dropped"] == 10


def test_changed_prices_are_taken_up_and_bad_ones_are_not(tmp_path: Path):
    prices = tmp_path / "prices.json"
    prices.write_text('{"opencode-go": {"kimi-k3": {"input": 1000, "output": 0}}}')
    said: list[str] = []
    made = noted(ledger(None, said, prices=prices), spent({"prompt_tokens": 1000}))
    assert made.view()["since_start"][0]["cost_usd"] == 1.0
    prices.write_text("{")
    noted(made, spent({"prompt_tokens": 1000}))
    assert made.view()["since_start"][0]["cost_usd"] == 2.0
    assert "no JSON" in made.problems[0]
    made.prices_path = None
    noted(made)
    assert not made.problems
    made.prices_path = tmp_path / "gone.json"
    noted(made)
    assert "cannot be read" in made.problems[0]


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="needs to be root to become another user")
def test_a_file_in_a_folder_that_may_not_be_written_can_be_read(tmp_path: Path):
    path = tmp_path / "usage.sqlite3"
    noted(ledger(path), spent())
    os.chmod(path, 0o644)
    for folder in (tmp_path, *list(tmp_path.parents)[:-1]):
        os.chmod(folder, folder.stat().st_mode | 0o055)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setuid(65_534)
            code = 0 if usage_file.read(path, ("model",)) else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_nothing_is_found_where_nothing_is(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        report(tmp_path / "none", ("model",), None)
    usage_file.add(tmp_path / "empty", {})
    assert report(tmp_path / "empty", ("model",), None)["total"]["turns"] == 0


def test_all_or_nothing(tmp_path: Path):
    path = tmp_path / "usage.sqlite3"
    key = Key("2026-11-30", "k", "p", "m", "c")
    usage_file.add(path, {key: Sums(turns=1)})
    with pytest.raises(OverflowError):
        usage_file.add(path, {key: Sums(turns=1), key._replace(model="n"): Sums(turns=2**64)})
    assert usage_file.read(path, BY_ALL)[tuple(key)].turns == 1


def test_noting_costs_next_to_nothing(tmp_path: Path):
    made = ledger(tmp_path / "usage.sqlite3")
    one = spent()
    best = 1.0
    for _ in range(20):
        began = time.thread_time()
        for _ in range(500):
            made.note(one)
        best = min(best, (time.thread_time() - began) / 500)
    made.close()
    assert best < 5e-6
