"""What stands beside an id: parents, the client's own marks, the session that a gateway would have seen."""

import json

import pytest

from proxy.conversation.body import BodyFacts
from proxy.conversation.ids import JOINT, read_ids
from proxy.conversation.precedence import BODY_KEYS, Kind

SES = "ses_4a1b2c3d4e5fABCDEFGHIJKLMN"
PARENT = "ses_9f8e7d6c5b4aZYXWVUTSRQPONM"
UUID = "0198c1f2-7a4b-7c3d-9e8f-0123456789ab"
THREAD = "0198c1f2-8888-7c3d-9e8f-0123456789ab"
TURN = json.dumps({"session_id": UUID, "thread_id": THREAD, "thread_source": "user", "parent_thread_id": UUID})


def read(headers, extra):
    ids = tuple((name, value) for name, value in extra.items() if name in BODY_KEYS)
    return read_ids([(name.encode(), value.encode()) for name, value in headers], None, BodyFacts(True, ids=ids))


@pytest.mark.parametrize(
    ("headers", "parent"),
    [
        ([("x-session-affinity", SES), ("x-parent-session-id", PARENT)], PARENT),
        ([("x-opencode-session", SES), ("x-opencode-parent-session-id", PARENT)], PARENT),
        ([("thread-id", THREAD), ("x-codex-parent-thread-id", UUID)], UUID),
        ([("x-codex-turn-metadata", TURN)], UUID),
        ([("x-claude-code-session-id", UUID), ("x-claude-code-agent-id", "a1")], UUID),
        (
            [
                ("x-claude-code-session-id", UUID),
                ("x-claude-code-agent-id", "a2"),
                ("x-claude-code-parent-agent-id", "a1"),
            ],
            f"{UUID}{JOINT}a1",
        ),
        ([("x-session-id", SES)], None),
    ],
)
def test_the_parent_of_a_sub_agent_is_read_and_is_never_its_own_id(headers, parent):
    """A parent is kept for display; the sub-agent stays a conversation of its own."""
    reading = read(headers, {})
    assert reading.parent == parent
    assert reading.value != parent


@pytest.mark.parametrize(
    ("headers", "side"),
    [
        ([("x-session-affinity", f"title-{SES}")], True),
        ([("x-session-affinity", "title-of-my-book")], False),
        ([("x-openwebui-chat-id", UUID), ("x-task", "tags_generation")], True),
        ([("x-openwebui-chat-id", UUID), ("x-task", "refactor the parser")], False),
        ([("x-session-id", SES)], False),
    ],
)
def test_only_a_clients_own_mark_makes_a_side_call_here(headers, side):
    """Kilo's title ids and Open WebUI's task field mark side calls; other texts do not."""
    assert read(headers, {}).side is side


@pytest.mark.parametrize(
    ("headers", "session"),
    [
        ([("x-opencode-session", SES)], SES),
        ([("x-session-affinity", f"title-{SES}")], SES),
        ([("session-id", UUID), ("x-codex-turn-metadata", TURN)], UUID),
        ([("x-claude-code-session-id", UUID)], UUID),
        ([("x-claude-code-session-id", UUID), ("x-claude-code-agent-id", "a1")], None),
        ([("x-ocpool-conversation", "work")], None),
        ([("x-ocpool-conversation", "work"), ("x-session-id", SES)], SES),
        ([], None),
    ],
)
def test_the_session_is_the_strongest_value_that_a_gateway_would_have_seen(headers, session):
    """It may become the natural id, so half of a pair and words to ocpool are none."""
    assert read(headers, {"conversation_id": "from the body"}).session == session


NEVER = [
    "x-client-request-id", "x-request-id", "x-correlation-id", "traceparent", "x-litellm-trace-id", "x-opencode-request",
    "x-kilo-request", "x-stainless-retry-count", "x-stainless-session-id", "user-agent", "x-forwarded-for", "authorization",
    "x-api-key", "cookie", "x-parent-session-id", "x-acme-parent-session-id", "x-request-session-id", "x-trace-chat-id",
    "x-token-session-id", "x-auth-session-id", "x-ocpool-session-id", "x-ocpool-class", "x-chat-id", "my-session-id",
]  # fmt: skip


@pytest.mark.parametrize("name", NEVER)
def test_a_field_that_is_never_an_identity_is_none(name):
    """Per-request ids, credentials, parents and traces never tell conversations apart."""
    reading = read([(name, UUID)], {"user": UUID, "safety_identifier": UUID, "previous_response_id": UUID})
    assert (reading.kind, reading.match) == (Kind.NONE, "new")


@pytest.mark.parametrize(
    "name", ["x-acme-session-id", "X_Acme_Conversation_Id", "x-my-own-chat-id", "X-HTTP-Session-ID"]
)
def test_a_field_that_looks_like_a_sessions_is_an_owner(name):
    """Vendors name their session fields alike."""
    reading = read([(name, UUID)], {})
    assert (reading.rank, reading.kind, reading.value) == (5, Kind.OWNER, UUID)
    assert reading.match == f"owner:{name.lower().replace('_', '-')}"
