"""How a request's messages are counted: the short way and the long one say the same, whatever stands in the list."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.conversation.content import COUNTED, FIRST, Content, counted, first_of

roles = st.sampled_from(
    ["system", "developer", "user", "assistant", "tool", "", None, 7, ["system"], {"role": "system"}]
)
said = st.fixed_dictionaries({"role": roles, "content": st.just("x")})
strange = st.sampled_from([None, "system", 7, [], ["role"], {}, {"type": "function_call"}, {"content": "x"}])
usual = st.sampled_from([{"role": "system", "content": "s"}, {"role": "user", "content": "u"}])
messages = st.lists(usual, max_size=2 * FIRST) | st.lists(said | strange, max_size=2 * FIRST)


@given(messages)
def test_messages_are_counted_as_one_by_one(messages):
    """By the roles of the first few where that is enough, else by looking at each."""
    mine = [each for each in messages if not isinstance(each, dict) or each.get("role") not in ("system", "developer")]
    assert counted(messages) == min(len(mine), COUNTED)
    for most in (1, COUNTED, FIRST):
        assert first_of(messages, most) == mine[:most]


@given(messages)
def test_nothing_is_left_of_what_was_dropped(messages):
    """A request is under way for minutes; its messages are needed for none of them."""
    content = Content({"messages": messages}, "messages", messages)
    content.first_texts()
    content.drop()
    assert vars(content) == {}
