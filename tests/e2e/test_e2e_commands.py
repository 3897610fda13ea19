"""Every command as a user runs it, a process of its own, beside a running daemon and before a gateway."""

import asyncio
import contextlib
import json
import os
import re
import signal
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from pool.clock import Clock
from pool.ids import short
from proxy.simulator.faults import Behaviour
from proxy.simulator.knobs import Knobs
from proxy.simulator.server import Gateway
from tests.fakes.daemon import COMMAND, environment
from tests.fakes.fleet import SETTINGS
from tests.fakes.kept import KEY, Kept, ask, house, until

MODEL = ("--model", "kimi-k3")
QUICK = ("--set", "probe.min_interval_ms=0")


async def run(folder: Path, *arguments: str, code: int = 0, **more: str) -> str:
    """One command, with the environment of the daemon in this folder; returns what it printed."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        cwd=folder,
        env=environment(folder, STATE_DIRECTORY=str(folder / "kept"), **more),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == code, (arguments, process.returncode, out.decode(), err.decode())
    assert b"Traceback" not in err, err.decode()
    return out.decode()


async def of(folder: Path, *arguments: str, code: int = 0, **more: str):
    """The JSON that a command prints."""
    return json.loads(await run(folder, *arguments, "--json", code=code, **more))


async def stocked(daemon: Kept, count: int = 2) -> list[str]:
    """Two conversations, the second on a spare, and spares in reserve; the ids they went out on."""
    first = await daemon.say("first-conversation")
    assert await daemon.say("first-conversation") == first
    await until(lambda: daemon.state.is_file() and len(daemon.kept().get("reserved", [])) == count, 20)
    second = await daemon.say("second-conversation")
    await until(lambda: any(b["routedId"] == second for b in daemon.kept()["bindings"].values()))
    await until(lambda: len(daemon.kept().get("reserved", [])) == count, 20)
    return [first, second]


async def test_status_and_inspect_tell_the_same_story(tmp_path):
    """Live and from the file: two bindings and the spares, ids as digests; as tables and as JSON."""
    async with house(tmp_path) as daemon:
        first, second = await stocked(daemon)
        live, kept = await of(tmp_path, "status"), await of(tmp_path, "inspect")
        assert (live["address"], live["pid"]) == (f"http://127.0.0.1:{daemon.port}", daemon.process.pid)
        assert [(pool["model"], pool["fresh"], pool["target"], pool["bound"]) for pool in live["pool"]] == [
            ("kimi-k3", 2, 2, 2)
        ]
        assert {b["source"]: b["id"] for b in live["bindings"]} == {"natural": short(first), "spare": short(second)}
        assert {b["source"] for b in kept["bindings"]} == {"natural", "spare"}
        assert {b["conversation"] for b in kept["bindings"]} == {b["conversation"] for b in live["bindings"]}
        assert {s["id"] for s in kept["spares"]} == {i["id"] for i in live["pool"][0]["ids"]}
        assert all(spare["reserved_by"] for spare in kept["spares"])
        for told in (await run(tmp_path, "status"), await run(tmp_path, "inspect")):
            assert short(second) in told
            assert "kimi-k3" in told
            assert second not in told
            assert KEY.decode() not in told
        assert live["problems"] == {}
    assert "no daemon" in await run_err(tmp_path, "status")


async def run_err(folder: Path, *arguments: str) -> str:
    """What a command that fails with 1 says on stderr."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        cwd=folder,
        env=environment(folder, STATE_DIRECTORY=str(folder / "kept")),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert (process.returncode, out) == (1, b""), (process.returncode, out, err)
    return err.decode()


async def test_repin_moves_one_conversation_and_retires_its_id(tmp_path):
    """The other one stays; an unknown label is a failure."""
    async with house(tmp_path) as daemon:
        first, second = await stocked(daemon)
        [label] = [b["conversation"] for b in (await of(tmp_path, "status"))["bindings"] if b["source"] == "spare"]
        assert await of(tmp_path, "repin", label) == {"conversation": label, "repinned": 1}
        third = await daemon.say("second-conversation")
        assert third not in {first, second}
        assert await daemon.say("first-conversation") == first
        assert await daemon.say("second-conversation") == third
        await until(lambda: daemon.kept().get("retired"))
        assert "No conversation has this label" in await run_err(tmp_path, "repin", "0123456789abcdef")
        assert "route" in await run(tmp_path, "repin")
        assert await daemon.say("second-conversation") != third


