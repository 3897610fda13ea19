"""The tap: which reader an answer gets, and what can be asked of it."""

import gzip

import brotli
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.answers.codings import MAX_PIECE
from proxy.answers.stream import StreamReader
from proxy.answers.usage import Usage
from proxy.conversation.answer import Answer, ToolCall
from proxy.tap import FIELDS, Tap, semantic, tap_for, tokens
from proxy.wire.head import Noting, ResponseHead, parse_response


class Ticks:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def sse(*events: object, end: str = "\n\n") -> bytes:
    return b"".join(b"data: " + orjson.dumps(event) + end.encode() for event in events)


ROLE = {"choices": [{"delta": {"role": "assistant", "content": ""}}]}
TEXT = {"choices": [{"delta": {"content": "hi"}}]}
USAGE = {
    "choices": [],
    "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}}
WHOLE = {
    "model": "m",
    "choices": [
        {"message": {"role": "assistant", "content": None, "tool_calls": [CALL]}, "finish_reason": "tool_calls"}
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1},
}


def head(status: int = 200, **fields: str) -> ResponseHead:
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return parse_response(f"HTTP/1.1 {status} Y\r\n{lines}\r\n".encode(), b"POST", Noting(FIELDS))


def fed(tap: Tap | None, *pieces: bytes) -> Tap:
    assert tap is not None
    for piece in pieces:
        tap.feed(piece)
    tap.close()
    return tap


@given(st.lists(st.integers(0, 400), max_size=10), st.sampled_from(["\n\n", "\r\n\r\n"]))
def test_first_semantic_event_and_usage_are_found_at_any_split(cuts, end):
    wire = b": keep-alive" + end.encode() + sse(ROLE, TEXT, TEXT, USAGE, end=end) + b"data: [DONE]" + end.encode()
    offsets = sorted({min(cut, len(wire)) for cut in cuts} | {0, len(wire)})
    tap = fed(
        StreamReader(Ticks()),
        *(wire[start:stop] for start, stop in zip(offsets, offsets[1:], strict=False)),
    )
    assert tap.first_semantic_ms is not None
    assert tokens(tap.usage) == {"input": 9, "cached": 4, "output": 2}
    assert tap.counts == Usage(9, 4, None, 2)
    assert tap.events == 5
    assert not tap.unread


def test_a_role_alone_is_not_semantic():
    tap = StreamReader(Ticks())
    tap.feed(sse(ROLE))
    assert tap.first_semantic_ms is None
    assert not tap.begun
    tap.feed(sse(TEXT))
    assert tap.first_semantic_ms is not None
    assert tap.begun


@given(
    st.lists(st.binary(max_size=200), max_size=10),
    st.sampled_from(["application/json", "text/event-stream"]),
    st.sampled_from([{}, {"content_encoding": "gzip"}, {"content_encoding": "br"}, {"content_encoding": "zstd"}]),
)
def test_noise_never_raises(pieces, kind, coding):
    tap = tap_for(head(content_type=kind, **coding), Ticks(), wants_answer=True)
    assert tap is not None
    for piece in pieces:
        tap.feed(piece)
        tap.feed_all([b"data: ", piece, b"\n\n"])
    tap.close()
    assert tap.answer is None or tap.unread is None
    assert coding or tap.begun is (pieces != [] and (kind == "application/json" or tap.first_semantic_ms is not None))


def test_a_json_answer_is_read_at_its_end():
    body = orjson.dumps(WHOLE)
    tap = fed(tap_for(head(content_type="application/json"), Ticks(), wants_answer=True), body[:10], body[10:])
    assert tokens(tap.usage) == {"input": 3, "output": 1}
    assert tap.answer == Answer("", (ToolCall("call_1", "read", '{"path":"a"}'),), "tool_calls", True)
    assert tap.model == "m"
    assert tap.begun
    assert tap.first_semantic_ms is None


def test_an_answer_that_nobody_wants_is_not_told():
    assert fed(tap_for(head(content_type="application/json"), Ticks()), orjson.dumps(WHOLE)).answer is None
    assert fed(tap_for(head(content_type="text/event-stream"), Ticks()), sse(ROLE, TEXT)).answer is None


def test_an_array_of_events_is_read_too():
    events = [{"usageMetadata": {"promptTokenCount": 7}}, {"usageMetadata": {"candidatesTokenCount": 2}}]
    tap = fed(tap_for(head(content_type="application/json"), Ticks()), orjson.dumps(events))
    assert tokens(tap.usage) == {"input": 7, "output": 2}


@pytest.mark.parametrize(
    ("body", "why"), [(b'{"choices":[', "json"), (b"[" + b"1," * 600_000 + b"1]", "size"), (b"[1]", "json")]
)
def test_a_body_that_cannot_be_read_counts_as_unread(body, why):
    tap = fed(tap_for(head(content_type="application/json"), Ticks(), wants_answer=True), body[:5], body[5:])
    assert tap.unread == why
    assert tap.answer is None


def test_an_error_inside_a_stream_is_kept():
    tap = fed(StreamReader(Ticks()), sse(TEXT, {"error": {"message": "[overloaded] later", "type": "server_error"}}))
    assert tap.error is not None
    assert b"overloaded" in tap.error


def test_an_error_in_place_of_an_answer_is_kept():
    body = orjson.dumps({"error": {"type": "server_error", "message": "[502] gone"}})
    assert fed(tap_for(head(content_type="application/json"), Ticks()), body).error == body


@pytest.mark.parametrize("encode", [(b"gzip", gzip.compress), (b"br", brotli.compress)], ids=["gzip", "br"])
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_a_coded_answer_is_read_from_a_copy(encode, kind):
    coding, pack = encode
    plain = orjson.dumps(WHOLE) if "json" in kind else sse(ROLE, TEXT, USAGE)
    wire = pack(plain)
    made = tap_for(head(content_type=kind, content_encoding=coding.decode()), Ticks(), wants_answer=True)
    tap = fed(made, wire[:7], wire[7:])
    assert tap.counts is not None
    assert tap.answer is not None
    assert tap.unread is None


@pytest.mark.parametrize("coding", ["compress", "gzip, br"])
def test_an_unknown_coding_counts_as_unread(coding):
    tap = fed(tap_for(head(content_type="application/json", content_encoding=coding), Ticks(), wants_answer=True), b"x")
    assert tap.unread == "coding"
    assert tap.answer is None


def test_a_bomb_counts_as_unread_and_holds_nothing():
    wire = gzip.compress(bytes(8 * MAX_PIECE))
    tap = fed(tap_for(head(content_type="text/event-stream", content_encoding="gzip"), Ticks()), wire)
    assert tap.unread == "coding"


def test_the_beginning_of_a_refusal_is_kept_as_it_came():
    tap = fed(tap_for(head(500, content_encoding="br"), Ticks()), b"a" * 60_000, b"b" * 60_000)
    assert tap.body == b"a" * 60_000 + b"b" * 5_536
    assert tap.unread is None


def test_what_is_neither_events_nor_json_gets_no_tap():
    assert tap_for(head(content_type="text/html"), Ticks()) is None


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"type": "response.output_text.delta"}, True),
        ({"type": "response.created"}, False),
        ({"type": "content_block_delta"}, True),
        ({"type": "message_start"}, False),
        ({"type": "ping"}, False),
        ({"choices": [{"delta": {"reasoning_content": "hm"}}]}, True),
        ({"choices": [{"delta": {"tool_calls": [{}]}}]}, True),
        ({"choices": [{"delta": {}, "finish_reason": "stop"}]}, True),
        ({"choices": [{"delta": "odd"}]}, False),
        ({"choices": [], "usage": None}, False),
        ({"candidates": [{}]}, True),
    ],
)
def test_what_counts_as_semantic(event, expected):
    assert semantic(event) is expected
