"""The tap reads answers while they pass: any split, any spelling, never an exception."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.tap import Tap, semantic, tokens


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


@given(st.lists(st.integers(0, 400), max_size=10), st.sampled_from(["\n\n", "\r\n\r\n"]))
def test_first_semantic_event_and_usage_are_found_at_any_split(cuts, end):
    wire = b": keep-alive" + end.encode() + sse(ROLE, TEXT, TEXT, USAGE, end=end) + b"data: [DONE]" + end.encode()
    tap = Tap(Ticks(), stream=True)
    offsets = sorted({min(cut, len(wire)) for cut in cuts} | {0, len(wire)})
    for start, stop in zip(offsets, offsets[1:], strict=False):
        tap.feed(wire[start:stop])
    assert tap.first_semantic_ms is not None
    assert tokens(tap.usage) == {"input": 9, "cached": 4, "output": 2}
    assert tap.bytes == len(wire)
    assert tap.events == 5
    assert not tap.unread


def test_a_role_alone_is_not_semantic():
    tap = Tap(Ticks(), stream=True)
    tap.feed(sse(ROLE))
    assert tap.first_semantic_ms is None
    tap.feed(sse(TEXT))
    assert tap.first_semantic_ms is not None


@given(st.lists(st.binary(max_size=200), max_size=10), st.booleans())
def test_noise_never_raises(pieces, stream):
    tap = Tap(Ticks(), stream=stream)
    for piece in pieces:
        tap.feed(piece)
        tap.feed(b"data: " + piece + b"\n\n")
    tap.close()
    assert tap.bytes == sum(len(piece) * 2 + 8 for piece in pieces)


def test_a_line_of_16_megabytes_is_skipped_not_kept():
    tap = Tap(Ticks(), stream=True)
    tap.feed(b"data: ")
    for _ in range(256):
        tap.feed(b"x" * 65_536)
    assert tap.unread
    tap.feed(b"\n\n" + sse(USAGE))
    assert tokens(tap.usage)["input"] == 9


def test_a_json_answer_is_read_at_its_end():
    tap = Tap(Ticks(), stream=False)
    body = orjson.dumps(
        {"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
    )
    tap.feed(body[:10])
    tap.feed(body[10:])
    tap.close()
    assert tokens(tap.usage) == {"input": 3, "output": 1}


def test_an_error_inside_a_stream_is_kept():
    tap = Tap(Ticks(), stream=True)
    tap.feed(sse(TEXT, {"error": {"message": "[overloaded] later", "type": "server_error"}}))
    assert tap.error is not None
    assert b"overloaded" in tap.error


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, {}),
        ({"prompt_tokens": 5, "cached_tokens": 2, "completion_tokens": 1}, {"input": 5, "cached": 2, "output": 1}),
        ({"prompt_tokens": 5, "prompt_cache_hit_tokens": 3}, {"input": 5, "cached": 3}),
        (
            {"input_tokens": 5, "output_tokens": 1, "input_tokens_details": {"cached_tokens": 1}},
            {"input": 5, "cached": 1, "output": 1},
        ),
        ({"input_tokens": 5, "cache_read_input_tokens": 4}, {"input": 5, "cached": 4}),
        ({"prompt_tokens": "many", "prompt_tokens_details": None}, {}),
    ],
)
def test_usage_in_every_spelling(usage, expected):
    assert tokens(usage) == expected


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
        ({"choices": [], "usage": None}, False),
    ],
)
def test_what_counts_as_semantic(event, expected):
    assert semantic(event) is expected