async def test_events_shows_requests_and_decisions_and_follows_new_ones(tmp_path):
    """A line each; with --follow a new one within a second or two, until it is interrupted."""
    async with house(tmp_path, state__events_path=None) as daemon:
        _, second = await stocked(daemon)
        lines = [json.loads(line) for line in (await run(tmp_path, "events", "--json")).splitlines()]
        names = [line["event"] for line in lines]
        assert {"started", "request", "natural", "probe", "take"} <= set(names)
        assert names.count("request") == 3
        taken = next(line for line in lines if line["event"] == "request" and line["route"] == "spare")
        assert taken["session"] == short(second)
        assert "request" in await run(tmp_path, "events", "--since", "1h")
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            "events",
            "--follow",
            "--json",
            "--since",
            "1h",
            env=environment(tmp_path, STATE_DIRECTORY=str(tmp_path / "kept"), PYTHONUNBUFFERED="1"),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None

        async def next_request() -> dict:
            while True:
                line = json.loads(await process.stdout.readline())
                if line["event"] == "request":
                    return line

        try:
            async with asyncio.timeout(30):  # it has begun when it told what was there already
                last = [await next_request() for _ in range(3)][-1]
            await daemon.say("first-conversation")
            async with asyncio.timeout(5):
                assert (await next_request())["request"] == last["request"] + 1
        finally:
            process.send_signal(signal.SIGINT)
            await asyncio.wait_for(process.communicate(), 10)
        assert process.returncode == 0


async def test_probe_shows_timings_and_seeds_become_spares_that_are_used(tmp_path):
    """Of a daemon that probes nothing itself: the ids that the command found start its next conversations."""
    async with house(tmp_path, probe__enabled=False) as daemon:
        url = ("--upstream", daemon.gateway.url)
        key = {"OPENCODE_API_KEY": KEY.decode()}
        plain = await of(tmp_path, "probe", *MODEL, *url, *QUICK, **key)
        assert [r["found"] for r in plain["results"]] == ["fast", "fast"]
        assert plain["seeded"] is None
        assert "upstream ms" in await run(tmp_path, "probe", "--count", "1", *MODEL, *url, *QUICK, **key)
        await daemon.say("first-conversation")
        mark = len(daemon.gateway.log)
        seeded = await of(tmp_path, "probe", "--seed", "--count", "3", *MODEL, *url, *QUICK, **key)
        assert seeded["seeded"] == 3
        ids = {record.session for record in daemon.gateway.log[mark:] if record.probe}
        assert {short(one) for one in ids if one} == {result["session"] for result in seeded["results"]}
        await until(lambda: len(daemon.kept().get("reserved", [])) == 2, 20)
        started = [await daemon.say("second-conversation"), await daemon.say("third-conversation")]
        assert len(set(started)) == 2
        assert set(started) <= ids
        assert KEY.decode() not in json.dumps([plain, seeded])


@contextlib.asynccontextmanager
async def day(scenario: str):
    """A gateway fifty times as fast as the real one."""
    gateway = Gateway(scenario, 1, Clock(50))
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.stop()


async def test_diagnose_tells_routing_and_finds_the_old_classifiers_false_rejections(tmp_path):
    """Exit code 0 by default, 1 where fast answers are rejected by the form of their ids."""
    key = {"OPENCODE_API_KEY": KEY.decode()}
    for scenario in ("sticky", "balanced"):
        async with day(scenario) as gateway:
            usual = await of(tmp_path, "diagnose", "--upstream", gateway.url, *QUICK, **key)
            assert usual["falseRejections"] == 0
            assert usual["routing"] in {scenario, "unknown"}  # five ids may happen to be alike
            assert len(gateway.log) == len(usual["results"]) == 8
    old = ("--set", "probe.require_gateway_id=true")
    async with day("balanced") as gateway:
        gateway.knobs = Knobs(every=Behaviour(upstream_ms=400.0))  # all of them fast, their ids of three forms
        told = await run(tmp_path, "diagnose", "--upstream", gateway.url, *QUICK, *old, code=1, **key)
        assert "rejected" in told
        found = await of(tmp_path, "diagnose", "--upstream", gateway.url, *QUICK, *old, code=1, **key)
        assert found["falseRejections"] > 0


