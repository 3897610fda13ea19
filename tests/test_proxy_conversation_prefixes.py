"""A body that begins as one before did is read from there on, with the same result as if it were read whole."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.conversation import body
from proxy.conversation.hashing import Hasher
from proxy.conversation.prefixes import SMALLEST, Prefixes
from tests.fakes.talk import SECRET, Talk, assistant, label, result, user

HASHER = Hasher(SECRET)
WORDS = ["alpha", "beta", "gamma", "delta", 'quote " and \\ slash', "ümläut 漢字", "}],", '{"messages":[', "\n\t"]


def said(count, seed):
    draw = random.Random(seed)
    messages = []
    for number in range(count):
        text = " ".join(draw.choices(WORDS, k=60))
        call = (f"call_{draw.getrandbits(80):020x}", "read", json.dumps({"path": text}))
        messages += [user(text), assistant(text[::-1], call), result(call[0], f"{number} {text}")]
    return messages


def encoded(messages, layout, **more):
    """The layouts in which clients write a body."""
    before, after, indent, ascii_only = layout
    document = {"model": "m", "stream": True} if before else {}
    document |= (
        {"tools": [{"type": "function", "function": {"name": "read", "parameters": {"messages": [{}]}}}]}
        if before
        else {}
    )
    document["messages"] = messages
    document |= {"stop": [{"a": []}], "metadata": {"session_id": "abc", "x": [{}]}} if after else {}
    return json.dumps({**document, **more}, indent=indent, ensure_ascii=ascii_only).encode()


def read(data, prefixes=None):
    return body.read([data], len(data), False, prefixes)


def facts_of(facts):
    said = facts.content.transcript(HASHER)
    return facts._replace(content=None), list(said.points), list(said.marks), list(said.ids), said.opener, said.last


layouts = st.tuples(st.booleans(), st.booleans(), st.sampled_from([None, 1]), st.booleans())


@settings(max_examples=40, deadline=None)
@given(
    layout=layouts, seed=st.integers(0, 99), first=st.integers(30, 60), more=st.integers(0, 6), change=st.integers(0, 3)
)
def test_it_makes_no_difference(layout, seed, first, more, change):
    """Longer, the same, changed at the end, or in the middle: the same facts as without it."""
    messages = said(first + more, seed)
    prefixes = Prefixes()
    facts_of(read(encoded(messages[: 3 * first], layout), prefixes))
    if change == 1:
        messages[-1] = user("another end")
    elif change == 2:
        messages[first] = user("another middle")
    elif change == 3:
        messages = messages[: 2 * first]
    data = encoded(messages, layout)
    assert facts_of(read(data, prefixes)) == facts_of(read(data))


@settings(max_examples=40, deadline=None)
@given(layout=layouts, seed=st.integers(0, 99), turns=st.lists(st.tuples(st.booleans(), st.integers(0, 2)), max_size=4))
def test_it_makes_none_where_nobody_asked_what_was_said(layout, seed, turns):
    """A request that is named is remembered, too; what stands behind its messages changes sometimes, or never."""
    messages = said(60, seed)
    prefixes = Prefixes()
    read(encoded(messages[:90], layout, top_p=0), prefixes).content.remember()
    for count, (asked, top_p) in enumerate(turns, 31):
        data = encoded(messages[: 3 * count], layout, top_p=top_p)
        short, long = read(data, prefixes), read(data)
        assert short.content.partial
        one, other = short.content, long.content
        assert (one.client(), one.manner(), one.opener_key()) == (other.client(), other.manner(), other.opener_key())
        if asked:
            assert facts_of(short) == facts_of(long)
        assert short._replace(content=None) == long._replace(content=None)
        one.remember()


@pytest.mark.parametrize("more", [b".5", b"e5", b"0", b"]", b"],[{}", b',{"role":"user"}]', b"{}", b",", b'} {"a":1}'])
def test_what_is_put_in_between_and_is_no_json_is_left_to_the_parser(more):
    """The bytes before and behind are known, and yet it is no body."""
    data = encoded(said(40, 4), (True, True, None, True))
    prefixes = Prefixes()
    read(data, prefixes).content.remember()
    end = data.rindex(b'], "stop"')
    broken = data[:end] + more + data[end:]
    assert read(broken, prefixes) == read(broken)
    assert not read(broken, prefixes).parsed


def test_a_turn_is_read_from_where_the_last_one_ended():
    """Also over several turns, and with a changed part behind the messages."""
    messages = said(60, 1)
    prefixes = Prefixes()
    for count in range(100, 180, 10):
        data = encoded(messages[:count], (True, True, None, True), seed=count)
        assert len(data) > SMALLEST
        facts = read(data, prefixes)
        assert facts.content.partial is (count > 100)
        assert facts_of(facts) == facts_of(read(data))


def test_a_second_list_of_messages_is_left_to_the_parser():
    """Doubled keys: the last one counts."""
    messages = said(40, 2)
    data = encoded(messages, (True, False, None, True))
    prefixes = Prefixes()
    facts_of(read(data, prefixes))
    doubled = data[:-1] + b', "messages": [{"role": "user", "content": "other"}]}'
    assert facts_of(read(doubled, prefixes)) == facts_of(read(doubled))


@pytest.mark.slow
def test_what_is_kept_is_bounded():
    """Whatever comes."""
    prefixes = Prefixes()
    for number in range(700):
        facts_of(read(encoded(said(40, number), (True, False, None, True)), prefixes))
    assert len(prefixes) <= 4 * 512
    assert prefixes._bytes <= 16 * 1024 * 1024


def test_another_scope_with_the_same_bytes_is_another_conversation():
    """The bytes are recognised, the conversation is not."""
    talk = Talk()
    messages = said(40, 3)
    data = encoded(messages, (True, False, None, True))
    one = talk.raw(data, "alice")
    two = talk.raw(data, "bob")
    assert label(one) != label(two)
    assert talk.evidence.prefixes
