"""The OpenAI SDK as a client: what its user and the gateway see of the pool's work."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import openai
import pytest

from pool.clock import Clock
from proxy.cli import stage
from proxy.simulator.faults import Behaviour
from proxy.simulator.record import Record
from proxy.simulator.refusals import overloaded
from tests.fakes.house import GO, GOOD, House, house, street

MODEL = "deepseek-v4.1-flash"
OTHER_MODEL = "glm-5.3-flash"
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@asynccontextmanager
async def sdk(at: House, path: str = GO, key: str = "sk-sdk", **fields: str) -> AsyncIterator[openai.AsyncOpenAI]:
    """A client that does not retry, so that a refusal which reaches it is seen. Fields: ``x_session_id="..."``."""
    headers = {name.replace("_", "-"): value for name, value in fields.items()}
    async with openai.AsyncOpenAI(
        base_url=at.url + path, api_key=key, max_retries=0, default_headers=headers
    ) as client:
        yield client


async def ask(
    client: openai.AsyncOpenAI, text: str = "Say hello.", *, stream: bool = True, model: str = MODEL, session: str = ""
) -> str:
    """One turn; the answer's text. ``session`` is sent as OpenCode does."""
    messages = [{"role": "user", "content": text}]
    headers = {"x-opencode-session": session} if session else {}
    if not stream:
        whole = await client.chat.completions.create(
            model=model, messages=messages, max_tokens=40, extra_headers=headers
        )
        return whole.choices[0].message.content or ""
    said = []
    async for chunk in await client.chat.completions.create(
        model=model, messages=messages, max_tokens=40, stream=True, extra_headers=headers
    ):
        said += [choice.delta.content or "" for choice in chunk.choices]
    return "".join(said)


async def refused(client: openai.AsyncOpenAI, session: str) -> int:
    """A turn that is refused; the status its client sees."""
    with pytest.raises(openai.APIStatusError) as caught:
        await ask(client, session=session)
    return caught.value.status_code


async def opened(at: House, client: openai.AsyncOpenAI) -> Record:
    """The first conversation of all, whose demand fills the pool."""
    await ask(client, session="opening")
    await at.stocked()
    return at.live[0]


@BOTH
async def test_the_first_conversation_starts_on_its_own_id_and_later_ones_on_verified_spares(tmp_path: Path, stream):
    """Nobody waits for a probe: what was verified meanwhile is what the next ones start on, each on its own."""
    async with street(tmp_path, "sticky", scale=180.0) as at, sdk(at) as client:
        assert await ask(client, stream=stream, session="conversation-0")
        assert at.live[0].session == "conversation-0"
        await at.stocked()
        for number in range(1, 4):
            assert await ask(client, stream=stream, session=f"conversation-{number}")
        starts = at.live[1:]
        assert {record.session for record in starts} <= at.verified
        assert len({record.session for record in starts}) == 3
        assert not any(record.bad for record in starts)
        assert {record.status for record in at.live} == {200}
        for number in range(1, 4):
            assert await ask(client, stream=stream, session=f"conversation-{number}")
        assert [record.session for record in at.live[4:]] == [record.session for record in starts]


async def test_the_client_is_told_which_route_it_was_given(tmp_path: Path):
    """The three fields that ocpool adds say which conversation it is, by which rule, and what it goes out on."""
    async with street(tmp_path) as at, sdk(at, x_session_id="shown-to-the-client") as client:
        say = client.chat.completions.with_raw_response
        message = {"role": "user", "content": "Say hello."}
        first = await say.create(model=MODEL, messages=[message], max_tokens=5)
        assert first.headers["x-ocpool-route"] == "natural"
        assert first.headers["x-ocpool-match"]
        await at.stocked()
        other = {"x-session-id": "another"}
        second = await say.create(model=MODEL, messages=[message], max_tokens=5, extra_headers=other)
        assert second.headers["x-ocpool-route"] == "spare"
        assert second.headers["x-ocpool-conversation"] != first.headers["x-ocpool-conversation"]


