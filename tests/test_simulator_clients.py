"""The official SDK reads the double, and the traces are what real clients send."""

import re
from collections.abc import AsyncIterator

import openai
import orjson
import pytest

from proxy.simulator.clients import CLIENTS, OPENCODE, OPENCODE_CUSTOM, PI, SDK, Refused
from proxy.simulator.draw import Draw
from proxy.simulator.prompts import common_blocks, prompt_of
from proxy.simulator.styles import DEEPSEEK, MOONSHOT, PLAIN, TWICE, WINDOWS, Style
from proxy.simulator.traces import Conversation, conversations
from tests.fakes.simulated import MODEL, ask, chat, gateway, quick

TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}]
COST = Style(done="cost", usage="twice", reasoning="reasoning")


@pytest.fixture
async def sdk(request) -> AsyncIterator[openai.AsyncOpenAI]:
    async with (
        gateway(knobs=quick(style=request.param)) as made,
        openai.AsyncOpenAI(
            base_url=f"{made.url}/zen/go/v1", api_key="sk-a", max_retries=0, default_headers={"x-opencode-session": "s"}
        ) as client,
    ):
        client.made = made
        yield client


@pytest.mark.parametrize("sdk", [PLAIN, DEEPSEEK, TWICE, WINDOWS, MOONSHOT, COST], indirect=True)
async def test_the_sdk_reads_chat_completions_streamed_and_whole(sdk):
    """In every spelling, with tool calls and thinking."""
    asked = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
    whole = await sdk.chat.completions.create(**asked)
    text, usage, finish = "", None, None
    async for chunk in await sdk.chat.completions.create(**asked, stream=True):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
    assert len(text) > 20
    assert finish == whole.choices[0].finish_reason == "stop"
    assert usage.completion_tokens == whole.usage.completion_tokens == 20
    sdk.made.knobs = quick(tool_calls=True)
    called = await sdk.chat.completions.create(**asked, tools=TOOLS)
    assert called.choices[0].message.tool_calls[0].function.name == "read"
    async with sdk.chat.completions.stream(**asked, tools=TOOLS) as stream:
        final = await stream.get_final_completion()
    assert orjson.loads(final.choices[0].message.tool_calls[0].function.arguments)["limit"] == 40


@pytest.mark.parametrize("sdk", [PLAIN], indirect=True)
async def test_the_sdk_reads_responses_models_and_errors(sdk):
    """And raises what it should."""
    asked = {"model": "gpt-6-luna", "input": "hi"}
    whole = await sdk.responses.create(**asked)
    async with sdk.responses.stream(**asked) as stream:
        final = await stream.get_final_response()
    assert len(whole.output_text) > 20
    assert len(final.output_text) > 20
    assert MODEL in [model.id async for model in sdk.models.list()]
    sdk.made.limit("GoUsageLimitError", 60_000)
    with pytest.raises(openai.RateLimitError, match="5 hour usage limit"):
        await sdk.responses.create(**asked)
    with pytest.raises(openai.BadRequestError, match="missing x-opencode-session"):
        await sdk.responses.create(**asked, extra_headers={"x-opencode-session": ""})


def bodies(conversation: Conversation, turns: int) -> list[dict]:
    return [orjson.loads(conversation.call(turn).body) for turn in range(turns)]


def test_traces_are_the_same_for_the_same_seed():
    """And others for another."""
    one, same, other = (conversations(seed, 20, every_ms=240_000) for seed in (1, 1, 2))
    assert one == same
    assert [c.session for c in one] != [c.session for c in other]
    assert len({c.session for c in one}) == 20
    assert one[3].call(1) == same[3].call(1)


def test_conversations_grow_by_what_is_new():
    """Each turn's messages begin with those of the turn before, and so does its prompt."""
    for conversation in conversations(3, 5, every_ms=1_000, turns=(4, 8)):
        turns = bodies(conversation, len(conversation.turns))
        for before, after in zip(turns, turns[1:], strict=False):
            assert after["messages"][: len(before["messages"])] == before["messages"]
            assert len(after["messages"]) == len(before["messages"]) + 2
        sizes = [prompt_of(conversation.call(turn).body) for turn in range(2)]
        assert common_blocks(sizes[0].blocks, sizes[1].blocks) >= len(sizes[0].blocks) - 5  # tools come last


def test_long_conversations_reach_a_hundred_and_fifty_thousand_tokens():
    """And end there."""
    made = conversations(1, 40, every_ms=1_000, turns=(30, 80))
    peaks = [conversation.prompt_tokens(len(conversation.turns) - 1) for conversation in made]
    assert max(peaks) > 120_000
    assert max(peaks) <= 150_000
    longest = max(made, key=lambda conversation: conversation.prompt_tokens(len(conversation.turns) - 1))
    assert len(longest.call(len(longest.turns) - 1).body) > 400_000


def test_prompts_are_known_without_making_them():
    """For worlds without sockets: each turn's begins with the turn's before, and no two conversations share any."""
    one, other = conversations(1, 2, every_ms=0, turns=(5, 5))
    prompts = [one.prompt(turn) for turn in range(len(one.turns))]
    for before, after in zip(prompts, prompts[1:], strict=False):
        assert common_blocks(before.blocks, after.blocks) == len(before.blocks)
        assert after.tokens > before.tokens
    assert common_blocks(prompts[0].blocks, other.prompt(0).blocks) == 0


def test_bursts_start_together():
    """Three at once, every twelve minutes."""
    made = conversations(1, 9, every_ms=720_000, burst=3)
    assert [c.start_ms for c in made] == [0, 0, 0, 720_000, 720_000, 720_000, 1_440_000, 1_440_000, 1_440_000]


def test_a_called_tool_is_answered_with_its_result():
    """What follows depends on what was answered."""
    (conversation,) = conversations(1, 1, every_ms=0, turns=(3, 3))
    call = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    reply = {"role": "assistant", "content": None, "tool_calls": [call]}
    messages = orjson.loads(conversation.call(1, [reply]).body)["messages"]
    assert messages[2] == reply
    assert (messages[3]["role"], messages[3]["tool_call_id"]) == ("tool", "call_1")


def test_session_ids_have_their_clients_shapes():
    """OpenCode's 30 characters, pi's UUIDv7, none from an SDK."""
    ids = {client.name: client.session(Draw("x"), 1_796_000_000_000) for client in CLIENTS}
    assert re.fullmatch(r"ses_[0-9a-f]{12}[0-9A-Za-z]{14}", ids["opencode"])
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", ids["pi"])
    assert ids["sdk"] == ""
    newer = OPENCODE.session(Draw("x"), 1_796_000_000_001)
    assert newer < ids["opencode"]


def test_clients_send_the_fields_they_were_seen_to_send():
    """Each its own."""
    sent = {client.name: dict(client.fields("id", "sk-a", "msg_1")) for client in CLIENTS}
    assert sent["pi"]["x-opencode-session"] == "id"
    assert sent["opencode"]["x-opencode-request"] == "msg_1"
    assert sent["opencode-custom"]["x-session-affinity"] == sent["opencode-custom"]["x-session-id"] == "id"
    assert not any("session" in name for name in sent["sdk"])
    assert all(fields["authorization"] == "Bearer sk-a" for fields in sent.values())


def test_side_calls():
    """OpenCode asks for a title without tools on the same session; pi warms with one token."""
    opencode, pi = (conversations(1, 1, every_ms=0, clients=(client,))[0] for client in (OPENCODE, PI))
    title = opencode.title()
    assert "tools" not in orjson.loads(title.body)
    assert ("x-opencode-session", opencode.session) in title.fields
    assert opencode.warming(0) is None
    assert pi.title() is None
    warming, turn = orjson.loads(pi.warming(0).body), orjson.loads(pi.call(0).body)
    assert warming == turn | {"max_tokens": 1}


def test_a_sub_agent_has_a_session_of_its_own_and_names_its_parent():
    """Only OpenCode says so in a field."""
    opencode, pi = (conversations(1, 1, every_ms=0, clients=(client,))[0] for client in (OPENCODE, PI))
    child = dict(opencode.child().call(0).fields)
    assert child["x-parent-session-id"] == opencode.session
    assert child["x-opencode-session"] not in {opencode.session, ""}
    assert not any("parent" in name for name, _ in pi.child().call(0).fields)


@pytest.mark.parametrize(
    ("client", "refused", "waits"),
    [
        (PI, Refused(529), [2_000, 4_000, 8_000, None]),
        (PI, Refused(429, 60, "GoUsageLimitError"), [None]),
        (PI, Refused(400), [None]),
        (OPENCODE, Refused(429, 51_105), [51_105_000]),
        (OPENCODE_CUSTOM, Refused(503), [2_000, 4_000, 8_000, 16_000, 30_000, 30_000]),
        (SDK, Refused(None), [500, 1_000, None]),
        (SDK, Refused(429, 5), [5_000]),
        (SDK, Refused(429, 600), [500]),
        (SDK, Refused(404), [None]),
    ],
)
def test_clients_retry_as_real_ones_do(client, refused, waits):
    """Their own waits, bounds and reasons to give up."""
    assert [client.wait_ms(attempt, refused) for attempt in range(1, len(waits) + 1)] == waits


async def test_a_trace_is_served():
    """Title and turns, and the second turn's prompt comes from the cache."""
    (conversation,) = conversations(1, 1, every_ms=0, turns=(2, 2), clients=(OPENCODE,))
    async with gateway("sticky", scale=600) as made:
        for call in (conversation.title(), conversation.call(0), conversation.call(1)):
            fields = tuple(field for field in call.fields if field[0] not in {"authorization", "user-agent"})
            got = await ask(made, chat(f"/zen/go/v1{call.path}", session=None, fields=fields, body=call.body))
            assert got.end == "complete"
            assert b"[DONE]" in got.body
        assert {record.session for record in made.log} == {conversation.session}
        assert made.log[2].cached_tokens >= 6_000