async def test_config_show_names_values_and_origins(tmp_path):
    """Command line, environment, file, default; secrets masked."""
    file = tmp_path / "c.toml"
    file.write_text('[pool]\nsize = 5\n[probe]\napi_key = "sk-canary"\n')
    file.chmod(0o600)
    arguments = ("config", "show", "--config", str(file), "--set", "listen.port=1234")
    found = (await of(tmp_path, *arguments, OCPOOL_POOL__TTL_MS="60000"))["settings"]
    assert found["pool.size"]["value"] == 5
    assert str(file) in found["pool.size"]["origin"]
    assert (found["listen.port"]["value"], found["listen.port"]["origin"]) == (1234, "command line")
    assert found["pool.ttl_ms"]["value"] == 60_000
    assert "OCPOOL_POOL__TTL_MS" in found["pool.ttl_ms"]["origin"]
    assert found["pool.refill_delay_ms"]["origin"] == "default"
    text = await run(tmp_path, *arguments)
    assert "size = 5" in text
    assert "sk-canary" not in text + json.dumps(found)


async def get(daemon: Kept, path: bytes, method: bytes = b"GET"):
    return await ask(daemon, path, body=b"", method=method)


async def test_health_and_readiness_follow_the_daemons_life(tmp_path):
    """Both say yes while it serves; while it drains, no new connection is accepted at all."""
    async with house(tmp_path) as daemon:
        health, ready = await get(daemon, b"/-/health"), await get(daemon, b"/-/ready")
        assert (health.status, json.loads(health.data)["pid"]) == (200, daemon.process.pid)
        assert (ready.status, json.loads(ready.data)["ready"]) == (200, True)
        assert (await get(daemon, b"/-/nothing")).status == 404
        assert (await get(daemon, b"/-/refresh")).status == 405
        assert (await get(daemon, b"/-/health", b"HEAD")).data == b""


async def test_metrics_are_prometheus_text_and_agree_with_the_gateway(tmp_path):
    """As many requests and probes as the gateway saw; no series is told twice."""
    async with house(tmp_path) as daemon:
        await stocked(daemon)
        answer = await get(daemon, b"/-/metrics")
        assert (answer.one(b"content-type") or b"").startswith(b"text/plain; version=0.0.4")
        families = list(text_string_to_metric_families(answer.data.decode()))
        samples = [sample for family in families for sample in family.samples]
        assert len({(s.name, tuple(sorted(s.labels.items()))) for s in samples}) == len(samples)
        assert all(family.documentation for family in families)

        def total(name: str, **labels: str) -> float:
            return sum(s.value for s in samples if s.name == name and labels.items() <= s.labels.items())

        live = [record for record in daemon.gateway.log if not record.probe]
        probes = len(daemon.gateway.log) - len(live)
        assert total("ocpool_requests_total") == total("ocpool_requests_total", status="200") == len(live) == 3
        assert total("ocpool_route_starts_total", source="spare") == 1
        assert total("ocpool_probes_total", kind="fast") == probes
        assert total("ocpool_pool_spares", state="fresh") == total("ocpool_pool_target") == 2
        assert total("ocpool_ready") == 1
        assert all(re.fullmatch(r"[a-z_]+", sample.name) for sample in samples)


async def test_refresh_fills_the_pool_at_once(tmp_path):
    """With both timers off nothing is probed until it is asked for."""
    async with house(tmp_path, pool__refill_delay_ms=0, pool__refresh_interval_ms=0) as daemon:
        await daemon.say("first-conversation")
        await asyncio.sleep(1.5)
        assert not [record for record in daemon.gateway.log if record.probe]
        answer = await get(daemon, b"/-/refresh", b"POST")
        assert (answer.status, json.loads(answer.data)) == (202, {"refreshing": True})
        await until(lambda: len([record for record in daemon.gateway.log if record.probe]) == SETTINGS["pool__size"])


async def test_commands_without_a_daemon_or_a_file_say_so_and_fail_with_1(tmp_path):
    """One line, on stderr."""
    (tmp_path / "kept").mkdir()
    for command, word in (
        (("status",), "daemon"),
        (("repin",), "daemon"),
        (("inspect",), "state file"),
        (("events",), "event log"),
    ):
        said = await run_err(tmp_path, *command)
        assert word in said
        assert said.count("\n") == 1
    assert os.listdir(tmp_path / "kept") == []
