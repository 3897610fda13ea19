"""A stream is read the same however its bytes were cut; what is no stream is no trouble."""

import json

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.answers import lines
from proxy.answers.stream import StreamReader
from proxy.conversation.answer import Answer, ToolCall

HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "kimi-k3"}
DONE = b"data: [DONE]\n\n"


class Ticks:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def chunk(delta: dict, finish: str | None = None, *, index: int = 0, **more: object) -> bytes:
    event = HEAD | {"choices": [{"index": index, "delta": delta, "finish_reason": finish}]} | more
    return b"data: " + orjson.dumps(event) + b"\n\n"


def data(event: object) -> bytes:
    return b"data: " + orjson.dumps(event) + b"\n\n"


USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 4}}
ROLE = chunk({"role": "assistant", "content": ""})
END = chunk({}, "stop") + data(HEAD | {"choices": [], "usage": USAGE}) + DONE


def read(wire: bytes, cuts: list[int] | None = None, *, wants_answer: bool = True) -> StreamReader:
    reader = StreamReader(Ticks(), wants_answer=wants_answer)
    offsets = sorted({min(cut, len(wire)) for cut in cuts or ()} | {0, len(wire)})
    for start, stop in zip(offsets, offsets[1:], strict=False):
        reader.feed(wire[start:stop])
    reader.close()
    return reader


def seen(reader: StreamReader) -> tuple:
    return (
        reader.answer,
        reader.usage,
        reader.error,
        reader.model,
        reader.events,
        reader.opening_events,
        reader.unread,
        reader.first_semantic_ms,
    )


words = st.text(st.sampled_from('ab "\\\n{}[]:,é\N{PILE OF POO}'), max_size=12)
deltas = st.one_of(
    st.builds(lambda text: chunk({"content": text}), words),
    st.builds(lambda text: chunk({"role": "assistant", "content": text}), words),
    st.builds(lambda text: chunk({"reasoning_content": text}), words),
    st.builds(lambda size: chunk({"content": "y" * size}), st.sampled_from([300, 700, 5_000])),
    st.builds(lambda text: chunk({"content": text}, usage=None), words),
    st.builds(lambda text: chunk({"content": text}, index=1), words),
    st.builds(
        lambda place, name, text: chunk(
            {"tool_calls": [{"index": place, "id": f"call_{place}", "function": {"name": name, "arguments": text}}]}
        ),
        st.integers(0, 2),
        st.sampled_from(["read", "write"]),
        words,
    ),
    st.builds(lambda text: chunk({"tool_calls": [{"index": 1, "function": {"arguments": text}}]}), words),
    st.just(b": keep-alive\n\n"),
    st.just(b"event: ping\ndata: {}\n\n"),
    st.just(b"data: nonsense\n\n"),
)
streams = st.builds(
    lambda opening, middle, end, old: (opening + b"".join(middle) + end).replace(b"\n", old),
    st.sampled_from([b"", ROLE, ROLE + b": keep-alive\n\n"]),
    st.lists(deltas, max_size=120),
    st.sampled_from([b"", END, END[:-1], END[:-40], chunk({}, "tool_calls"), DONE]),
    st.sampled_from([b"\n", b"\n", b"\r\n", b"\r"]),
)


@settings(max_examples=60)
@given(streams, st.lists(st.integers(0, 20_000), max_size=80), st.booleans())
def test_any_split_reads_as_the_whole_does(wire, cuts, wants):
    assert seen(read(wire, cuts, wants_answer=wants)) == seen(read(wire, wants_answer=wants))


@settings(max_examples=20)
@given(streams)
def test_event_by_event_reads_as_the_whole_does(wire):
    """As streams really come: many small pieces, read together."""
    cuts = [place + 2 for place in range(len(wire)) if wire.startswith((b"\n\n", b"\r\r"), place)]
    assert seen(read(wire, cuts)) == seen(read(wire))


@settings(max_examples=60)
@given(streams, st.lists(st.integers(1, 40), min_size=1, max_size=30), st.booleans())
def test_many_pieces_at_once_read_as_the_whole_does(wire, counts, wants):
    """As small chunks come that went through before anybody looked at them."""
    ends = [place + 2 for place in range(len(wire)) if wire.startswith((b"\n\n", b"\r\r"), place)]
    pieces = [wire[start:stop] for start, stop in zip([0, *ends], [*ends, len(wire)], strict=True) if start < stop]
    reader = StreamReader(Ticks(), wants_answer=wants)
    while pieces:
        if not reader.begun:
            reader.feed(pieces.pop(0))
            continue
        count = counts[len(pieces) % len(counts)]
        reader.feed_all(pieces[:count])
        del pieces[:count]
    reader.close()
    assert seen(reader) == seen(read(wire, wants_answer=wants))


