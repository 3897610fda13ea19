"""``ocpool probe`` and ``ocpool diagnose`` against the simulated gateway."""

import asyncio
import contextlib
import json
import socket
import threading

import pytest

from config.settings import Settings
from pool.clock import Clock
from pool.estimator import Belief
from pool.model import ModelKey, ProbeKind, ProbeResult
from pool.policy import Regime
from pool.ports import Batch, Know
from pool.stores.file import FileStore
from proxy.cli.commands import run
from proxy.cli.diagnose import false_rejections
from proxy.simulator.server import Gateway


@contextlib.contextmanager
def simulated(scenario, *, scale=50.0, seed=1):
    """A simulated gateway in a thread of its own, since a command runs its own event loop."""
    gateway = Gateway(scenario, seed, Clock(scale))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def do(coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(10)

    try:
        do(gateway.start())
        yield gateway
    finally:
        do(gateway.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@pytest.fixture(autouse=True)
def environ(tmp_path, monkeypatch):
    """A user with a key in the environment and nothing else."""
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "STATE_DIRECTORY", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OPENCODE_API_KEY", "sk-test-0000000000")


@pytest.fixture
def nobody():
    """An address that nobody serves: bound, so that no one else can take it, and not listening."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


def json_of(capsys):
    return json.loads(capsys.readouterr().out)


QUICK = ["--set", "probe.min_interval_ms=0"]


def test_probe_shows_timings_as_a_table(capsys):
    with simulated("sticky") as gateway:
        assert run(["probe", "--upstream", gateway.url, "--count", "3", *QUICK]) == 0
    out = capsys.readouterr().out
    assert "upstream ms" in out
    assert "OPENCODE_API_KEY" in out
    assert "sk-test" not in out
    assert len(gateway.log) == 3
    assert len({record.session for record in gateway.log}) == 3
    assert all(record.probe and record.max_tokens == 1 and not record.stream for record in gateway.log)


def test_probe_prints_json_with_digests_in_place_of_ids(capsys):
    with simulated("sticky") as gateway:
        assert run(["probe", "--upstream", gateway.url, "--json", *QUICK]) == 0
    found = json_of(capsys)
    assert len(found["results"]) == 2
    sessions = {record.session for record in gateway.log}
    assert not any(session in json.dumps(found) for session in sessions)
    assert {result["found"] for result in found["results"]} <= {"fast", "slow"}


def test_probe_names_the_model_and_the_plan():
    with simulated("sticky") as gateway:
        run(["probe", "--upstream", gateway.url, "--count", "1", "--model", "glm-5.3", "--provider", "opencode"])
    [record] = gateway.log
    assert (record.model, record.path) == ("glm-5.3", "/zen/v1/chat/completions")


def test_probe_stops_at_a_limit_and_says_so(capsys):
    with simulated("sticky") as gateway:
        gateway.limit("GoUsageLimitError", 3_600_000)
        assert run(["probe", "--upstream", gateway.url, "--count", "4", "--json", *QUICK]) == 1
    found = json_of(capsys)
    assert [result["found"] for result in found["results"]] == ["limit"]
    assert found["stopped"]
    assert len(gateway.log) == 1


def test_probe_without_a_key_says_where_one_may_be(capsys, monkeypatch, nobody):
    monkeypatch.delenv("OPENCODE_API_KEY")
    assert run(["probe", "--upstream", nobody]) == 1
    assert "--api-key-env" in capsys.readouterr().err


def test_probe_of_nobody_is_a_failure_without_a_trace(capsys, nobody):
    assert run(["probe", "--upstream", nobody, "--json"]) == 1
    [result] = json_of(capsys)["results"]
    assert (result["found"], result["status"]) == ("transport", None)


@pytest.mark.parametrize("flags", [["--count", "0"], ["--count", "17"], ["--provider", "x"], ["--set", "probe.x=1"]])
def test_bad_usage_is_exit_code_2(flags):
    assert run(["probe", *flags]) == 2


def test_seed_puts_fast_ids_into_the_pool(capsys, tmp_path):
    with simulated("sticky") as gateway:
        assert run(["probe", "--upstream", gateway.url, "--count", "8", "--seed", "--json", *QUICK]) == 0
    found = json_of(capsys)
    fast = [result for result in found["results"] if result["found"] == "fast"]
    assert found["seeded"] == len(fast) > 0
    [path] = tmp_path.rglob("state.json")
    entries = json.loads(path.read_text())["entries"]
    assert {entry["id"] for entry in entries} <= {record.session for record in gateway.log}
    assert len(entries) == len(fast)
    assert all(entry["model"] == "deepseek-v4.1-flash" for entry in entries)
    bad = {record.session for record in gateway.log if record.bad}
    assert not bad & {entry["id"] for entry in entries}


def test_seed_counts_against_the_hourly_cap(capsys):
    capped = ["--set", "pool.max_probes_per_hour=3", *QUICK]
    with simulated("sticky") as gateway:
        run(["probe", "--upstream", gateway.url, "--count", "5", "--seed", "--json", *capped])
    found = json_of(capsys)
    assert len(found["results"]) == 3
    assert "max_probes_per_hour" in found["stopped"]


def test_where_speed_counts_probes_show_it_and_seed_keeps_it(capsys, tmp_path):
    paced = ["--set", "probe.profile=throughput", *QUICK]
    with simulated("sticky", scale=8) as gateway:
        assert run(["probe", "--upstream", gateway.url, "--count", "6", "--seed", "--json", *paced]) == 0
    found = json_of(capsys)
    assert all(record.stream and record.max_tokens == 96 for record in gateway.log)
    fast = [result for result in found["results"] if result["found"] == "fast"]
    assert fast
    assert all(result["tps"] > 70 and not result["estimated"] for result in fast)
    assert {result["reason"] for result in found["results"] if result["found"] == "slow"} <= {
        "too slow", "late first token", "took too long",
    }  # fmt: skip
    [path] = tmp_path.rglob("state.json")
    assert all(entry["tps"] > 70 for entry in json.loads(path.read_text())["entries"])
    with simulated("sticky", scale=8) as gateway:
        run(["diagnose", "--upstream", gateway.url, *paced])
    assert "tok/s" in capsys.readouterr().out


def test_diagnose_tells_what_the_daemons_own_traffic_says(capsys, tmp_path):
    key = ModelKey("opencode-go", "deepseek-v4.1-flash")
    with simulated("balanced") as gateway:
        there = ["--set", f"upstream.base_url={gateway.url}", "--set", f"state.path={tmp_path / 's.json'}"]
        store = FileStore(tmp_path / "s.json")
        now = Clock().wall_ms()
        store.commit(Batch((Know(key, Belief(Regime.BALANCED, -5.5, 41, now - 60_000)),)), now)
        assert run(["diagnose", "--json", *there, *QUICK]) == 0
        found = json_of(capsys)
        assert (found["learned"]["routing"], found["learned"]["compared"]) == ("balanced", 41)
        run(["diagnose", *there, *QUICK])
    assert "own traffic says balanced: 41 comparisons" in capsys.readouterr().out


def test_diagnose_sees_sticky_routing(capsys):
    with simulated("sticky") as gateway:
        assert run(["diagnose", "--upstream", gateway.url, "--json", *QUICK]) == 0
    found = json_of(capsys)
    assert (found["routing"], found["falseRejections"]) == ("sticky", 0)
    assert len(gateway.log) == 8
    assert len({record.session for record in gateway.log}) == 5


def test_diagnose_sees_balanced_routing(capsys):
    with simulated("balanced") as gateway:
        assert run(["diagnose", "--upstream", gateway.url, "--json", *QUICK]) == 0
    assert json_of(capsys)["routing"] == "balanced"


def test_diagnose_reproduces_the_old_classifiers_false_rejections(capsys):
    old = ["--set", "probe.require_gateway_id=true", *QUICK]
    with simulated("balanced") as gateway:
        assert run(["diagnose", "--upstream", gateway.url, *old]) == 1
    out = capsys.readouterr().out
    assert "rejected" in out
    assert "require_gateway_id" in out


def test_diagnose_of_a_gateway_that_answers_nothing_is_a_failure(capsys, nobody):
    assert run(["diagnose", "--upstream", nobody, "--json"]) == 1
    assert json_of(capsys)["routing"] == "unknown"


def test_a_false_rejection_is_a_fast_answer_that_was_not_called_fast():
    def result(kind, upstream_ms):
        return ProbeResult("id", kind, upstream_ms, 9999.0, True, 200)

    mismatch = result(ProbeKind.MISMATCH, 448.0)
    others = [result(ProbeKind.FAST, 448.0), result(ProbeKind.SLOW, 9000.0), result(ProbeKind.TIMEOUT, None)]
    assert false_rejections([mismatch, *others], Settings(), "m") == [mismatch]
