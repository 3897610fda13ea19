"""`ocpool import` between the extension's file and ours, both real."""

import json
import os
import threading
import time
from pathlib import Path

import pytest

from pool.clock import Clock
from pool.stores import extension
from pool.stores.trouble import Trouble
from proxy.cli.commands import run

NOW = int(time.time() * 1000)
GO, MODEL = "opencode-go", "deepseek-v4.1-flash"
SESSION = "01a1b54b-7000-7000-8000-000000000001"
ROUTED = "7d1a90c4-1111-4222-8333-444455556666"
SPARE = "3f0c6b1e-1111-4222-8333-444455556666"


def binding(routed: str = ROUTED, **changes: object) -> dict[str, object]:
    return {
        "routedId": routed, "provider": GO, "model": MODEL, "boundAt": NOW - 60_000, "lastSeenAt": NOW - 30_000,
        "upstreamMs": 1020, "verifiedAt": NOW - 60_000, "failures": 0, **changes,
    }  # fmt: skip


def theirs(**bindings: dict[str, object]) -> dict[str, object]:
    return {
        "version": 1,
        "entries": [{"id": SPARE, "provider": GO, "model": MODEL, "upstreamMs": 941, "verifiedAt": NOW, "createdAt": NOW}, {"odd": 1}],
        "bindings": bindings or {f"{SESSION}::{GO}::{MODEL}": binding()},
        "theirs": "kept",
    }  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if "OCPOOL" in name]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / ".pi").mkdir()
    path = tmp_path / ".pi" / "opencode-session-pool.json"
    path.write_text(json.dumps(theirs()))
    return path


def ours(place: Path) -> dict[str, dict]:
    return json.loads((place.parent.parent / "state" / "state.json").read_text())


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert run(["import", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_bindings_come_in_under_a_digest_and_the_file_is_left_alone(place: Path, capsys):
    before = place.read_bytes()
    assert answer(capsys)["bindings"] == 1
    [(key, got)] = ours(place)["bindings"].items()
    assert key.startswith("imported-")
    assert key.endswith(f"::{GO}::{MODEL}")
    assert got["routedId"] == ROUTED
    assert SESSION not in json.dumps(ours(place)), "no client's id is written down"
    assert ours(place)["entries"] == []
    assert place.read_bytes() == before


def test_a_second_import_changes_nothing(place: Path, capsys):
    answer(capsys)
    before = ours(place)
    assert answer(capsys) | {"file": "", "state": ""} == {
        "bindings": 0, "known": 1, "too_old": 0, "other_providers": 0, "file": "", "state": "", "unreadable": 1,
        "spares_moved": 0, "spares_left": 1,
    }  # fmt: skip
    assert ours(place) == before


def test_a_newer_id_of_the_same_session_takes_the_earlier_ones_place(place: Path, capsys):
    answer(capsys)
    place.write_text(json.dumps(theirs(**{f"{SESSION}::{GO}::{MODEL}": binding("another-id-0001", boundAt=NOW - 5)})))
    assert answer(capsys)["bindings"] == 1
    [got] = ours(place)["bindings"].values()
    assert got["routedId"] == "another-id-0001"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"lastSeenAt": NOW - 28_900_000}, "too_old"),
        ({"lastSeenAt": NOW + 3_600_000}, "too_old"),
        ({"failures": 2}, "too_old"),
        ({"boundAt": "yesterday"}, "unreadable"),
    ],
)
def test_what_is_over_or_no_binding_stays_out(place: Path, capsys, changes: dict[str, object], why: str):
    place.write_text(json.dumps(theirs(**{f"{SESSION}::{GO}::{MODEL}": binding(**changes)})))
    got = answer(capsys)
    assert got["bindings"] == 0
    assert got[why] == 1 + (why == "unreadable")


def test_other_providers_stay_out(place: Path, capsys):
    place.write_text(json.dumps(theirs(**{f"{SESSION}::mine::{MODEL}": binding(provider="mine")})))
    assert answer(capsys)["other_providers"] == 1


def test_spares_move_and_are_gone_there(place: Path, capsys):
    assert answer(capsys, str(place), "--move")["spares_moved"] == 1
    assert [entry["id"] for entry in ours(place)["entries"]] == [SPARE]
    left = json.loads(place.read_text())
    assert left["entries"] == [{"odd": 1}], "what is no spare is not ours to take"
    assert left["theirs"] == "kept"
    assert not place.with_name(place.name + ".lock").exists()
    assert answer(capsys, str(place), "--move")["spares_moved"] == 0


def test_the_file_is_found_by_the_extensions_own_variable(place: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    other = place.with_name("elsewhere.json")
    place.rename(other)
    monkeypatch.setenv("PI_OCPOOL_STATE_PATH", str(other))
    assert answer(capsys)["file"] == str(other)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version":2}', '{"version":0}'])
def test_what_is_no_such_file_is_refused_and_nothing_changes(place: Path, capsys, text: str):
    place.write_text(text)
    assert run(["import", "--move"]) == 1
    assert str(place) in capsys.readouterr().err
    assert place.read_text() == text


def test_a_missing_file_and_our_own_are_refused(place: Path, capsys):
    assert run(["import", str(place.with_name("none.json"))]) == 1
    assert run(["import", str(place), "--set", f"state.path={place}"]) == 2
    assert "own state file" in capsys.readouterr().err


def test_a_held_lock_is_waited_for_no_longer_than_its_bound(place: Path):
    lock = place.with_name(place.name + ".lock")
    lock.write_text("pi")
    began = time.perf_counter()
    with pytest.raises(Trouble, match="locked by pi"):
        extension.take_spares(place, Clock(), wait_ms=200)
    assert 0.2 <= time.perf_counter() - began < 2
    assert lock.read_text() == "pi"
    assert json.loads(place.read_text())["entries"][0]["id"] == SPARE


def test_a_lock_that_is_given_back_in_time_is_taken(place: Path):
    lock = place.with_name(place.name + ".lock")
    lock.write_text("pi")
    threading.Timer(0.2, lock.unlink).start()
    assert len(extension.take_spares(place, Clock())) == 1


def test_a_lock_that_was_left_behind_is_taken_over(place: Path):
    lock = place.with_name(place.name + ".lock")
    lock.write_text("a pi that died")
    os.utime(lock, (time.time() - 11, time.time() - 11))
    assert len(extension.take_spares(place, Clock(), wait_ms=0)) == 1
    assert not lock.exists()


def test_a_lock_that_another_took_over_from_us_is_left_to_it(place: Path):
    lock = place.with_name(place.name + ".lock")
    with extension.locked(place, Clock()):
        lock.unlink()
        lock.write_text("another's")
    assert lock.read_text() == "another's"
