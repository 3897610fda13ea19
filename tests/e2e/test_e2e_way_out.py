"""A gateway that reads the session from another field than it used to: nobody's requests may fail for long."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from proxy.cli.status import headline
from proxy.simulator.knobs import Knobs
from proxy.simulator.record import Record
from proxy.wayout import AGAIN_MS
from tests.fakes.house import GO, House, street

MODEL = "deepseek-v4.1-flash"
OWN = "0199aaaa-bbbb-7ccc-8ddd-eeeeffff0000"
AGENT = "test-client/1"
CHANGED = Knobs(session_fields=("x-session-affinity",))
USUAL = Knobs()


@asynccontextmanager
async def changed(tmp_path: Path) -> AsyncIterator[House]:
    """ocpool before a gateway that reads ``x-session-affinity`` and nothing else."""
    async with street(tmp_path, settings=["probe.enabled=false"]) as made:
        made.gateway.knobs = CHANGED
        yield made


async def ask(
    at: House, field: str | None = "x-session-affinity", value: str = OWN, **more: Any
) -> aiohttp.ClientResponse:
    body = {"model": MODEL, "stream": True, "max_tokens": 4, "messages": [{"role": "user", "content": "hi"}]} | more
    headers = {"Authorization": "Bearer sk-test", "User-Agent": AGENT} | ({field: value} if field else {})
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{at.url}{GO}/chat/completions", json=body, headers=headers) as answer:
            await answer.read()
            return answer


def own_fields(record: Record) -> bool:
    """Is this what the client itself sent?"""
    return record.session_fields == (("x-session-affinity", OWN),)


async def test_a_request_whose_rewritten_field_is_refused_goes_once_more_with_the_clients_own(tmp_path: Path):
    async with changed(tmp_path) as at:
        answer = await ask(at)
        assert answer.status == 200
        assert answer.headers["x-ocpool-route"] == "none"
        assert [record.status for record in at.live] == [400, 200]
        assert at.live[0].session_fields == (("x-opencode-session", OWN),)
        assert own_fields(at.live[1])
        assert at.live[0].body_sha256 == at.live[1].body_sha256
        [line] = at.decisions("request")
        assert (line["attempts"], line["replayed"], line["bypassed"], line["verdict"]) == (2, True, True, "ok")


async def test_twice_in_a_row_and_the_provider_is_bypassed_with_a_banner_and_an_event(tmp_path: Path):
    async with changed(tmp_path) as at:
        await ask(at)
        assert (await at.status())["bypassed"] == {}
        await ask(at)
        seen = await at.status()
        assert list(seen["bypassed"]) == ["opencode-go"]
        assert seen["not_probing"]["opencode-go"] is not None
        banner = seen["problems"]["session_opencode-go"]
        assert any(banner in line for line in headline(seen))
        assert at.decisions("bypass") == [{**at.decisions("bypass")[0], "provider": "opencode-go"}]
        assert (await ask(at)).status == 200
        assert [record.status for record in at.live] == [400, 200, 400, 200, 200]
        assert own_fields(at.live[-1])
        assert at.decisions("request")[-1]["attempts"] == 1


async def test_the_provider_is_tried_again_and_routed_when_that_works(tmp_path: Path):
    async with changed(tmp_path) as at:
        for _ in range(2):
            await ask(at)
        known = at.daemon.way_out.watched["opencode-go"]
        known.again_at -= 2 * AGAIN_MS  # half an hour later
        assert (await ask(at)).status == 200
        assert [record.status for record in at.live[-2:]] == [400, 200], (
            "the trial is refused, and its client sees nothing"
        )
        assert (await at.status())["bypassed"]
        known.again_at -= 2 * AGAIN_MS
        at.gateway.knobs = USUAL
        answer = await ask(at)
        assert answer.status == 200
        assert answer.headers["x-ocpool-route"] != "none"
        seen = await at.status()
        assert seen["bypassed"] == {}
        assert "session_opencode-go" not in seen["problems"]
        assert len(at.decisions("bypass_over")) == 1


async def test_a_client_without_a_field_of_its_own_gets_the_refusal_and_nothing_is_bypassed(tmp_path: Path):
    async with changed(tmp_path) as at:
        for _ in range(3):
            answer = await ask(at, None)
            assert answer.status == 400
        assert (await at.status())["bypassed"] == {}
        assert len(at.live) == 6, "each is replayed once, and refused again"


async def test_a_refusal_of_a_request_that_was_not_rewritten_is_its_clients(tmp_path: Path):
    async with street(tmp_path, settings=["probe.enabled=false", "routing.fill_missing_session=false"]) as made:
        made.gateway.knobs = CHANGED
        assert (await ask(made, "x-opencode-session")).status == 400
        assert len(made.live) == 1


async def test_no_replay_where_the_user_wants_none(tmp_path: Path):
    async with street(tmp_path, settings=["probe.enabled=false", "recovery.max_replays=0"]) as made:
        made.gateway.knobs = CHANGED
        assert (await ask(made)).status == 400
        assert len(made.live) == 1


async def test_an_id_of_the_pool_is_neither_spent_nor_judged_while_the_provider_is_bypassed(tmp_path: Path):
    async with street(tmp_path) as made:
        assert (await ask(made, value="0199aaaa-bbbb-7ccc-8ddd-eeeeffff0001")).status == 200
        await made.stocked()
        spares = made.spares()
        made.gateway.knobs = CHANGED
        for _ in range(2):
            await ask(made, value="0199aaaa-bbbb-7ccc-8ddd-eeeeffff0001")
        probes = len(made.probes)
        for number in range(5):
            assert (await ask(made, value=f"0199aaaa-bbbb-7ccc-8ddd-eeeeffff1{number:03}")).status == 200
        assert made.spares() == spares
        assert len(made.probes) == probes
