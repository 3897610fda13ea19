"""Bodies of any shape: never an exception, never across scopes, never without bound; at worst a new conversation."""

import json
import time

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.conversation.answer import Answer, ToolCall
from proxy.conversation.normalise import normalise
from tests.fakes.talk import Talk, assistant, label, user

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
roles = st.sampled_from(
    ["user", "assistant", "tool", "system", "developer", "function", "narrator", "", 7, None, ["user"]]
)
messages = st.dictionaries(
    st.sampled_from(
        [
            "role",
            "content",
            "tool_calls",
            "tool_call_id",
            "function_call",
            "type",
            "name",
            "call_id",
            "arguments",
            "id",
            "x",
        ]
    ),
    anything | roles,
    max_size=6,
)
parts = st.lists(
    st.fixed_dictionaries({"type": st.sampled_from(["text", "tool_use", "tool_result", "image_url", "thinking", 3])})
    | anything,
    max_size=4,
)
shaped = st.fixed_dictionaries({"role": roles, "content": anything | parts, "tool_calls": anything | parts})


def unfailing(talk):
    """Nothing was caught on the way, either."""
    assert not [note for note in talk.registry.notes() if note.name == "evidence_failed"]


@settings(max_examples=300, deadline=None)
@given(
    bodies=st.lists(st.lists(messages | shaped | anything, max_size=8) | anything, min_size=1, max_size=4),
    name=st.sampled_from(["messages", "input"]),
)
def test_any_document(bodies, name):
    """Each from two callers, with answers and without: nothing raised, nothing shared."""
    talk = Talk()
    seen = {"alice": set(), "bob": set()}
    for said in bodies:
        for scope, labels in seen.items():
            resolved = talk.raw(json.dumps({"model": "m", name: said, "tools": said}).encode(), scope)
            labels.add(label(resolved))
            talk.answer(resolved, "An answer of some length, so that it tells something.", ("c", "n", "{"))
    assert seen["alice"].isdisjoint(seen["bob"])
    unfailing(talk)


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=400)
    | st.binary(max_size=60).map(lambda raw: b'{"messages":[{"role":"user","content":"' + raw + b'"}]}')
)
def test_any_bytes(data):
    """No JSON, broken UTF-8, control characters."""
    talk = Talk()
    assert talk.raw(data).conversation.natural.value
    unfailing(talk)


@given(
    st.none() | st.text(),
    st.lists(st.tuples(st.text(), st.text(), st.text()), max_size=4),
    st.none() | st.text(),
    st.booleans(),
)
def test_any_answer(text, calls, finish, complete):
    """Whatever the upstream said, lone surrogates included."""
    talk = Talk()
    resolved = talk.ask([user("hi")])
    said = Answer(text, tuple(ToolCall(*call) for call in calls), finish, complete)
    talk.registry.answered(resolved, said, talk.now)
    talk.registry.done(resolved, talk.now, complete)
    talk.turn([user("hi"), assistant(text or ""), user("more")])
    unfailing(talk)


def test_doubled_keys():
    """The last one counts, as in every parser."""
    talk = Talk()
    talk.raw(
        b'{"messages":[{"role":"user","content":"a"}],"messages":[{"role":"user","role":"tool","content":5}],"messages":7}'
    )
    unfailing(talk)


@pytest.mark.parametrize(
    "message",
    [{"role": "user", "content": "x"}, {"role": "assistant", "content": "", "tool_calls": [{}]}, [], "x", {}],
    ids=["short", "calls", "lists", "texts", "empty"],
)
def test_a_hundred_thousand_messages(message):
    """Bounded in time, which is that of parsing them."""
    data = orjson.dumps({"model": "m", "messages": [message] * 100_000})[: 4 * 1024 * 1024 + 1]
    talk = Talk()
    began = time.process_time()
    talk.raw(data)
    spent = time.process_time() - began
    began = time.process_time()
    json.loads(data) if data.endswith(b"}") else None
    assert spent < 0.5 + 2 * (time.process_time() - began)
    unfailing(talk)


@pytest.mark.parametrize(
    "text", ["<think>" * 20_000, "<env>x</env>" * 20_000, "20" * 50_000, "2026-11-30T10:00:00" * 5_000, " " * 200_000]
)
def test_texts_that_are_made_to_be_slow(text):
    """Normalising is linear."""
    began = time.process_time()
    normalise(text)
    assert time.process_time() - began < 0.5


def test_deep_nesting():
    """The parser refuses it, or nothing of it is followed."""
    talk = Talk()
    for depth in (100, 500, 5_000, 100_000):
        talk.raw(b'{"messages":[{"role":"user","content":' + b"[" * depth + b"]" * depth + b"}]}")
    unfailing(talk)
