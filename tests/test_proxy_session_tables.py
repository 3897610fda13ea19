"""Two rooms know session fields, and may not import each other: what identifies must also be taken away."""

import re

import pytest

from proxy.conversation.ids import Kind, read_ids
from proxy.conversation.precedence import PRECEDENCE
from proxy.gateway.fields import SESSION_FIELDS, is_session_field, rewrite

HEADERS = sorted(
    {
        name
        for signal in PRECEDENCE
        for name in re.findall(r"[a-z][a-z0-9_-]+", str(signal))
        if name.encode() in SESSION_FIELDS
    }
)


@pytest.mark.parametrize("name", sorted(field.decode() for field in SESSION_FIELDS))
def test_every_session_field_that_identifies_is_replaced_on_the_way_up(name):
    sent = [(b"Host", b"x"), (name.encode(), b"client-value-0123456789")]
    up = rewrite(sent, session_header=b"x-opencode-session", session=b"routed", parent=lambda _: None)
    assert [value for field, value in up if is_session_field(field.lower())] == [b"routed"]


@pytest.mark.parametrize(
    "name",
    [
        "x-opencode-session", "x-opencode-session-id", "thread-id", "thread_id", "x-session-affinity", "X-Session-Id",
        "agent-session-id", "goose-session-id", "x-openwebui-chat-id", "x-kilo-session", "x-kilocode-taskid",
        "x-task-id", "x-roo-task-id", "x-grok-conv-id", "x-conversation-id", "conversation_id", "x-thread-id",
        "helicone-session-id", "x-claude-code-session-id", "session-id", "session_id", "x-litellm-session-id",
        "x-acme-session-id", "x-acme-conversation-id", "x-acme-chat-id", "x_acme_session_id",
    ],
)  # fmt: skip
def test_whatever_header_names_a_conversation_never_goes_up_beside_ours(name):
    reading = read_ids([(name.encode(), b"client-value-0123456789")], None, None)
    assert reading.kind is not Kind.NONE
    assert is_session_field(name.lower().encode())


def test_the_two_tables_meet():
    assert len(HEADERS) >= 15