def test_noise_among_many_pieces_never_raises():
    reader = StreamReader(Ticks(), wants_answer=True)
    reader.feed(chunk({"content": "x"}))
    for odd in (b"\xff", b"data: [1]\n\n", b"", b"x" * 900, b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'):
        reader.feed_all([chunk({"content": "x"}), odd])
        reader.feed_all([odd])
        reader.feed_all([odd, chunk({"content": "x"})])
    reader.close()


@settings(max_examples=20)
@given(streams)
def test_byte_by_byte_reads_as_the_whole_does(wire):
    wire = wire[:3000]
    assert seen(read(wire, list(range(len(wire))))) == seen(read(wire))


@given(st.lists(st.binary(max_size=200), max_size=20), st.booleans())
def test_noise_never_raises(pieces, wants):
    reader = StreamReader(Ticks(), wants_answer=wants)
    for piece in [ROLE, chunk({"content": "x"}), *pieces]:
        reader.feed(piece)
        reader.feed(b"data: " + piece + b"\n\n")
    reader.close()
    assert reader.events >= 4


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "content", "tool_calls", "usage", "error", "message", "index", "function"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(json_values, max_size=20), st.booleans())
def test_any_json_never_raises(events, wants):
    dumped = [b"data: " + orjson.dumps(event, default=str) + b"\n\n" for event in events if _fits(event)]
    reader = read(chunk({"content": "x"}) + b"".join(dumped), wants_answer=wants)
    assert reader.events == 1 + len(dumped)


def _fits(event: object) -> bool:
    try:
        orjson.dumps(event)
    except TypeError:  # an integer beyond 64 bits, a lone surrogate
        return False
    return True


def test_the_text_and_the_finish_are_put_together():
    pieces = ["The ", "quick ", 'brown "fox"', "\n", "größe"]
    wire = ROLE + b"".join(chunk({"content": piece}) for piece in pieces) + END
    assert read(wire).answer == Answer("".join(pieces), (), "stop", True)


def test_thoughts_are_no_text():
    wire = ROLE + b"".join(chunk({"reasoning_content": "hm"}) for _ in range(100)) + chunk({"content": "yes"}) + END
    cuts = [place + 2 for place in range(len(wire)) if wire.startswith(b"\n\n", place)]
    assert read(wire, cuts).answer == Answer("yes", (), "stop", True)


def test_tool_calls_are_put_together_by_their_number():
    def call(index: int | None, arguments: str, **more: object) -> bytes:
        number = {} if index is None else {"index": index}
        return chunk(
            {"tool_calls": [{**number, **more, "function": {"name": more.get("name", ""), "arguments": arguments}}]}
        )

    wire = (
        ROLE
        + call(0, "", id="call_a", name="read")
        + call(0, '{"path":')
        + call(1, '{"x":1}', id="call_b", name="write")
        + call(0, '"a"}')
        + chunk({}, "tool_calls")
    )
    expected = (ToolCall("call_a", "read", '{"path":"a"}'), ToolCall("call_b", "write", '{"x":1}'))
    assert read(wire).answer == Answer("", expected, "tool_calls", True)
    unnumbered = ROLE + call(None, "{}", id="a1", name="f") + call(None, "{", id="a2", name="f") + call(None, "}")
    assert read(unnumbered).answer == Answer("", (ToolCall("a1", "f", "{}"), ToolCall("a2", "f", "{}")), None, False)


def test_what_was_cut_off_is_kept_as_far_as_it_came():
    answer = read(ROLE + chunk({"content": "half a"}) + b'data: {"id":"chatc').answer
    assert answer == Answer("half a", (), None, False)
    assert read(ROLE + chunk({"content": "half a"}) + b'data: {"id":"chatc').unread is None


def test_json_with_spaces_is_read_as_well():
    def spaced(delta: dict, finish: str | None = None) -> bytes:
        choice = json.dumps({"index": 0, "delta": delta, "finish_reason": finish})
        return (
            b'data: {"id":"1","choices":[%b]}\n\n'
            % choice.replace('"delta": {"content": ', '"delta":{"content":').encode()
        )

    wire = spaced({"content": "a"}) * 50 + spaced({"content": "b"}, "stop") + spaced({"content": ""}) * 50
    cuts = [place + 2 for place in range(len(wire)) if wire.startswith(b"\n\n", place)]
    assert read(wire, cuts).answer == Answer("a" * 50 + "b", (), "stop", True)


def test_what_is_no_chat_has_no_answer():
    assert read(data({"type": "content_block_delta", "delta": {"text": "hi"}}) * 80).answer is None


def test_of_several_choices_the_first_counts():
    wire = ROLE + b"".join(chunk({"content": f"{n % 2}"}, index=n % 2) for n in range(90)) + END
    assert read(wire).answer == Answer("0" * 45, (), "stop", True)


