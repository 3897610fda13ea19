"""The demo: its client, its figures, what it prints, and one whole run as a newcomer starts it."""

import asyncio
import io
import json
import random
import subprocess
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from pool.clock import Clock
from proxy.cli import showing, stage
from proxy.cli.asking import Client
from proxy.cli.calibrating import Overhead, overhead
from proxy.cli.comparing import Comparison
from proxy.cli.demo import demo
from proxy.cli.figures import Arm, Effect, arm, effect, quantile, rank_sum_z, warm_up_of
from proxy.cli.playing import Played, Player, match
from proxy.cli.stage import Change, Place
from proxy.simulator.clients import PI
from proxy.simulator.faults import Behaviour, Fault
from proxy.simulator.record import Record
from proxy.simulator.traces import conversations
from tests.fakes.daemon import COMMAND, environment
from tests.fakes.house import GOOD, street


def turn(number: int, turn: int = 0, ttfb_ms: float = 1.0, route: str = "", bad: bool = False, status: int = 200):
    """A turn that was played; ``bad`` is what the gateway wrote down."""
    record = Record(0, 0, "POST", "/", bad=bad)
    return Played(number, turn, 0.0, f"{number}.{turn}", status, ttfb_ms, route, status == 200, record)


def test_a_quantile_lies_between_its_neighbours():
    """The ends are the least and the greatest; of nothing it is zero."""
    assert [quantile([3.0, 1.0, 2.0], share) for share in (0.0, 0.25, 0.5, 1.0)] == [1.0, 1.5, 2.0, 3.0]
    assert quantile([], 0.5) == 0.0


def test_the_rank_sum_tells_a_difference_from_chance():
    """Two samples of one spread are alike; a shifted one is far off, on the side it was shifted to."""
    draw = random.Random(7)
    some, others = ([draw.gauss(10, 2) for _ in range(60)] for _ in range(2))
    assert abs(rank_sum_z(some, others)) < 2.58
    assert rank_sum_z([value - 3 for value in some], others) < -5
    assert rank_sum_z(others, [value - 3 for value in some]) > 5
    assert rank_sum_z([], others) == 0.0
    assert rank_sum_z([1.0, 1.0], [1.0, 1.0]) == 0.0


def test_the_warm_up_ends_with_the_first_conversation_that_starts_on_a_spare():
    """A later natural start is no warm-up but a miss, and counts."""
    starts = [turn(0, route="natural"), turn(1, route="natural"), turn(2, route="spare"), turn(3, route="natural")]
    assert warm_up_of(starts) == 2
    assert warm_up_of(starts[:2]) == 2
    assert warm_up_of([]) == 0


def test_an_arm_counts_turns_starts_failures_and_probes_after_the_warm_up():
    """Probes count from the beginning, because they were paid then."""
    played = [
        turn(0, bad=True),
        turn(1, 0, 2.0, "spare"),
        turn(1, 1, 4.0, "spare", bad=True),
        turn(2, 0, 9.0, status=0),
    ]
    probes = [Record(0, 0, "POST", "/", probe=True, prompt_tokens=8, completion_tokens=1)] * 3
    found = arm("sticky", "ocpool", played, [*probes, Record(0, 0, "POST", "/", prompt_tokens=9)], warm_up=1)
    assert (found.conversations, found.turns, found.failed, found.on_spares) == (2, 3, 1, 1)
    assert (found.bad_turns, found.bad_starts) == (1, 0)
    assert (found.probes, found.probe_tokens) == (3, 27)
    assert (found.ttfb_p50_ms, found.ttfb_p95_ms) == (3.0, pytest.approx(3.9))


def test_an_effect_leaves_the_warm_up_out_on_both_sides():
    """The same conversations are left out of the direct side, although nothing warmed up there."""
    direct = [turn(0, ttfb_ms=1.0)] + [turn(number, ttfb_ms=100.0 + number) for number in range(1, 30)]
    through = [turn(0, ttfb_ms=900.0)] + [turn(number, ttfb_ms=10.0 + number) for number in range(1, 30)]
    found = effect("sticky", direct, through, 1)
    assert found.p50_change_ms == -90.0
    assert found.z < -5
    assert not found.by_chance


def test_the_overhead_is_what_is_left_after_the_median_of_the_direct_way():
    """Less than nothing is nothing."""
    assert overhead([1.0, 1.0, 9.0], [2.0, 3.0, 4.0]) == Overhead(2.0, pytest.approx(2.9), 3)
    assert overhead([5.0], [1.0]) == Overhead(0.0, 0.0, 1)


async def served(raw: bytes, *, reset: bool = False):
    """A server that answers every request with these bytes."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(raw)
                await writer.drain()
                if reset:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", 0)


@pytest.mark.parametrize(
    ("raw", "status", "complete"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", 200, True),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 200, True),
        (b"HTTP/1.1 529 Overloaded\r\nX-Who: me\r\ncontent-length: 1\r\n\r\nx", 529, True),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n",
            200,
            True,
        ),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 200, True),
    ],
)
async def test_the_client_reads_an_answer_to_its_end_and_keeps_the_connection(raw, status, complete):
    """Sized and chunked, empty or not; the next answer begins where this one ended."""
    server = await served(raw)
    client = Client(Place(*server.sockets[0].getsockname()[:2]), Clock())
    for _ in range(2):
        answer = await client.ask("/", [("x-a", "b")], b"")
        assert (answer.status, answer.complete) == (status, complete)
        assert 0 <= answer.ttfb_ms <= answer.total_ms
    client.close()
    server.close()


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok", 200),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nok", 200),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nno size\r\n", 200),
        (b"HTTP/1.1 2", 0),
        (b"", 0),
    ],
)
async def test_an_answer_that_breaks_off_is_not_complete_and_the_next_request_gets_a_new_connection(raw, status):
    """What came of it is told; nothing is raised."""
    server = await served(raw, reset=True)
    client = Client(Place(*server.sockets[0].getsockname()[:2]), Clock())
    for _ in range(2):
        answer = await client.ask("/", [], b"")
        assert (answer.status, answer.complete) == (status, False)
    client.close()
    server.close()


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
    async with street(tmp_path) as at:
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
        "effects": [Effect("sticky", -14_000.0, -33_000.0, -4.6), Effect("balanced", 400.0, 1_000.0, 1.7)],
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
    assert "shorter waits: median -14.0 s, p95 -33.0 s" in text
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
    worse = example(effects=[Effect("balanced", 900.0, 1_000.0, 3.1)])
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
