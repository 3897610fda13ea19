"""The throughput profile over sockets, from a slow natural id to a better one, against the simulated gateway."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from proxy.simulator.endpoints import NATIVE_1, RELAY
from proxy.simulator.scenarios import Phase, Scenario
from proxy.simulator.styles import PLAIN
from tests.fakes.house import House, street
from tests.fakes.turns import turn

QUICK = replace(NATIVE_1, name="quick", tokens_per_s=180.0, body_ids=("hex",))
DRIPPING = replace(RELAY, name="dripping", latency=NATIVE_1.latency, prefill_tps=12_000.0, tokens_per_s=30.0)
HALF = Scenario("half", "half of the ids write slowly", (Phase(((QUICK, 1.0), (DRIPPING, 1.0))),))
THROUGHPUT = "probe.profile=throughput"


async def first_on(at: House, endpoint: str) -> str:
    """Conversations begin until one is served by this endpoint; its session id."""
    for number in range(12):
        session = f"session-{number}"
        await turn(at, session, 1)
        if at.live[-1].endpoint == endpoint:
            return session
    raise AssertionError("no id came there")


@pytest.mark.timeout(120)
async def test_a_conversation_whose_natural_id_writes_slowly_moves_to_a_better_one_and_stays(tmp_path: Path):
    async with street(tmp_path, HALF, seed=3, scale=20, settings=[THROUGHPUT]) as at:
        session = await first_on(at, "dripping")
        label = at.decisions("request")[-1]["conversation"]
        await at.until(lambda: [e for e in at.decisions("probe-round") if e["conversation"] == label], 60)
        ended = [e for e in at.decisions("probe-round") if e["conversation"] == label][-1]
        assert ended["natural"] == "rejected"
        assert 15 < ended["natural_tps"] < 60
        await turn(at, session, 2)
        if ended["best_tps"] is None:
            pytest.skip("three ids in a row were slow")
        assert at.live[-1].endpoint == "quick"
        assert at.live[-1].session != session
        await at.until(lambda: bool(at.decisions("pin")))
        (pinned,) = at.decisions("pin")
        assert pinned["gain"] > 1.5
        assert pinned["chosen_tps"] > 70
        routed = at.live[-1].session
        for number in range(3, 6):
            await turn(at, session, number)
            assert at.live[-1].session == routed
        assert at.decisions("turn")[-1]["locked"]
        assert at.searches == 0


@pytest.mark.timeout(120)
async def test_a_good_natural_id_is_kept_and_costs_no_probe(tmp_path: Path):
    async with street(tmp_path, Scenario("good", "", (Phase(((QUICK, 1.0),)),)), scale=20, settings=[THROUGHPUT]) as at:
        for number in range(3):
            await turn(at, "s-1", number)
        assert {record.session for record in at.live} == {"s-1"}
        (kept,) = at.decisions("keep-natural")
        assert kept["natural"] == "ok"
        assert kept["natural_tps"] > 70
        assert at.probes == []


@pytest.mark.timeout(120)
async def test_with_a_budget_the_round_precedes_the_first_turn(tmp_path: Path):
    settings = [THROUGHPUT, "pool.request_budget_ms=100000"]
    async with street(tmp_path, HALF, seed=3, scale=20, settings=[*settings, "probe.api_key=sk-probe"]) as at:
        await asyncio.gather(*(turn(at, f"s-{number}", 1) for number in range(3)))
        assert at.searches == 3
        await at.until(
            lambda: len(at.decisions("keep-natural") + at.decisions("pin")) + len(at.decisions("skip-pin")) == 3
        )
        slow = [record for record in at.live if record.endpoint == "dripping"]
        assert len(slow) <= len(at.decisions("skip-pin"))
        assert all(record.max_tokens == 96 and record.stream for record in at.probes)


@pytest.mark.timeout(120)
async def test_without_usage_speed_is_counted_marked_and_evicts_nobody(tmp_path: Path):
    only = Scenario("slow", "", (Phase(((replace(DRIPPING, style=replace(PLAIN, usage="absent")), 1.0),)),))
    async with street(tmp_path, only, scale=20, settings=[THROUGHPUT]) as at:
        for number in range(3):
            await turn(at, "s-1", number, usage=False)
        told = at.decisions("turn")
        assert all(one["estimated"] for one in told)
        assert {record.session for record in at.live} == {"s-1"}
        assert at.decisions("mark") == []
