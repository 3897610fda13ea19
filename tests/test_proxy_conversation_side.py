"""Side calls: what is one, what only looks like one."""

import pytest

from proxy.conversation.body import BodyFacts
from proxy.conversation.ids import Reading
from proxy.conversation.precedence import Kind
from proxy.conversation.side import is_side_call, looks_aside

OWNER = Reading(1, "owner:x-opencode-session", Kind.OWNER, "x-opencode-session", "s")
MARKED = OWNER._replace(side=True)


def facts(model="small", tools=False, messages=2, parsed=True):
    return BodyFacts(parsed, model, True, (), None, tools, messages)


REAL = {"big": True}
TALK = {"big": False}  # turns, but none that could not have been a title


@pytest.mark.parametrize(
    ("models", "request_facts", "side"),
    [
        (REAL, facts(), True),
        (TALK, facts(), True),
        (REAL, facts(messages=3), False),
        (REAL, facts(tools=True), False),
        (REAL, facts(model="big"), False),
        (TALK, facts(model="big"), False),
        ({}, facts(), False),
        (REAL, facts(parsed=False), False),
        (REAL, facts(model=None), False),
        (REAL, None, False),
        ({"small": False, "big": True}, facts(), True),
        ({"small": False, "big": False}, facts(), False),
        ({"small": True, "big": True}, facts(), False),
    ],
)
def test_a_side_call_is_short_has_no_tools_and_another_model(models, request_facts, side):
    """On its conversation's own model it is a turn, and the first request of all is one too."""
    assert is_side_call(models, request_facts, OWNER) is side


@pytest.mark.parametrize("request_facts", [None, facts(model="big", tools=True, messages=3), facts()])
def test_what_the_client_marked_is_one_in_any_case(request_facts):
    """Even on its own model, even as the first request."""
    assert is_side_call({}, request_facts, MARKED)
    assert is_side_call(REAL, request_facts, MARKED)


def test_two_messages_are_the_most_a_side_call_has():
    """System text does not count."""
    assert looks_aside(facts(messages=0))
    assert looks_aside(facts(messages=2))
    assert not looks_aside(facts(messages=3))
