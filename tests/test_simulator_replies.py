"""What the simulated gateway says, and how its bytes are cut and broken."""

import json
from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.simulator import answers, formats, timing
from proxy.simulator.answers import Answer
from proxy.simulator.draw import Draw
from proxy.simulator.faults import Behaviour, Ending, Fault
from proxy.simulator.knobs import Knobs
from proxy.simulator.limits import LIMITS
from proxy.simulator.models import COMPLETIONS, GOOGLE, MESSAGES, RESPONSES
from proxy.simulator.prompts import prompt_of
from proxy.simulator.record import Record
from proxy.simulator.service import Service
from proxy.simulator.styles import DEEPSEEK, MOONSHOT, PLAIN, TWICE, WINDOWS, Style
from proxy.simulator.world import Ask, Plan, World

STYLES = st.builds(
    Style,
    done=st.sampled_from(["present", "absent", "cost"]),
    usage=st.sampled_from(["once", "twice", "null", "absent"]),
    line_end=st.sampled_from(["\n", "\r\n"]),
    split=st.booleans(),
    reasoning=st.sampled_from(["", "reasoning_content", "reasoning"]),
    cache_fields=st.sampled_from(["openai", "deepseek", "moonshot"]),
    event_tokens=st.integers(1, 20),
)


def plan(style: Style = PLAIN, tokens: int = 40, **more: object) -> Plan:
    made = World.of("sticky").plan(Ask("s", "m", prompt_of(b"hello " * 200)), 0)
    return replace(made, style=style, completion_tokens=tokens, tokens_per_s=50.0, **more)


def events(made: Plan, api: str = COMPLETIONS, tools: tuple[str, ...] = ()) -> list[dict]:
    said = [event for _, event in formats.events(api, made, "m", tools, 7)]
    lines = [line for event in said for line in event.split(b"\n") if line.startswith(b"data: ")]
    return [orjson.loads(line[6:]) for line in lines if line != b"data: [DONE]"]


def parse(body: bytes) -> list[str]:
    """The data of each event, by the rules of server-sent events."""
    found, data = [], []
    for line in body.decode().replace("\r\n", "\n").split("\n"):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            found.append("\n".join(data))
            data = []
    return found


@given(STYLES, st.integers(1, 80))
def test_a_stream_says_what_the_json_says(style, tokens):
    """Whatever the spelling, the same text, tokens and reason to stop."""
    made = plan(style, tokens)
    whole = formats.whole(COMPLETIONS, made, "m", (), 7)
    chunks = events(made)
    choices = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    thinking = "".join(choice["delta"].get(style.reasoning) or "" for choice in choices) if style.reasoning else ""
    assert choices[-1]["finish_reason"] == "stop"
    assert whole["choices"][0]["message"]["content"].startswith(text)
    assert whole["choices"][0]["message"].get(style.reasoning, "") == thinking
    told = [chunk["usage"] for chunk in chunks if chunk.get("usage")]
    assert len(told) == {"once": 1, "twice": 2, "null": 1, "absent": 0}[style.usage]
    assert all(usage["completion_tokens"] == tokens for usage in told)
    if style.usage == "null":
        assert all("usage" in chunk for chunk in chunks if "id" in chunk)


@given(STYLES, st.integers(1, 80), st.integers(0, 1000))
def test_cutting_a_stream_loses_no_byte_and_no_order(style, tokens, seed):
    """Cut at arbitrary bytes it is the same stream, and nothing comes before it was due."""
    pieces = answers.encoded(formats.events(COMPLETIONS, plan(style, tokens), "m", (), 7), style, 0, 5000)
    cut = answers.cut(pieces, Draw(str(seed)))
    assert b"".join(data for _, data in cut) == b"".join(data for _, data in pieces)
    assert all(data for _, data in cut)
    times = [at for at, _ in cut]
    assert times == sorted(times)
    assert times[-1] == pieces[-1][0]


def test_cuts_fall_inside_lines_and_characters():
    """That is what they are for."""
    inside_line = inside_character = 0
    for seed in range(50):
        pieces = answers.encoded(formats.events(COMPLETIONS, plan(tokens=60), "m", (), 7), PLAIN, 0, 5000)
        for _, data in answers.cut(pieces, Draw(str(seed)))[:-1]:
            inside_line += not data.endswith(b"\n")
            try:
                data.decode()
            except UnicodeDecodeError:
                inside_character += 1
    assert inside_line > 50
    assert inside_character > 5


def test_line_ends_and_keep_alives():
    """Two line ends after every event, and comments while it thinks."""
    pieces = answers.encoded([(3.0, b"event: a\ndata: 1"), (4.0, b"data: 2")], WINDOWS, 12_000, 5_000)
    assert [at for at, _ in pieces] == [5_000, 10_000, 12_003, 12_004]
    body = b"".join(data for _, data in pieces)
    assert body == b": keep-alive\r\n\r\n" * 2 + b"event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n"
    assert parse(body) == ["1", "2"]


