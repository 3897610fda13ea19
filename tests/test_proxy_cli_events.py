"""`ocpool events`, as a user sees it."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pool.clock import Clock
from proxy.cli.commands import run
from proxy.insight.events import EventLog
from proxy.insight.rotation import RotatingFile

ROOT = Path(__file__).parents[1]
NOW = int(time.time() * 1000)


@pytest.fixture
def path(settled_here):
    return settled_here / "events.jsonl"


def write(path, *events, max_bytes=0):
    """Put events into the log's files."""
    log = RotatingFile(path, max_bytes, 50)
    for event in events:
        log.write(json.dumps({"at": NOW, "event": "request", **event}).encode() + b"\n")
    log.close()


def test_every_file_is_read_in_order_and_json_lines_come_as_stored(path, capsys):
    """Rotated ones first."""
    write(path, *({"number": number} for number in range(30)), max_bytes=200)
    assert len(list(path.parent.glob("events.jsonl*"))) > 3
    assert run(["events", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["number"] for line in lines] == list(range(30))


def test_since_leaves_out_what_was_before(path, capsys):
    """By age or by time."""
    now = int(time.time() * 1000)
    write(path, {"at": now - 3_600_000, "number": 1}, {"at": now - 1000, "number": 2})
    assert run(["events", "--json", "--since", "10m"]) == 0
    assert [json.loads(line)["number"] for line in capsys.readouterr().out.splitlines()] == [2]


def test_a_bad_since_is_bad_usage(path, capsys):
    """Exit code 2, with examples."""
    assert run(["events", "--since", "yesterday-ish"]) == 2
    assert "15m" in capsys.readouterr().err


def test_a_line_for_people_begins_with_what_matters(path, capsys):
    """Conversation, route, model, status; the rest by name, nothing that moves the cursor."""
    write(
        path,
        {
            "conversation": "abc",
            "model": "kimi\x1b[2J",
            "route": "spare",
            "status": 200,
            "blame": "none",
            "total_ms": 12.5,
            "log_id": None,
            "tokens": {"input": 3},
        },
    )
    assert run(["events"]) == 0
    said = capsys.readouterr().out
    assert "abc spare kimi\\x1b[2J 200 none" in said
    assert 'total_ms=12.5 tokens={"input": 3}' in said
    assert "\x1b" not in said
    assert "log_id" not in said


def test_markup_in_facts_is_text(path, capsys):
    """A reason with brackets, such as [overloaded], is shown as it is."""
    write(path, {"reason": "[overloaded] [red]x[/red]"})
    assert run(["events"]) == 0
    assert "reason=[overloaded] [red]x[/red]" in capsys.readouterr().out


def test_broken_lines_are_skipped_and_counted(path, capsys):
    """On stderr, so that a pipe gets only events."""
    write(path, {"number": 1})
    with path.open("ab") as file:
        file.write(b'{"half\n\n')
    write(path, {"number": 2})
    assert run(["events", "--json"]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 2
    assert "1 broken line skipped" in said.err


def test_no_log_yet_is_said_and_exit_code_1(path, capsys):
    """With its path."""
    assert run(["events"]) == 1
    assert str(path) in capsys.readouterr().err


def test_a_log_that_cannot_be_read_is_said(path, capsys):
    """A folder in its place."""
    path.mkdir()
    assert run(["events"]) == 1
    assert "cannot be read" in capsys.readouterr().err


def test_following_shows_what_is_written_from_then_on_through_a_rotation(path):
    """A live log of another process, ended by Ctrl-C with exit code 0."""
    events = EventLog(path, 4096, 20, Clock())
    events.emit("request", number=0)
    command = [sys.executable, "-m", "proxy.cli.main", "events", "--follow", "--json"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        seen = [json.loads(process.stdout.readline())["number"]]
        for number in range(1, 200):
            events.emit("request", number=number, filler="x" * 50)
            if number % 40 == 0:
                time.sleep(0.1)
        seen += [json.loads(process.stdout.readline())["number"] for _ in range(1, 200)]
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr.read() == b""
    events.close()
    assert seen == list(range(200))
    assert len(list(path.parent.glob("events.jsonl*"))) > 2