async def test_a_slow_route_is_retired_and_its_conversation_moves_at_its_next_turn(tmp_path: Path):
    """The first turn is exempt, because prefill is not the route's fault; the second slow one costs the id."""
    async with street(tmp_path) as at, sdk(at) as client:
        await opened(at, client)
        at.gateway.script(lambda r: not r.probe, Behaviour(upstream_ms=9_000), times=2)
        await ask(client, session="slow")
        slow = at.live[-1].session
        await ask(client, session="slow")
        assert at.live[-1].session == slow, "one slow first turn does not cost an id"
        await at.until(lambda: bool(at.decisions("retire")))
        await ask(client, session="slow")
        moved = at.live[-1].session
        assert moved != slow
        assert moved in at.verified
        await ask(client, session="slow")
        assert at.live[-1].session == moved
        assert [record.session for record in at.live].count(slow) == 2
        assert len(at.decisions("retire")) == 1


async def test_an_account_limit_is_blamed_on_no_id(tmp_path: Path):
    """Nothing is retired or rotated, probes pause, live requests go on, and a live 2xx ends the window."""
    async with street(tmp_path) as at, sdk(at) as client:
        await opened(at, client)
        await ask(client, session="limited")
        own = at.live[-1].session
        at.gateway.limit("GoUsageLimitError", 3_600_000, retry_after_s=3_600)
        spares, probes = at.spares(), len(at.probes)
        for _ in range(3):
            assert await refused(client, "limited") == 429
            assert await refused(client, "opening") == 429
        assert {r.session for r in at.live[-6:]} == {own, "opening"}
        await at.clock.sleep(60_000)
        assert len(at.probes) == probes, "a refill was due 15 s after the spare was taken"
        assert at.spares() == spares
        assert [pause["provider"] for pause in (await at.status())["pauses"]] == ["opencode-go"]
        at.gateway.calm()
        await ask(client, session="limited")
        assert at.live[-1].session == own
        assert (await at.status())["pauses"] == []
        await at.stocked()
        assert not at.decisions("retire")
        assert not at.decisions("failover")


async def test_a_gateway_wide_overload_retires_nothing_and_takes_at_most_one_spare_a_conversation(tmp_path: Path):
    """Every id is refused alike, so leaving one helps nobody; everybody keeps what they had."""
    async with street(tmp_path) as at, sdk(at) as client:
        await opened(at, client)
        await ask(client, session="overloaded")
        own = at.live[-1].session
        spares = at.spares()
        at.gateway.overload(3_600_000)
        for _ in range(3):
            assert await refused(client, "overloaded") == 529
            assert await refused(client, "opening") == 529
        assert len(spares - at.spares()) <= 2
        assert not at.decisions("retire")
        assert not at.decisions("move")
        assert [fault["model"] for fault in (await at.status())["faults"]] == [MODEL]
        probes = len(at.probes)
        await at.clock.sleep(45_000)
        assert len(at.probes) == probes
        at.gateway.calm()
        for session, sent in (("overloaded", own), ("opening", "opening")):
            await ask(client, session=session)
            assert at.live[-1].session == sent


@BOTH
@pytest.mark.parametrize("status", [429, 503, 529])
async def test_an_overload_on_one_route_is_replaced_before_the_first_byte(tmp_path: Path, stream, status):
    """The client sees one 200; the gateway saw the same bytes twice, refused on one id and accepted on another."""
    async with street(tmp_path) as at, sdk(at) as client:
        await opened(at, client)
        await ask(client, session="moving")
        crowded = at.live[-1].session
        at.gateway.script(
            lambda r: r.session == crowded and not r.probe, Behaviour(refusal=overloaded(status, 120)), times=-1
        )
        assert await ask(client, stream=stream, session="moving")
        before, after = at.live[-2:]
        assert (before.status, before.session) == (status, crowded)
        assert after.status == 200
        assert after.session in at.verified - {crowded}
        assert before.body_sha256 == after.body_sha256
        assert len(at.live) == 4
        assert await ask(client, stream=stream, session="moving")
        assert at.live[-1].session == after.session
        assert len(at.decisions("retire")) == 1


