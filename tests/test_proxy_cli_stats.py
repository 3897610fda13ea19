"""`ocpool stats`, as a user sees it, and `/-/stats` beside it."""

import json
import time

import aiohttp
import pytest

from pool.clock import Clock
from proxy.cli import stage
from proxy.cli.commands import run
from proxy.insight.rotation import RotatingFile

NOW = int(time.time() * 1000)


@pytest.fixture
def path(settled_here):
    return settled_here / "events.jsonl"


def write(path, *events):
    log = RotatingFile(path, 4_000, 50)
    for event in events:
        log.write(json.dumps({"at": NOW, "model": "m", "conversation": "c" * 16, **event}).encode() + b"\n")
    log.close()


def pin(gain, **more):
    told = {"natural": "rejected", "natural_tps": 60.0, "chosen_tps": 60.0 * gain}
    return {"event": "pin", "profile": "throughput", "source": "probe", "gain": gain, **told, **more}


def test_it_says_what_routing_gained(path, capsys):
    write(path, *(pin(gain) for gain in (1.8, 2.2, 2.0, 1.9, 2.5, 2.1)))
    assert run(["stats"]) == 0
    said = capsys.readouterr().out
    assert "Routing helped: switched conversations were 2.05 times as fast in the median" in said
    assert "decisions 6 · kept natural 0 · switched 6" in said
    assert "natural route: ok 0 · rejected 6 · dead 0" in said
    assert "60 tok/s" in said


def test_it_says_no_effect_when_that_is_what_the_data_say(path, capsys):
    write(path, *(pin(gain) for gain in (0.9, 1.1, 1.05, 0.95, 1.2, 0.8, 1.0)))
    assert run(["stats"]) == 0
    assert "No effect beyond chance" in capsys.readouterr().out
    write(path.with_name("other.jsonl"), {"event": "keep-natural", "natural": "ok", "gain": 1.0})
    assert run(["stats", "--set", f"state.events_path={path.with_name('other.jsonl')}"]) == 0
    assert "No effect: no conversation was switched" in capsys.readouterr().out


def test_a_window_leaves_out_what_was_before(path, capsys):
    write(path, pin(2.0, at=NOW - 7_200_000), pin(3.0, at=NOW - 1_000))
    assert run(["stats", "--since", "1h", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["decisions"]["total"] == 1
    assert found["rows"][0]["gain"] == 3.0


@pytest.mark.parametrize("arguments", [["--since", "yesterday"], ["--nonsense"]])
def test_bad_usage_is_2(path, arguments):
    write(path, pin(2.0))
    assert run(["stats", *arguments]) == 2


def test_without_a_log_it_is_1(path, capsys):
    assert run(["stats"]) == 1
    assert "no event log" in capsys.readouterr().err


def test_days_are_shown_side_by_side(path, capsys):
    day = {"event": "request", "status": 200, "ended": "complete", "first_event_ms": 1_000.0, "tokens": {"output": 101}}
    without = [day | {"conversation": f"o{n}", "total_ms": 3_000.0 + n} for n in range(12)]
    within = [day | {"conversation": f"r{n}", "total_ms": 2_000.0 + n} for n in range(12)]
    write(
        path,
        {"event": "started", "mode": "observe"},
        *without,
        {"event": "started", "mode": "route"},
        *within,
    )
    assert run(["stats"]) == 0
    said = capsys.readouterr().out
    assert "tokens per second: better with routing, 2.0" in said
    assert "the first event: no effect, 1.00" in said


async def test_the_daemon_says_the_same_and_knows_it_after_a_restart(tmp_path):
    """Two lives of a daemon on one log; what was decided in the first counts in the second."""
    clock = Clock()
    async with stage.gateway("sticky", 1, clock) as gateway:
        async with stage.proxy(gateway.url, tmp_path, clock) as service:
            service.daemon.events.emit("pin", **{name: value for name, value in pin(2.0).items() if name != "event"})
        async with stage.proxy(gateway.url, tmp_path, clock) as service, aiohttp.ClientSession() as client:
            url = f"{service.daemon.address}/-/stats"
            async with client.get(url) as answer:
                found = await answer.json()
            assert (answer.status, found["decisions"]["switched"]) == (200, 1)
            assert found["usage"] is None or found["usage"]["total"]["turns"] == 0
            async with client.get(url, params={"since": str(clock.wall_ms() + 60_000)}) as answer:
                assert (await answer.json())["decisions"]["total"] == 0
            async with client.get(url, params={"since": "yesterday"}) as answer:
                assert answer.status == 400