def test_an_answer_over_the_bound_has_no_text_but_its_calls_and_end():
    wire = ROLE + chunk({"content": "x" * 100_000}) * 3 + END
    answer = read(wire).answer
    assert answer == Answer(None, (), "stop", True)
    cut = chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "y" * 200_000}}]})
    answer = read(ROLE + cut + cut + chunk({}, "tool_calls")).answer
    assert answer is not None
    assert len(answer.tool_calls[0].arguments) == 262_144
    assert not answer.complete


def test_nobody_wants_the_answer_but_what_it_cost_and_why_it_failed_is_known():
    error = {"error": {"message": "[overloaded] later", "type": "server_error"}}
    wire = ROLE + chunk({"content": "x"}, usage=None) * 500 + END + data(error)
    reader = read(wire, list(range(0, len(wire), 177)), wants_answer=False)
    assert reader.answer is None
    assert reader.usage == USAGE
    assert reader.error == orjson.dumps(error)
    assert reader.model == "kimi-k3"
    assert reader.events == 505


@pytest.mark.parametrize("wants", [True, False])
@pytest.mark.parametrize(
    ("wire", "usage"),
    [
        (
            data({"type": "message_start", "message": {"model": "c", "usage": {"input_tokens": 5, "output_tokens": 1}}})
            + b"event: ping\n" + data({"type": "ping"})
            + data({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "hi"}}) * 70
            + data({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 70}})
            + data({"type": "message_stop"}),
            {"input_tokens": 5, "output_tokens": 70},
        ),
        (
            data({"type": "response.created", "response": {"usage": None, "error": None}})
            + data({"type": "response.output_text.delta", "delta": "hi"}) * 70
            + data({"type": "response.completed", "response": {"error": None, "usage": {"input_tokens": 8}}}),
            {"input_tokens": 8},
        ),
        (
            data({"candidates": [{"content": {}}], "usageMetadata": {"promptTokenCount": 3}}) * 70
            + data({"candidates": [{}], "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 9}}),
            {"promptTokenCount": 3, "candidatesTokenCount": 9},
        ),
        (
            ROLE + chunk({"content": "x"}) * 70
            + data(HEAD | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 2}}]}),
            {"prompt_tokens": 2},
        ),
    ],
    ids=["messages", "responses", "google", "moonshot"],
)  # fmt: skip
def test_usage_is_found_in_every_protocol(wire, usage, wants):
    reader = read(wire, list(range(0, len(wire), 97)), wants_answer=wants)
    assert reader.usage == usage
    assert reader.error is None
    assert reader.unread is None
    assert reader.first_semantic_ms is not None


def test_a_failed_response_is_an_error():
    failed = {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "gone"}}}
    reader = read(data({"type": "response.output_text.delta", "delta": "x"}) * 3 + data(failed), wants_answer=False)
    assert reader.error == orjson.dumps(failed)


def test_output_begins_with_the_piece_in_which_its_first_event_is_whole():
    ticks = Ticks()
    reader = StreamReader(ticks, wants_answer=False)
    for now, piece in [
        (10.0, b": keep-alive\n\n"),
        (20.0, ROLE),
        (30.0, chunk({"content": "a"})[:50]),
        (40.0, chunk({"content": "a"})[50:]),
        (50.0, chunk({"content": "b"})),
        (60.0, b": keep-alive\n\n"),
        (70.0, data(HEAD | {"choices": [], "cost": "0"}) + DONE),
    ]:
        ticks.now = now
        reader.feed(piece)
    reader.close()
    assert reader.first_semantic_ms == 40.0


def test_output_is_taken_to_have_begun_after_many_events_without_any():
    reader = read(data({"type": "ping"}) * 70)
    assert reader.first_semantic_ms is not None
    assert (reader.events, reader.opening_events) == (70, 64)


@pytest.mark.parametrize("piece", [65_536, 900, 10_000_000])
def test_a_line_of_16_megabytes_is_skipped_not_kept(piece):
    wire = ROLE + b"data: " + b"x" * (16_777_216 if piece > 1000 else 500_000) + b"\n\n" + chunk({"content": "x"}) + END
    reader = StreamReader(Ticks(), wants_answer=False)
    most = 0
    for start in range(0, len(wire), piece):
        reader.feed(wire[start : start + piece])
        most = max(most, sum(map(len, reader._held)))
    reader.close()
    assert reader.unread == "line"
    assert reader.usage == USAGE
    assert most <= lines.MAX_LINE + 65_536


@pytest.mark.parametrize("size", [1, 60, 70, 400, 5_000])
def test_what_is_held_is_bounded_whatever_the_size_of_the_pieces(size):
    reader = StreamReader(Ticks(), wants_answer=True)
    reader.feed(chunk({"content": "x"}))
    most = 0
    for _ in range(1_000):
        reader.feed(chunk({"content": "word " * size}))
        most = max(most, sum(map(len, reader._held)))
    assert most < 65_536 + 5 * size + 200
    assert len(reader._held) <= 64
