"""The event log as it is written."""

import os
import stat
import time

import orjson

from pool.clock import Clock
from proxy.insight.events import EventLog
from proxy.insight.reading import EventReader
from proxy.insight.redact import MASK, Redactor, digest

UUID = "3f0c6b1e-1111-4222-8333-444455556666"


def log(path, **kinds):
    """A log with bounds that do not matter here."""
    return EventLog(path, kinds.pop("max_bytes", 1 << 20), kinds.pop("keep", 3), Clock(), **kinds)


def until(condition):
    """Wait for a thread, at most five seconds."""
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end, "never happened"
        time.sleep(0.005)


def lines(path):
    """What is in the live file."""
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def test_an_event_is_one_json_line_with_its_instant_and_name(tmp_path):
    """at and event come first, the facts as given."""
    events = log(tmp_path / "e.jsonl")
    events.emit("take", conversation="ab", kind="fast", upstream_ms=941.5, endpoint=None)
    events.close()
    (event,) = lines(tmp_path / "e.jsonl")
    assert list(event)[:2] == ["at", "event"]
    assert abs(event.pop("at") - time.time() * 1000) < 60_000
    assert event == {"event": "take", "conversation": "ab", "kind": "fast", "upstream_ms": 941.5, "endpoint": None}


def test_secrets_and_ids_never_reach_the_file_or_the_status(tmp_path):
    """What a careless caller passed is masked in both places."""
    events = log(tmp_path / "e.jsonl", redactor=Redactor(["planted-secret"]))
    events.emit("request", session=UUID, reason="Bearer abcdef123 planted-secret", authorization="x")
    events.close()
    (written,), (shown,) = lines(tmp_path / "e.jsonl"), events.last(5)
    for event in (written, shown):
        assert event["session"] == f"id:{digest(UUID)}"
        assert event["authorization"] == MASK
        assert "planted-secret" not in str(event)
        assert "abcdef123" not in str(event)


def test_emit_costs_microseconds_and_survives_any_fact(tmp_path):
    """Ten thousand events in well under a second, a cycle and a surrogate among them."""
    events = log(tmp_path / "e.jsonl")
    cycle = {}
    cycle["self"] = cycle
    events.emit("odd", cycle=cycle)
    events.emit("odd", text="\ud800", number=2**70, thing=object())
    began = time.perf_counter()
    for _ in range(5000):
        events.emit("request", status=200, model="kimi-k3", total_ms=12.5)
    assert time.perf_counter() - began < 0.5
    events.close()
    written = lines(tmp_path / "e.jsonl")
    assert len(written) == 5002
    assert written[0]["event"] == "unwritable"


def test_the_recent_events_are_kept_in_memory_newest_first():
    """Without a file as with one; by name where asked."""
    events = log(None)
    for number in range(1000):
        events.emit("request" if number % 2 else "take", number=number)
    assert [event["number"] for event in events.last(3, "request")] == [999, 997, 995]
    assert len(events.last(10_000)) == len(events.recent) == 256
    events.close()
    assert events.dropped == 0


def test_the_file_rotates_stays_private_and_can_be_read_through(tmp_path):
    """Every event of several files in order, each file 0600, no more than asked for."""
    before = os.umask(0)
    try:
        events = log(tmp_path / "new" / "e.jsonl", max_bytes=4096, keep=100)
        for number in range(500):
            events.emit("request", number=number)
            if number % 50 == 0:
                until(lambda: not events._writer._queue)
        events.close()
    finally:
        os.umask(before)
    files = list((tmp_path / "new").iterdir())
    assert len(files) > 3
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    read = EventReader(tmp_path / "new" / "e.jsonl")
    assert [event["number"] for event in read.stored()] == list(range(500))
    read.close()


def test_an_unwritable_file_is_said_once_and_left_again(tmp_path):
    """A folder in the way: one warning, events lost and counted, then everything goes on."""
    path, said = tmp_path / "e.jsonl", []
    path.mkdir()
    events = log(path, warn=said.append)
    for number in range(3):
        events.emit("request")
        until(lambda expected=number + 1: events.dropped == expected)
    assert events.failing
    path.rmdir()
    events.emit("request")
    until(path.exists)
    events.close()
    assert [event["event"] for event in lines(path)] == ["request", "events_dropped"]
    assert lines(path)[1]["count"] == 3
    assert len(said) == 2
    assert "cannot be written" in said[0]
    assert "again" in said[1]


def test_a_deleted_file_comes_back(tmp_path):
    """Somebody removed it while the daemon runs."""
    path = tmp_path / "e.jsonl"
    events = log(path)
    events.emit("one")
    until(path.exists)
    path.unlink()
    events.emit("two")
    events.close()
    assert [event["event"] for event in lines(path)] == ["two"]
