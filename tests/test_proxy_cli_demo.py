"""The demo: what it plays, what it prints, and one whole run as a newcomer starts it."""

import io
import json
import subprocess
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from pool.clock import Clock
from proxy.cli import showing, stage
from proxy.cli.calibrating import Overhead
from proxy.cli.comparing import Comparison
from proxy.cli.demo import demo
from proxy.cli.figures import Arm, Effect
from proxy.cli.playing import Player, match
from proxy.cli.stage import Change, Place
from proxy.simulator.clients import PI
from proxy.simulator.faults import Behaviour, Fault
from proxy.simulator.traces import conversations
from tests.fakes.daemon import COMMAND, environment
from tests.fakes.house import GOOD, street


async def test_a_player_sends_each_turn_after_the_last_and_finds_it_in_the_gateways_log():
    """Turns grow, each body is found by its digest, and a broken one is told as such."""
    clock = Clock(600.0)
    trace = conversations(1, 3, every_ms=20_000, turns=(2, 3), clients=(PI,))
    async with stage.gateway(GOOD, 1, clock) as gateway:
        gateway.script(lambda record: record.number == 0, Behaviour(fault=Fault.CLOSE_MID_CHUNK))
        player = Player(Place("127.0.0.1", gateway.port), clock)
        await player.play(trace)
        match(player.played, gateway.log)
    assert len(player.played) == sum(len(conversation.turns) for conversation in trace)
    assert [one.served for one in player.played].count(False) == 1
    assert all(one.record is not None and not one.bad and one.route == "" for one in player.played)
    for number in range(3):
        mine = [one for one in player.played if one.number == number]
        assert [one.turn for one in mine] == list(range(len(mine)))
        assert [one.record.prompt_tokens for one in mine] == sorted(one.record.prompt_tokens for one in mine)


async def test_the_stage_runs_at_the_defaults_but_for_what_puts_it_there(tmp_path: Path):
    """Where it listens, where it asks, and where it keeps its state: nothing else is changed."""
    async with street(tmp_path, settings=["pool.adaptive=true"]) as at:
        changes = {change.key: change for change in stage.changed(at.daemon.loaded)}
        assert set(changes) == {"listen.port", "upstream.base_url", "state.path"}
        assert changes["listen.port"] == Change("listen.port", 8377, at.place.port)
        assert changes["state.path"].default is None
        assert changes["state.path"].value.startswith(str(tmp_path))


async def test_a_stage_whose_proxy_cannot_start_says_so(tmp_path: Path):
    """A file of certificates that is missing is noticed before anything is played."""
    with pytest.raises(ExceptionGroup) as caught:
        async with stage.proxy("https://localhost:1", tmp_path, Clock(), [f"upstream.ca_file={tmp_path / 'none'}"]):
            raise AssertionError("it started")
    assert caught.group_contains(RuntimeError, match="did not start")


