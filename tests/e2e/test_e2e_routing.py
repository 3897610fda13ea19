"""Whether routing helps, found out over sockets: from a client's turns to status, metrics, events and behaviour."""

import json
from pathlib import Path

import aiohttp
import pytest

from proxy.logs import Log
from proxy.simulator.endpoints import NATIVE_1
from proxy.simulator.scenarios import MINUTE, SCENARIOS, Phase, Scenario
from tests.fakes.house import House, street
from tests.fakes.turns import turn

ADAPTIVE = ["pool.adaptive=true"]


async def converse(at: House, *, conversations: int = 4, turns: int = 6, name: str = "c") -> None:
    for number in range(turns):
        for one in range(conversations):
            await turn(at, f"{name}-{one}", number)


async def metrics(at: House) -> str:
    async with aiohttp.ClientSession() as session, session.get(f"{at.url}/-/metrics") as answer:
        return await answer.text()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("scenario", "regime"), [("sticky", "sticky"), ("balanced", "balanced")])
async def test_it_is_found_out_and_shown(tmp_path: Path, scenario: str, regime: str):
    async with street(tmp_path, scenario, seed=2, scale=120, settings=ADAPTIVE) as at:
        await converse(at)
        [pool] = (await at.status())["pool"]
        assert pool["routing"]["regime"] == regime
        assert pool["routing"]["confidence"] > 0.9
        assert [event["regime"] for event in at.decisions("routing")] == [regime]
        lines = [line for line in (await metrics(at)).splitlines() if line.startswith("ocpool_routing_regime{")]
        assert {line.rpartition(" ")[2] for line in lines if f'regime="{regime}"' in line} == {"1.0"}
        assert len(lines) == 3


@pytest.mark.timeout(120)
async def test_the_log_tells_what_is_believed_from_now_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    said = Log()
    said.configure(path=tmp_path / "log")
    monkeypatch.setattr("proxy.daemon.log", said)
    async with street(tmp_path, "sticky", seed=2, scale=120, settings=ADAPTIVE) as at:
        await converse(at)
    said.ready()
    said.close()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    [told] = [line for line in lines if line["event"] == "routing"]
    assert (told["level"], told["before"], told["regime"]) == ("info", "unknown", "sticky")
    assert "an id came back to its endpoint in" in told["because"]


@pytest.mark.timeout(120)
async def test_where_it_is_balanced_new_conversations_start_naturally_and_nothing_more_is_probed(tmp_path: Path):
    async with street(tmp_path, "balanced", seed=2, scale=240, settings=ADAPTIVE) as at:
        await converse(at)
        probes = len(at.probes)
        await converse(at, conversations=6, turns=2, name="later")
        assert {event["route"] for event in at.decisions("request")[-12:]} == {"natural"}
        assert len(at.probes) == probes
        assert at.decisions("retire") == []


@pytest.mark.timeout(120)
async def test_one_endpoint_is_nothing_to_choose(tmp_path: Path):
    one = Scenario("one", "", (Phase(((NATIVE_1, 1.0),)),))
    async with street(tmp_path, one, scale=120, settings=ADAPTIVE) as at:
        await converse(at, conversations=10, turns=1)
        [told] = at.decisions("routing")
        assert told["regime"] == "balanced"
        assert "nothing to choose" in told["because"]


@pytest.mark.timeout(120)
async def test_a_change_is_noticed_and_moves_no_conversation(tmp_path: Path):
    day = Scenario("turns", "", (*SCENARIOS["sticky"].phases, *_from(SCENARIOS["balanced"], 60 * MINUTE)))
    async with street(tmp_path, day, seed=2, scale=240, settings=ADAPTIVE) as at:
        await converse(at, turns=5)
        assert at.decisions("routing")[-1]["regime"] == "sticky"
        await at.until(lambda: at.clock.wall_ms() - at.daemon.started_at > 61 * MINUTE, 30)
        await converse(at, turns=8)
        assert at.decisions("routing")[-1]["regime"] == "balanced"
        bound = {event["conversation"]: event["session"] for event in at.decisions("request")[-4:]}
        await converse(at, turns=4)
        assert {event["conversation"]: event["session"] for event in at.decisions("request")[-4:]} == bound


def _from(scenario: Scenario, from_ms: float) -> list[Phase]:
    (phase,) = scenario.phases
    return [Phase(phase.endpoints, sticky=phase.sticky, hop=phase.hop, from_ms=from_ms)]
