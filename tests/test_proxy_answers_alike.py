"""Events that differ in one text only: what is said of them is what parsing each would say."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.answers.alike import alike


def event(delta: dict, *, spaced: bool = False, **more: object) -> bytes:
    whole = {"id": "1", "choices": [{"index": 0, "delta": delta, "finish_reason": None}], **more}
    return b"data: " + (json.dumps(whole).encode() if spaced else orjson.dumps(whole)) + b"\n\n"


def texts(pieces: list[bytes], like: bytes) -> list[str] | None:
    found = alike(like)
    assert found is not None
    said = found.texts(pieces)
    if said is not None:
        assert found.fit(pieces)
    return said


LIKE = event({"content": "x"})
words = st.text(st.sampled_from('ab "\\\n{}[]:,é\N{PILE OF POO}'), max_size=12)


@given(st.lists(words, min_size=1, max_size=40), words.filter(bool))
def test_texts_are_those_of_the_events(said, first):
    assert texts([event({"content": text}) for text in said], event({"content": first})) == said


def arguments(text: str) -> bytes:
    return event({"tool_calls": [{"index": 3, "type": "function", "function": {"arguments": text}}]})


@given(st.lists(words, min_size=1, max_size=40), words)
def test_so_are_the_pieces_of_a_calls_arguments(said, first):
    pieces = [arguments(text) for text in said]
    assert texts(pieces, arguments(first)) == said
    like = alike(arguments(first))
    assert like is not None
    assert (like.call, like.said) == (3, False)


@given(st.lists(st.binary(max_size=12) | st.sampled_from([b"\n", b"\r", b"\\", b'"', b'","', b'",1,"', b'":"', b'\\"']), min_size=1, max_size=6))  # fmt: skip
def test_what_answers_is_json_with_that_text(middles):
    """Whatever is put where the text stands: either it is refused, or all are JSON, and say just that."""
    before, after = event({"content": "HERE"}).split(b"HERE")
    pieces = [before + middle + after for middle in middles]
    found = texts(pieces, LIKE)
    like = alike(LIKE)
    assert like is not None
    if like.fit(pieces):  # each is one line, whatever it says
        assert b"".join(pieces).count(b"\n") == 2 * len(pieces)
        assert b"\r" not in b"".join(pieces)
    if found is not None:
        said = [orjson.loads(piece[5:])["choices"][0]["delta"] for piece in pieces]
        assert said == [{"content": text} for text in found]


@pytest.mark.parametrize(
    "other",
    [
        event({"content": "x"}, usage={"prompt_tokens": 1}),
        event({"content": "x", "tool_calls": []}),
        event({"reasoning_content": "x"}),
        LIKE.replace(b"null", b'"stop"'),
        LIKE.replace(b'"x"', b'"'),
        LIKE.replace(b'"x"', b'"x","tool_calls":[{"index":0}],"role":"a"'),
        LIKE.replace(b"\n\n", b"\n"),
        b"data: [DONE]\n\n",
        b"",
    ],
)
def test_an_event_of_another_kind_is_none_of_them(other):
    like = alike(LIKE)
    assert like is not None
    for pieces in ([other], [LIKE, other], [other, LIKE], [LIKE, other, LIKE]):
        assert texts(pieces, LIKE) is None
        assert not like.fit(pieces)


@pytest.mark.parametrize(
    "special",
    [
        event({"content": ""}),
        event({"role": "assistant"}),
        event({"content": "x", "reasoning": "y"}),
        event({"content": "x"}, usage={"prompt_tokens": 1}),
        event({"content": "x"}, spaced=True),
        event({"tool_calls": [{"index": 0}]}),
        event({"tool_calls": [{"function": {"arguments": "x"}}]}),
        event({"tool_calls": [{"index": 0, "id": "c", "function": {"arguments": "x"}}]}),
        event({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "x"}}]}),
        event({"tool_calls": [{"index": 0, "function": {"arguments": "x"}}] * 2}),
        event({"tool_calls": [{"index": 0, "function": {"arguments": "x"}}], "content": "x"}),
        event({"content": "x"}, choices=[]),
        event({"content": "x"}, choices=[{"index": 1, "delta": {"content": "x"}}]),
        event({"content": "x"}, choices=[{"delta": {"content": "x"}, "finish_reason": "stop"}]),
        event({"content": "x"}).replace(b'"id":"1"', b'"content":"1"'),
        b"event: e\n" + LIKE,
        b"data: 1\n\n",
        b"data: {\n\n",
        b"data:\n\n",
        b": keep-alive\n\n",
    ],
)
def test_what_says_more_than_a_text_is_like_no_other(special):
    assert alike(special) is None


def test_thoughts_are_told_from_what_is_said():
    thinks, says = alike(event({"reasoning_content": "x"})), alike(event({"role": "assistant", "content": "x"}))
    assert thinks is not None
    assert not thinks.said
    assert says is not None
    assert says.said
