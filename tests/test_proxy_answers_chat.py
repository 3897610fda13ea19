"""A whole answer, read at once: the same as put together piece by piece."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.answers.chat import MAX_TEXT, ChatAnswer, whole
from proxy.conversation.answer import Answer

odd = st.none() | st.booleans() | st.integers(0, 1) | st.just("") | st.just([]) | st.just({}) | st.just("x")
texts = st.text(max_size=5)
calls = st.lists(
    st.fixed_dictionaries({"id": texts, "function": st.fixed_dictionaries({"name": texts, "arguments": texts})}),
    max_size=2,
)
parts = st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": texts}), max_size=2)
messages = st.fixed_dictionaries(
    {}, optional={"content": texts | parts | odd, "tool_calls": calls | odd, "function_call": odd, "role": texts}
)
choices = st.fixed_dictionaries(
    {}, optional={"message": messages | odd, "delta": messages | odd, "finish_reason": texts | odd, "index": odd}
)
documents = st.fixed_dictionaries({}, optional={"choices": st.lists(choices | odd, max_size=2) | odd, "usage": odd})


def gathered(document: object) -> Answer | None:
    chat = ChatAnswer()
    if not chat.add((document,)):
        raise ValueError
    return chat.answer() if chat.begun else None


def told(read, document: object) -> object:
    try:
        return read(document)
    except ValueError:
        return "unread"


@given(documents)
def test_a_whole_answer_says_what_a_gathered_one_does(document):
    document = orjson.loads(orjson.dumps(document))
    assert told(whole, document) == told(gathered, document)


@pytest.mark.parametrize("finish", ["stop", "", None, "f" * 2_000])
@pytest.mark.parametrize("size", [0, MAX_TEXT, MAX_TEXT + 1])
def test_so_it_does_at_the_bounds(size, finish):
    document = {"choices": [{"message": {"content": "t" * size}, "finish_reason": finish}]}
    assert told(whole, document) == told(gathered, document)


def test_of_a_list_of_events_each_is_taken():
    events = [{"choices": [{"delta": {"content": text}}]} for text in "ab"]
    assert whole([*events, {"choices": [{"delta": {}, "finish_reason": "stop"}]}]) == Answer("ab", (), "stop", True)
    assert whole([{"candidates": []}]) is None