def test_the_end_of_a_stream_in_three_spellings():
    """[DONE], nothing, or [DONE] and a cost, which is a string."""
    said = {
        done: [event for _, event in formats.events(COMPLETIONS, plan(Style(done=done)), "m", (), 7)]
        for done in ("present", "absent", "cost")
    }
    assert said["present"][-1] == b"data: [DONE]"
    assert b"[DONE]" not in b"".join(said["absent"])
    assert said["cost"][-2:] == [b"data: [DONE]", b'data: {"choices":[],"cost":"0"}']


def test_usage_tells_cached_tokens_in_three_places():
    """OpenAI's, DeepSeek's and Moonshot's."""
    made = replace(plan(), prompt_tokens=500, cached_tokens=384)
    usage = {
        style: formats.whole(COMPLETIONS, replace(made, style=style), "m", (), 7)["usage"]
        for style in (PLAIN, DEEPSEEK, MOONSHOT)
    }
    assert usage[PLAIN]["prompt_tokens_details"]["cached_tokens"] == 384
    assert usage[DEEPSEEK]["prompt_cache_hit_tokens"] == 384
    assert usage[DEEPSEEK]["prompt_cache_miss_tokens"] == 116
    assert usage[MOONSHOT]["cached_tokens"] == 384
    assert all(one["prompt_tokens"] == 500 for one in usage.values())


@pytest.mark.parametrize("style", [PLAIN, DEEPSEEK, TWICE])
def test_a_tool_call_comes_in_parts_that_make_json(style):
    """The name first, then the arguments bit by bit."""
    made = plan(style, tool_call=True)
    chunks = events(made, tools=("read", "write"))
    calls = [
        call for chunk in chunks if chunk["choices"] for call in chunk["choices"][0]["delta"].get("tool_calls", [])
    ]
    assert calls[0]["function"]["name"] == "read"
    arguments = "".join(call["function"]["arguments"] for call in calls)
    assert json.loads(arguments)["path"] == "src/größe.py"
    whole = formats.whole(COMPLETIONS, made, "m", ("read",), 7)["choices"][0]
    assert whole["finish_reason"] == "tool_calls"
    assert whole["message"]["tool_calls"][0]["function"]["arguments"] == arguments
    assert whole["message"]["tool_calls"][0]["id"] == calls[0]["id"]


@pytest.mark.parametrize("api", [RESPONSES, MESSAGES, GOOGLE])
def test_the_other_formats_say_the_same_streamed_and_whole(api):
    """The text and the usage."""
    made = replace(plan(tokens=30), cached_tokens=128)
    streamed, whole = events(made, api), formats.whole(api, made, "m", (), 7)
    if api == RESPONSES:
        assert (
            "".join(one["delta"] for one in streamed if one["type"] == "response.output_text.delta")
            == whole["output"][0]["content"][0]["text"]
        )
        assert streamed[-1]["response"] == whole
        assert [one["sequence_number"] for one in streamed] == list(range(len(streamed)))
    elif api == MESSAGES:
        assert (
            "".join(one["delta"]["text"] for one in streamed if one["type"] == "content_block_delta")
            == whole["content"][0]["text"]
        )
        assert {"type": "ping"} in streamed
        assert whole["usage"]["cache_read_input_tokens"] == 128
    else:
        assert (
            "".join(one["candidates"][0]["content"]["parts"][0]["text"] for one in streamed)
            == whole["candidates"][0]["content"]["parts"][0]["text"]
        )
        assert streamed[-1]["candidates"][0]["finishReason"] == "STOP"


@given(st.sampled_from(timing.VARIANTS), st.floats(1, 150), st.floats(1, 60_000))
def test_server_timing_adds_up_in_every_spelling(variant, gateway, upstream):
    """total is at least gateway and upstream together."""
    made = replace(
        plan(), gateway_ms=round(gateway), upstream_ms=round(upstream), total_ms=round(gateway) + round(upstream) + 3
    )
    lines = [value for _, value in timing.server_timing(made, variant)]
    found = {}
    for metric in ", ".join(lines).replace('"a, b;dur=1"', "").replace(",", " , ").split(" , "):
        name, *rest = metric.strip().split(";")
        found[name] = next((float(one[4:]) for one in rest if one.startswith("dur=")), None)
    if variant == "absent":
        assert lines == []
        return
    assert found["total"] >= found["gateway"] + found["upstream"]
    assert abs(found["upstream"] - upstream) < 1
    assert len(lines) == (2 if variant == "two-lines" else 1)


def pieces_of(made: Plan) -> answers.Pieces:
    return answers.encoded(formats.events(COMPLETIONS, made, "m", (), 7), made.style, 0, 5000)