def example(**more: object) -> Comparison:
    """A comparison as it may come out."""
    arms = [
        Arm(scenario, client, 17, 55, 0, 16_000.0, 38_000.0, bad, bad // 3, 17, probes, probes * 9)
        for scenario, client, bad, probes in (
            ("sticky", "direct", 32, 0),
            ("sticky", "ocpool", 0, 37),
            ("balanced", "direct", 0, 0),
            ("balanced", "ocpool", 0, 36),
        )
    ]
    facts = {
        "scale": 60.0,
        "seed": 1,
        "simulated_ms": 840_000.0,
        "conversations": 18,
        "overhead": Overhead(0.5, 1.25, 80),
        "says": {"sticky": "ids stay", "balanced": "ids say nothing"},
        "changes": {
            "sticky": [Change("listen.port", 8377, 4711), Change("state.path", None, "/tmp/x")],
            "balanced": [],
        },
        "warm_up": {"sticky": 1, "balanced": 2},
        "arms": arms,
        "effects": [
            Effect("sticky", (10, 0), -14_000.0, -33_000.0, 0.0004, -4.6),
            Effect("balanced", (0, 0), 400.0, 1_000.0, 1.0, 1.7),
        ],
    }
    return Comparison(**{**facts, **more})


def printed(compared: Comparison, width: int = 80) -> str:
    out = io.StringIO()
    showing.show(Console(file=out, width=width, highlight=False), compared)
    return out.getvalue()


def test_the_table_states_its_clock_its_error_its_warm_up_and_what_was_changed():
    """Whoever reads the figures reads beside them what they are worth."""
    text = " ".join(printed(example()).split())
    assert "One scaled clock for gateway, ocpool and client: 60 simulated seconds in a real one" in text
    assert "relay overhead x scale" in text
    assert "0.50 ms (p95 1.25); x 60 that is 30 ms (p95 75)" in text
    assert "1 in sticky, 2 in balanced" in text
    assert "listen.port 8377 -> 4711, state.path unset -> /tmp/x" in text
    assert "sticky ocpool 16.0 s 38.0 s 0 of 55 0 of 17 37 333" in text
    assert (
        "fewer conversations start on a bad route, 0 in place of 10 (by chance: p 0.000); median -14.0 s, p95 -33.0 s."
        in text
    )
    assert "no effect; median +0.4 s, p95 +1.0 s is what chance gives" in text
    assert showing.SHOWS in text
    assert showing.SHOWS_NOT in text


def test_the_table_fits_a_terminal_of_eighty_columns():
    """No line is cut or runs over."""
    text = printed(example())
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text


def test_a_worse_comparison_is_told_as_one():
    """Longer waits and turns without an answer are said as plainly as shorter ones."""
    worse = example(effects=[Effect("balanced", (0, 0), 900.0, 1_000.0, 1.0, 3.1)])
    worse.arms[0] = Arm("sticky", "direct", 17, 55, 2, 16_000.0, 38_000.0, 32, 10, 0, 0, 0)
    text = " ".join(printed(worse).split())
    assert "longer waits: median +0.9 s" in text
    assert "2 turns were not answered to their end" in text


def test_the_json_has_every_figure_of_the_table():
    """And the error multiplied out."""
    found = json.loads(json.dumps(showing.as_json(example())))
    assert found["clock"] == {"kind": "scaled", "scale": 60.0, "simulated_ms": 840_000}
    assert found["error"]["simulated_p95_ms"] == 75.0
    assert found["warm_up_conversations"] == {"sticky": 1, "balanced": 2}
    assert [one["client"] for one in found["arms"]] == ["direct", "ocpool", "direct", "ocpool"]
    assert [one["no_effect"] for one in found["effects"]] == [False, True]
    assert found["changed_settings"]["sticky"][0] == {"key": "listen.port", "default": 8377, "value": 4711}


def test_no_progress_is_shown_where_nobody_looks(capsys):
    """Neither on a pipe nor with ``--json``."""
    for quiet in (True, False):
        with showing.progress(quiet=quiet) as moved:
            moved(0.5)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("scale", ["61", "0.5", "fast"])
def test_a_scale_above_sixty_or_below_one_is_refused(scale):
    """The relay's own time counts that many times."""
    result = CliRunner().invoke(demo, ["--scale", scale])
    assert result.exit_code == 2
    assert "--scale" in result.output


@pytest.mark.timeout(120)
def test_a_newcomers_first_run_shows_the_difference_offline_and_within_half_a_minute(tmp_path: Path):
    """A clean environment without a key: exit code 0, nothing left behind, no turn lost, and figures that make sense."""
    began = time.perf_counter()
    ran = subprocess.run([*COMMAND, "demo", "--json"], env=environment(tmp_path), capture_output=True, timeout=100)
    took = time.perf_counter() - began
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert took < 45, "it is to take 30 s on two idle cores, and here it has no core of its own"
    found = json.loads(ran.stdout)
    by_name = {(one["scenario"], one["client"]): one for one in found["arms"]}
    direct, through = by_name["sticky", "direct"], by_name["sticky", "ocpool"]
    assert all(one["failed"] == 0 and one["turns"] > 30 for one in found["arms"])
    assert through["bad_starts"] < direct["bad_starts"]
    assert through["ttfb_p50_ms"] < direct["ttfb_p50_ms"]
    assert 0 < through["probes"] <= 40
    assert through["probe_tokens"] > 0
    assert direct["probes"] == 0
    assert by_name["balanced", "ocpool"]["bad_turns"] == 0
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == []
