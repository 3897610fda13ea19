"""What becomes of session, parent, own and other fields on the way up."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.gateway.fields import (
    CREDENTIAL_FIELDS,
    PARENT_FIELDS,
    SESSION_FIELDS,
    has_session_field,
    is_parent_field,
    is_session_field,
    rewrite,
)

OURS = b"7d1a90c4-0000-4000-8000-000000000001"
SES = b"ses_206f84f18ffeZ6hhD7pFYAiW5T"
PARENT_SES = b"ses_206f84f18ffeAAAAAAAAAAAAAA"
ROUTED_PARENT = b"7d1a90c4-0000-4000-8000-00000000000f"
UUID7 = b"01a1b54b-7b1c-7000-8000-00000000abcd"
THREAD = b"01a1b54b-7b1c-7000-8000-00000000eeee"

PLAIN = [
    (b"Host", b"localhost:8377"),
    (b"Authorization", b"Bearer sk-abcdefghijklmnop"),
    (b"User-Agent", b"client/1.0"),
    (b"Accept", b"*/*"),
    (b"Content-Type", b"application/json"),
]


def go(fields, header=b"x-opencode-session", session=OURS, parent=lambda value: None):
    return rewrite(fields, session_header=header, session=session, parent=parent)


def codex_metadata(session, thread):
    return json.dumps({"session_id": session.decode(), "thread_id": thread.decode()}).encode()


# What real clients put on the wire (chat completions, responses, messages): the fields beside the plain ones,
# and those that must be left beside our own session field.
CLIENTS = {
    "OpenCode, custom provider": ([(b"x-session-affinity", SES), (b"X-Session-Id", SES)], []),
    "OpenCode, custom provider, sub-agent": (
        [(b"x-session-affinity", SES), (b"X-Session-Id", SES), (b"x-parent-session-id", PARENT_SES)],
        [],
    ),
    "OpenCode, opencode-go": (
        [
            (b"x-opencode-session", SES),
            (b"x-opencode-request", b"msg_206f84f18ffeZ6hhD7pFYAiW5T"),
            (b"x-opencode-project", b"global"),
            (b"x-opencode-client", b"cli"),
        ],
        [
            (b"x-opencode-request", b"msg_206f84f18ffeZ6hhD7pFYAiW5T"),
            (b"x-opencode-project", b"global"),
            (b"x-opencode-client", b"cli"),
        ],
    ),
    "OpenCode, newer": (
        [
            (b"x-opencode-session", SES),
            (b"x-opencode-session-id", SES),
            (b"x-opencode-parent-session-id", PARENT_SES),
            (b"x-parent-session-id", PARENT_SES),
            (b"x-opencode-client", b"cli"),
        ],
        [(b"x-opencode-client", b"cli")],
    ),
    "Kilo": ([(b"x-session-affinity", b"title-" + SES), (b"x-session-id", b"title-" + SES)], []),
    "Kilo, own gateway": (
        [(b"x-kilo-session", SES), (b"x-kilo-request", b"r-1"), (b"x-kilocode-taskid", SES)],
        [(b"x-kilo-request", b"r-1")],
    ),
    "pi, bare": ([], []),
    "pi, affinity": (
        [(b"session_id", UUID7), (b"x-client-request-id", UUID7), (b"x-session-affinity", UUID7)],
        [],
    ),
    "pi, opencode-go": (
        [(b"x-opencode-session", UUID7), (b"x-opencode-client", b"pi")],
        [(b"x-opencode-client", b"pi")],
    ),
    "pi, openrouter format": ([(b"x-session-id", UUID7)], []),
    "Open WebUI": (
        [(b"X-OpenWebUI-Chat-Id", UUID7), (b"X-OpenWebUI-User-Id", b"u-1")],
        [(b"X-OpenWebUI-User-Id", b"u-1")],
    ),
    "Codex": (
        [
            (b"session-id", UUID7),
            (b"thread-id", THREAD),
            (b"x-client-request-id", THREAD),
            (b"x-codex-window-id", THREAD + b":0"),
            (b"x-codex-turn-metadata", codex_metadata(UUID7, THREAD)),
        ],
        [
            (b"x-codex-window-id", THREAD + b":0"),
            (b"x-codex-turn-metadata", codex_metadata(UUID7, THREAD)),
        ],
    ),
    "Codex, sub-agent": (
        [
            (b"session-id", UUID7),
            (b"thread-id", THREAD),
            (b"x-client-request-id", THREAD),
            (b"x-codex-parent-thread-id", UUID7),
        ],
        [],
    ),
    "Codex, older": ([(b"session_id", UUID7), (b"conversation_id", UUID7)], []),
    "Claude Code": (
        [(b"X-Claude-Code-Session-Id", UUID7), (b"anthropic-version", b"2023-06-01")],
        [(b"anthropic-version", b"2023-06-01")],
    ),
    "Claude Code, sub-agent": (
        [
            (b"X-Claude-Code-Session-Id", UUID7),
            (b"x-claude-code-agent-id", b"a1b2"),
            (b"x-claude-code-parent-agent-id", b"a0"),
        ],
        [],
    ),
    "Goose": ([(b"agent-session-id", b"20260809_29")], []),
    "Goose, earlier": ([(b"goose-session-id", b"20260809_29")], []),
    "Crush": ([(b"x-session-id", b"9f" * 16), (b"x-session-affinity", b"9f" * 16)], []),
    "Cline": ([(b"X-Task-ID", b"1759")], []),
    "Roo": (
        [(b"X-Roo-Task-ID", UUID7), (b"HTTP-Referer", b"https://r"), (b"X-Title", b"Roo")],
        [(b"HTTP-Referer", b"https://r"), (b"X-Title", b"Roo")],
    ),
    "DeepSeek harness": ([(b"x-deepseek-harness-session-id", UUID7)], []),
    "LiteLLM": (
        [(b"x-litellm-session-id", UUID7), (b"x-litellm-trace-id", b"t-1")],
        [(b"x-litellm-trace-id", b"t-1")],
    ),
    "Helicone": ([(b"Helicone-Session-Id", UUID7)], []),
    "Grok": ([(b"x-grok-conv-id", UUID7)], []),
    "generic": (
        [(b"x-acme-conversation-id", UUID7), (b"X-Acme-Chat-Id", UUID7), (b"X-Stainless-Lang", b"js")],
        [(b"X-Stainless-Lang", b"js")],
    ),
    "openai SDK": (
        [(b"X-Stainless-Lang", b"python"), (b"x-stainless-retry-count", b"0")],
        [(b"X-Stainless-Lang", b"python"), (b"x-stainless-retry-count", b"0")],
    ),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_real_client_sends_exactly_one_session_field_and_none_of_its_own(client):
    extra, left = CLIENTS[client]
    sent = go(PLAIN + extra)
    assert [field for field in sent if field[1] == OURS] == [(b"x-opencode-session", OURS)]
    assert [field for field in sent if field[1] != OURS] == PLAIN + left
    values = {value for name, value in sent if name.lower() != b"x-codex-turn-metadata"}
    assert not values & {SES, PARENT_SES, UUID7, THREAD}


def test_the_clients_position_and_spelling_of_the_session_field_are_kept():
    fields = [(b"A", b"1"), (b"X-OpenCode-Session", SES), (b"B", b"2"), (b"x-opencode-session", SES)]
    assert go(fields) == [(b"A", b"1"), (b"X-OpenCode-Session", OURS), (b"B", b"2")]


def test_a_session_field_that_was_not_sent_is_appended():
    assert go([(b"A", b"1")], header=b"X-Chosen") == [(b"A", b"1"), (b"X-Chosen", OURS)]


def test_a_configured_session_header_takes_the_place_of_the_usual_one():
    fields = [(b"x-opencode-session", SES), (b"X-Session-Affinity", SES), (b"A", b"1")]
    assert go(fields, header=b"x-session-affinity") == [(b"X-Session-Affinity", OURS), (b"A", b"1")]


def test_order_case_and_multiplicity_of_everything_else_are_kept():
    fields = [(b"X-D", b"2"), (b"x-d", b"1"), (b"X-D", b"2"), (b"aCCept", b""), (b"X-D", b"\xff\x00")]
    assert go(fields)[:-1] == fields


def test_a_field_with_a_removed_value_of_sixteen_characters_goes_too():
    fields = [(b"x-session-id", b"a" * 16), (b"x-client-request-id", b"a" * 16), (b"X-Other", b"a" * 17)]
    assert go(fields) == [(b"X-Other", b"a" * 17), (b"x-opencode-session", OURS)]


def test_a_field_before_the_removed_one_goes_too():
    assert go([(b"x-client-request-id", SES), (b"x-session-id", SES)]) == [(b"x-opencode-session", OURS)]


def test_a_short_value_takes_no_other_field_with_it():
    fields = [(b"x-session-id", b"a" * 15), (b"X-Other", b"a" * 15)]
    assert go(fields) == [(b"X-Other", b"a" * 15), (b"x-opencode-session", OURS)]


def test_a_value_that_only_contains_a_removed_one_stays():
    fields = [(b"x-session-id", SES), (b"X-Other", SES + b"; v=1")]
    assert (b"X-Other", SES + b"; v=1") in go(fields)


@pytest.mark.parametrize("name", [*sorted(CREDENTIAL_FIELDS), b"Content-Type", b"Host", b"TE"])
def test_framing_and_credential_fields_are_never_removed_for_their_value(name):
    fields = [(b"x-session-id", SES), (name, SES)]
    assert (name, SES) in go(fields)


def test_a_natural_id_in_its_own_field_changes_nothing():
    fields = [*PLAIN, (b"x-opencode-session", SES), (b"x-client-request-id", SES)]
    assert go(fields, session=SES) == fields


def test_a_parent_is_mapped_to_its_routed_id_where_it_is_known():
    fields = [(b"x-session-id", SES), (b"X-Parent-Session-Id", PARENT_SES), (b"X-Copy", PARENT_SES)]
    sent = go(fields, parent=lambda value: ROUTED_PARENT if value == PARENT_SES else None)
    assert sent == [(b"X-Parent-Session-Id", ROUTED_PARENT), (b"x-opencode-session", OURS)]


def test_our_own_fields_are_stripped_even_where_nothing_else_is_touched():
    fields = [(b"X-Ocpool-Conversation", b"c"), (b"x-session-id", SES), (b"x-ocpool-anything", b"1")]
    assert go(fields, session=None) == [(b"x-session-id", SES)]


@pytest.mark.parametrize(
    ("name", "session"),
    [
        *[(name, True) for name in sorted(SESSION_FIELDS)],
        (b"x-anything-session-id", True),
        (b"x-a-conversation-id", True),
        (b"x-a-chat-id", True),
        *[(name, False) for name in sorted(PARENT_FIELDS)],
        (b"x-a-parent-session-id", False),
        (b"x-request-session-id", False),
        (b"x-trace-session-id", False),
        (b"x-token-session-id", False),
        (b"x-auth-session-id", False),
        (b"x-ocpool-session-id", False),
        (b"a-session-id", False),
        (b"x-client-request-id", False),
        (b"x-request-id", False),
        (b"x-correlation-id", False),
        (b"traceparent", False),
        (b"x-litellm-trace-id", False),
        (b"x-opencode-request", False),
        (b"x-kilo-request", False),
        (b"x-opencode-project", False),
        (b"x-codex-turn-metadata", False),
        (b"x-codex-window-id", False),
        (b"x-opencode-org-id", False),
    ],
)
def test_each_name_is_or_is_not_a_session_field(name, session):
    assert is_session_field(name) is session


def test_a_parent_field_of_an_unknown_client_is_a_parent_field():
    assert is_parent_field(b"x-acme-parent-session-id")
    assert go([(b"x-acme-parent-session-id", SES)]) == [(b"x-opencode-session", OURS)]


def test_an_empty_session_field_counts_as_missing():
    assert not has_session_field([(b"X-Opencode-Session", b""), (b"x-session-id", b" "), (b"A", b"1")])
    assert has_session_field([(b"A", b"1"), (b"Session_Id", b"x")])


NAMES = st.one_of(
    st.sampled_from([*sorted(SESSION_FIELDS), *sorted(PARENT_FIELDS), b"X-Ocpool-Class", b"Authorization"]),
    st.binary(min_size=1, max_size=80),
)
VALUES = st.one_of(st.sampled_from([SES, UUID7, b"", b"short"]), st.binary(max_size=20))


@given(st.lists(st.tuples(NAMES, VALUES), max_size=20))
def test_one_session_field_leaves_whatever_comes_in(fields):
    sent = go(fields)
    assert [value for name, value in sent if is_session_field(name.lower())] == [OURS]
    assert not any(name.lower().startswith(b"x-ocpool-") for name, value in sent)
    kept = [field for field in sent if field[1] != OURS]
    spared = iter(fields)
    assert all(field in spared for field in kept)  # in order, nothing invented


@pytest.mark.parametrize("name", [b"x_session_id", b"X_Opencode_Session", b"litellm-session-id", b"x_acme_chat_id"])
def test_underscores_and_dashes_spell_the_same_session_field(name):
    assert is_session_field(name.lower())
    sent = rewrite([(name, b"client")], session_header=b"x-opencode-session", session=b"routed", parent=lambda _: None)
    assert sent == [(b"x-opencode-session", b"routed")]