def broken(fault: Fault, *, sized: bool = False) -> tuple[bytes, Ending, list[float]]:
    made = plan(tokens=40)
    body = pieces_of(made) if not sized else answers.as_json({"a": "b" * 50})
    answer = Answer(200, [("content-type", "text/event-stream")], body, 100.0, sized=sized)
    script = answers.script(answers.spoil(answer, fault, PLAIN, 40_000), http10=False, close=False)
    script = answers.broken(script, fault)
    return b"".join(data for _, data in script.writes), script.ending, [at for at, _ in script.writes]


def test_breaks_of_the_connection_are_what_they_say():
    """Where each ends, and how."""
    raw, ending, _ = broken(Fault.RESET_MID_CHUNK)
    assert ending is Ending.RESET
    assert not raw.endswith(b"\r\n")
    raw, ending, _ = broken(Fault.CLOSE_WITHOUT_END)
    assert ending is Ending.CLOSE
    assert raw.endswith(b"\n\n\r\n")
    assert not raw.endswith(b"0\r\n\r\n")
    raw, ending, _ = broken(Fault.SILENT_BODY)
    assert ending is Ending.HOLD
    assert raw.endswith(b"\r\n\r\n")
    assert raw.count(b"\r\n\r\n") == 1
    assert broken(Fault.RESET_BEFORE_HEAD)[:2] == (b"", Ending.RESET)
    assert broken(Fault.CLOSE_BEFORE_HEAD)[:2] == (b"", Ending.CLOSE)
    assert broken(Fault.HANG)[1] is Ending.HOLD


def test_breaks_of_the_answer_leave_http_whole():
    """The last chunk comes; what is missing is the answer's own end."""
    raw, ending, _ = broken(Fault.NO_FINISH)
    assert raw.endswith(b"0\r\n\r\n")
    assert ending is Ending.KEEP
    assert b"[DONE]" not in raw
    assert b'"finish_reason":"stop"' not in raw
    assert b'"error"' in broken(Fault.ERROR_EVENT)[0]
    raw, _, _ = broken(Fault.ERROR_200)
    assert b"content-type: application/json" in raw
    assert b"choices" not in raw
    assert broken(Fault.EMPTY_200)[0].endswith(b"\r\n\r\n0\r\n\r\n")
    assert max(broken(Fault.STALL)[2]) > 40_000


@given(st.sampled_from(list(Fault)), st.booleans())
def test_every_break_is_shorter_or_says_so(fault, sized):
    """No break makes a reply that could be taken for a whole one, but for a stall, a timeout and an empty one."""
    raw, ending, times = broken(fault, sized=sized)
    assert times == sorted(times)
    whole = broken(Fault.STALL, sized=sized)[0]
    if fault not in {Fault.STALL, Fault.SILENT_524} and not (sized and fault in {Fault.NO_FINISH, Fault.ERROR_EVENT}):
        assert raw != whole


def test_http_1_0_gets_no_chunks():
    """It ends with the connection."""
    answer = Answer(200, [], pieces_of(plan()), 1.0, sized=False)
    script = answers.script(answer, http10=True, close=False)
    raw = b"".join(data for _, data in script.writes)
    assert b"transfer-encoding" not in raw
    assert script.ending is Ending.CLOSE
    assert len(parse(raw.partition(b"\r\n\r\n")[2])) > 5


@pytest.mark.parametrize("name", LIMITS)
def test_limits_are_json_errors_in_one_of_two_envelopes(name):
    """As a client reads them."""
    body = orjson.loads(LIMITS[name].body("Error from provider (Console Go): "))
    assert body["error"]["message"]
    assert body.get("type") in {None, "error"}
    assert ("Console Go" in body["error"]["message"]) == (LIMITS[name].by == "service")


def test_a_legacy_account_sees_no_header_of_the_service():
    """Only content-type and cache-control, Cloudflare's own, and a cost in the body."""
    service = Service(World.of("legacy"), Knobs())
    fields = ((b"authorization", b"Bearer sk-a"), (b"user-agent", b"t/1"), (b"x-opencode-session", b"s"))
    for stream in (True, False):
        record = Record(0, 0, "POST", "/zen/go/v1/chat/completions", fields)
        asked = service.read(record, orjson.dumps({"model": "glm-5.3", "messages": [], "stream": stream}))
        raw = b"".join(data for _, data in service.serve(record, asked, Behaviour(), 0.0).script.writes)
        assert b"server-timing" not in raw
        assert b"x-opencode" not in raw
        assert b'"cost":"0"' in raw


def test_scripts_are_used_up_in_their_order():
    """The oldest that matches wins, as often as it was given."""
    from proxy.simulator.faults import Behaviours

    queue = Behaviours()
    once, twice = Behaviour(tokens=1), Behaviour(tokens=2)
    queue.add(lambda record: record.path == "/a", once, 1)
    queue.add(lambda _: True, twice, 2)
    taken = [queue.take(Record(0, 0, "POST", path)) for path in ("/b", "/a", "/a", "/a")]
    assert taken == [twice, once, twice, None]