async def test_a_restart_keeps_the_bindings(tmp_path: Path):
    """Whoever had an id keeps it, its own or a spare, and no spare of the former process is lost."""
    async with stage.gateway(GOOD, 1, Clock(60.0)) as gateway:
        names = ["opening", "second", "third"]
        async with house(gateway, tmp_path) as at, sdk(at) as client:
            await opened(at, client)
            for session in names:
                await ask(client, session=session)
                await ask(client, session=session)
            had = {session: at.live[-1 - 2 * place].session for place, session in enumerate(reversed(names))}
            assert had["second"] in at.verified
            unused = at.spares()
        async with house(gateway, tmp_path) as at, sdk(at) as client:
            for session in names:
                await ask(client, session=session)
                assert at.live[-1].session == had[session]
            kept = at.spares()
            assert unused <= kept  # and what the former process found while it stopped
            await ask(client, session="fourth")
            assert at.live[-1].session in kept


async def test_a_name_in_the_base_url_is_a_conversation(tmp_path: Path):
    """``/s/<name>/`` before the path: the gateway sees the path without it and one id of its own."""
    async with street(tmp_path) as at, sdk(at) as opener, sdk(at, f"/s/work{GO}") as client:
        await opened(at, opener)
        await ask(client)
        await ask(client, "And now?")
        named = at.live[1:]
        assert {record.path for record in named} == {f"{GO}/chat/completions"}
        assert len({record.session for record in named}) == 1
        assert named[0].session in at.verified
        async with sdk(at, f"/s/play{GO}") as other:
            await ask(other)
        assert at.live[-1].session != named[0].session


async def test_a_session_header_set_once_is_a_conversation(tmp_path: Path):
    """A client with ``x-session-id`` among its default headers needs nothing else; the field itself stays here."""
    async with street(tmp_path) as at, sdk(at) as opener, sdk(at, x_session_id="chat-7") as client:
        await opened(at, opener)
        await ask(client)
        await ask(client, "And now?")
        records = at.live[1:]
        assert len({record.session for record in records}) == 1
        assert records[0].session in at.verified
        assert {record.session_fields for record in records} == {(("x-opencode-session", records[0].session),)}


async def test_a_client_without_any_id_has_an_id_for_each_conversation(tmp_path: Path):
    """The gateway refuses Go requests without a session; what is said tells conversations apart, and keys do."""
    async with street(tmp_path) as at, sdk(at) as client, sdk(at, key="sk-another") as other:
        await opened(at, client)
        await ask(client)
        await ask(client, "Something else.")
        await ask(other)
        sessions = [record.session for record in at.live[1:]]
        assert len(set(sessions)) == 3
        assert None not in sessions
        assert {record.status for record in at.live} == {200}


async def test_a_title_goes_out_on_its_conversations_id_and_takes_no_spare(tmp_path: Path):
    """Asked for on another model, without tools: no turn, so no id of its own."""
    async with street(tmp_path) as at, sdk(at) as client:
        await opened(at, client)
        await ask(client, session="titled")
        spares = at.spares()
        await ask(client, "Name this conversation.", model=OTHER_MODEL, session="titled")
        turn, title = at.live[-2:]
        assert title.model == OTHER_MODEL
        assert title.session == turn.session
        assert at.spares() >= spares
        await at.clock.sleep(60_000)
        assert {record.model for record in at.probes} == {MODEL}


async def test_without_a_credential_nothing_is_probed_and_status_says_why(tmp_path: Path):
    """``public`` is the key of OpenCode's free models and nobody's account."""
    fields = {"User_Agent": "opencode/1.18.33"}
    async with street(tmp_path) as at, sdk(at, key="public", **fields) as client:
        for session in ("free-1", "free-2"):
            assert await ask(client, model="hy4-flash-free", session=session)
        await at.clock.sleep(120_000)
        assert at.probes == []
        assert [record.session for record in at.live] == ["free-1", "free-2"]
        assert "no credential" in str(await at.status())
