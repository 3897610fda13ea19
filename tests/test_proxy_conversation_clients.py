"""What real clients put on the wire, one row a client: which rank and class decides, and by what."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.conversation import body
from proxy.conversation.ids import JOINT, read_ids
from proxy.conversation.precedence import Kind

SES = "ses_4a1b2c3d4e5fABCDEFGHIJKLMN"
PARENT = "ses_9f8e7d6c5b4aZYXWVUTSRQPONM"
UUID = "0198c1f2-7a4b-7c3d-9e8f-0123456789ab"
THREAD = "0198c1f2-8888-7c3d-9e8f-0123456789ab"
KEY = [("authorization", "Bearer sk-0000000000000000000000"), ("content-type", "application/json")]
CHAT = {"model": "kimi-k3", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
TURN = json.dumps({"session_id": UUID, "thread_id": THREAD, "thread_source": "user", "parent_thread_id": UUID})
CLAUDE_USER = json.dumps({"device_id": "d" * 64, "account_uuid": "", "session_id": UUID})
STAINLESS = [
    ("User-Agent", "OpenAI/Python 3.57.0"),
    ("x-stainless-lang", "python"),
    ("x-stainless-retry-count", "0"),
    ("X-Stainless-Session-Id", "no-session"),
]

# name, header fields, what the body has beside a plain chat, rank, class, match, value
# fmt: off
ROWS = [
    ("OpenCode, provider id opencode-go", [("x-opencode-session", SES), ("x-opencode-request", "msg_4a1b2c3d4e5fABCDEFGHIJKLMN"), ("x-opencode-project", "global"), ("x-opencode-client", "cli"), ("User-Agent", "opencode/1.18.33")], {}, (1, Kind.OWNER, "owner:x-opencode-session", SES)),
    ("OpenCode, provider id opencode-go, newer build", [("x-opencode-session", UUID), ("x-opencode-session-id", SES)], {}, (1, Kind.OWNER, "owner:x-opencode-session", UUID)),
    ("OpenCode, custom provider id", [("x-session-affinity", SES), ("X-Session-Id", SES), ("User-Agent", "opencode/1.18.33")], {"promptCacheKey": SES}, (4, Kind.OWNER, "owner:x-session-affinity", SES)),
    ("OpenCode, custom provider id, newer build", [("x-opencode-session-id", SES)], {}, (4, Kind.OWNER, "owner:x-opencode-session-id", SES)),
    ("OpenCode sub-agent", [("x-session-affinity", SES), ("X-Session-Id", SES), ("x-parent-session-id", PARENT)], {}, (4, Kind.OWNER, "owner:x-session-affinity", SES)),
    ("pi, custom provider", [("User-Agent", "pi/1.6.0 (linux; node/v22.1; x64)")], {}, (11, Kind.NONE, "new", "")),
    ("pi with affinity headers, format openai", [("session_id", UUID), ("x-client-request-id", UUID), ("x-session-affinity", UUID)], {}, (4, Kind.OWNER, "owner:x-session-affinity", UUID)),
    ("pi with affinity headers, format openai-nosession", [("x-client-request-id", UUID), ("x-session-affinity", UUID)], {}, (4, Kind.OWNER, "owner:x-session-affinity", UUID)),
    ("pi with affinity headers, format openrouter", [("x-session-id", UUID)], {}, (4, Kind.OWNER, "owner:x-session-id", UUID)),
    ("pi, built-in opencode-go", [("x-opencode-session", UUID), ("x-opencode-client", "pi")], {}, (1, Kind.OWNER, "owner:x-opencode-session", UUID)),
    ("pi, compaction", [("User-Agent", "pi/1.6.0")], {}, (11, Kind.NONE, "new", "")),
    ("Codex", [("session-id", UUID), ("thread-id", UUID), ("x-client-request-id", UUID), ("x-codex-window-id", f"{UUID}:0"), ("x-codex-turn-metadata", TURN)], {"prompt_cache_key": UUID}, (2, Kind.OWNER, "owner:thread-id", UUID)),
    ("Codex sub-agent", [("session-id", UUID), ("thread-id", THREAD), ("x-codex-parent-thread-id", UUID)], {"prompt_cache_key": UUID}, (2, Kind.OWNER, "owner:thread-id", THREAD)),
    ("Codex, thread only in the turn metadata", [("session-id", UUID), ("x-codex-turn-metadata", TURN)], {"prompt_cache_key": UUID}, (2, Kind.OWNER, "owner:x-codex-turn-metadata", THREAD)),
    ("Codex, older", [("session_id", UUID), ("conversation_id", THREAD)], {"prompt_cache_key": THREAD}, (5, Kind.OWNER, "owner:conversation-id", THREAD)),
    ("Claude Code", [("X-Claude-Code-Session-Id", UUID), ("User-Agent", "claude-cli/2.1.197")], {"metadata": {"user_id": CLAUDE_USER}}, (8, Kind.COHORT, "cohort:x-claude-code-session-id", UUID)),
    ("Claude Code sub-agent", [("X-Claude-Code-Session-Id", UUID), ("x-claude-code-agent-id", "agent-7")], {"metadata": {"user_id": CLAUDE_USER}}, (3, Kind.OWNER, "owner:x-claude-code-session-id+x-claude-code-agent-id", f"{UUID}{JOINT}agent-7")),
    ("Claude Code, id in the body only", [], {"metadata": {"user_id": CLAUDE_USER}}, (8, Kind.COHORT, "cohort:metadata.user_id", UUID)),
    ("Claude Code, formerly", [], {"metadata": {"user_id": f"user_{'a' * 64}_account__session_{UUID}"}}, (8, Kind.COHORT, "cohort:metadata.user_id", UUID)),
    ("Claude Code behind a LiteLLM proxy", [], {"prompt_cache_key": UUID, "user": f"user_{'a' * 59}"}, (9, Kind.COHORT, "cohort:prompt_cache_key", UUID)),
    ("claude-code-router", [("x-client-request-id", UUID)], {}, (11, Kind.NONE, "new", "")),
    ("Cline", [("HTTP-Referer", "https://cline.bot"), ("X-Title", "Cline")], {}, (11, Kind.NONE, "new", "")),
    ("Cline, its own provider", [("X-Task-ID", "1763900000000")], {}, (5, Kind.OWNER, "owner:x-task-id", "1763900000000")),
    ("Roo Code", [("HTTP-Referer", "https://roocode.com"), ("X-Title", "Roo")], {}, (11, Kind.NONE, "new", "")),
    ("Roo Code, its own provider", [("X-Roo-Task-ID", UUID)], {}, (5, Kind.OWNER, "owner:x-roo-task-id", UUID)),
    ("Kilo", [("x-session-affinity", SES), ("X-Session-Id", SES)], {}, (4, Kind.OWNER, "owner:x-session-affinity", SES)),
    ("Kilo, title call", [("x-session-affinity", f"title-{SES}"), ("X-Session-Id", f"title-{SES}")], {}, (4, Kind.OWNER, "owner:x-session-affinity", SES)),
    ("Kilo, its own gateway", [("x-kilo-session", SES), ("x-kilo-request", "msg_1"), ("x-kilocode-taskid", "task")], {}, (5, Kind.OWNER, "owner:x-kilo-session", SES)),
    ("Continue", [("User-Agent", "node-fetch")], {}, (11, Kind.NONE, "new", "")),
    ("Continue with a cache key", [], {"prompt_cache_key": "repo"}, (9, Kind.COHORT, "cohort:prompt_cache_key", "repo")),
    ("aider", [("User-Agent", "litellm/1.108"), *STAINLESS[1:]], {}, (11, Kind.NONE, "new", "")),
    ("Goose", [("agent-session-id", "20260809_29")], {}, (5, Kind.OWNER, "owner:agent-session-id", "20260809_29")),
    ("Goose, formerly", [("goose-session-id", "20260809_29")], {}, (5, Kind.OWNER, "owner:goose-session-id", "20260809_29")),
    ("Goose, opencode_go", [("x-opencode-session", UUID)], {}, (1, Kind.OWNER, "owner:x-opencode-session", UUID)),
    ("Goose towards OpenRouter", [], {"user": "20260809_29"}, (11, Kind.NONE, "new", "")),
    ("Crush", [("x-session-id", "b7e23ec29af22b0b4e41da31e868d572"), ("x-session-affinity", "b7e23ec29af22b0b4e41da31e868d572")], {}, (4, Kind.OWNER, "owner:x-session-affinity", "b7e23ec29af22b0b4e41da31e868d572")),
    ("Zed, openai_compatible", [("User-Agent", "Zed/0.210")], {}, (11, Kind.NONE, "new", "")),
    ("Zed with the cache key on", [], {"prompt_cache_key": UUID}, (9, Kind.COHORT, "cohort:prompt_cache_key", UUID)),
    ("Zed, opencode", [("x-opencode-session", UUID)], {}, (1, Kind.OWNER, "owner:x-opencode-session", UUID)),
    ("LiteLLM proxy", [("x-litellm-trace-id", UUID), ("x-request-id", UUID)], {}, (11, Kind.NONE, "new", "")),
    ("LiteLLM, session header", [("x-litellm-session-id", UUID)], {}, (8, Kind.COHORT, "cohort:x-litellm-session-id", UUID)),
    ("LiteLLM, session in the body", [], {"litellm_session_id": UUID}, (8, Kind.COHORT, "cohort:litellm_session_id", UUID)),
    ("LiteLLM, session in metadata", [], {"metadata": {"session_id": UUID}}, (6, Kind.OWNER, "owner:metadata.session_id", UUID)),
    ("Open WebUI", [], {}, (11, Kind.NONE, "new", "")),
    ("Open WebUI with its switch", [("X-OpenWebUI-Chat-Id", UUID), ("X-OpenWebUI-User-Id", THREAD), ("X-OpenWebUI-User-Email", "a@b.c")], {}, (5, Kind.OWNER, "owner:x-openwebui-chat-id", UUID)),
    ("Open WebUI with templates, a chat", [("x-session-id", UUID), ("x-task", "")], {}, (4, Kind.OWNER, "owner:x-session-id", UUID)),
    ("Open WebUI with templates, a title", [("x-session-id", UUID), ("x-task", "title_generation")], {}, (4, Kind.OWNER, "owner:x-session-id", UUID)),
    ("Open WebUI too old for templates", [("x-session-id", "{{CHAT_ID}}"), ("x-task", "{{TASK}}")], {}, (11, Kind.NONE, "new", "")),
    ("LangChain", STAINLESS, {}, (11, Kind.NONE, "new", "")),
    ("openai SDK", STAINLESS, {"user": "u-1", "safety_identifier": "u-1", "metadata": {"user_id": "u-1"}, "store": False}, (11, Kind.NONE, "new", "")),
    ("curl", [("User-Agent", "curl/8.5.0"), ("Accept", "*/*")], {}, (11, Kind.NONE, "new", "")),
    ("Hermes, opencode", [("x-opencode-session", UUID)], {}, (1, Kind.OWNER, "owner:x-opencode-session", UUID)),
    ("jcode", [("x-opencode-session", UUID)], {}, (1, Kind.OWNER, "owner:x-opencode-session", UUID)),
    ("kimi-cli", [], {"prompt_cache_key": UUID}, (9, Kind.COHORT, "cohort:prompt_cache_key", UUID)),
    ("tau, compaction", [("session_id", UUID)], {"prompt_cache_key": UUID}, (8, Kind.COHORT, "cohort:session-id", UUID)),
    ("WorkBuddy", [], {"conversationId": "c-17"}, (6, Kind.OWNER, "owner:conversationId", "c-17")),
    ("DeepSeek Harness", [("x-deepseek-harness-session-id", UUID)], {}, (5, Kind.OWNER, "owner:x-deepseek-harness-session-id", UUID)),
    ("Helicone", [("Helicone-Session-Id", UUID)], {}, (5, Kind.OWNER, "owner:helicone-session-id", UUID)),
    ("Grok", [("x-grok-conv-id", UUID)], {}, (5, Kind.OWNER, "owner:x-grok-conv-id", UUID)),
]
# fmt: on
IDS = [row[0] for row in ROWS]


def facts_of(extra):
    raw = json.dumps(CHAT | extra).encode()
    return body.read([raw], len(raw), False)


def fields_of(headers):
    return [(name.encode(), value.encode()) for name, value in [*KEY, *headers]]


def read(headers, extra):
    return read_ids(fields_of(headers), None, facts_of(extra))


@pytest.mark.parametrize(("name", "headers", "extra", "expected"), ROWS, ids=IDS)
def test_a_client_is_read_by_the_table(name, headers, extra, expected):
    """Each client's requests are of the rank and class that the evidence gives them."""
    reading = read(headers, extra)
    assert (reading.rank, reading.kind, reading.match, reading.value) == expected


@pytest.mark.parametrize(("name", "headers", "extra", "expected"), ROWS, ids=IDS)
def test_the_case_and_the_separators_of_names_do_not_matter(name, headers, extra, expected):
    """Fields are the same in upper case, in title case, and with _ where others write -."""
    for spell in (
        str.upper,
        str.title,
        lambda text: text.replace("-", "_"),
        lambda text: text.upper().replace("-", "_"),
    ):
        spelled = [(spell(field), value) for field, value in headers]
        reading = read(spelled, extra)
        assert (reading.rank, reading.kind, reading.match, reading.value) == expected


@given(st.sampled_from(ROWS), st.randoms())
def test_the_order_of_fields_does_not_matter(row, random):
    """A hop that reorders fields changes nothing."""
    _, headers, extra, expected = row
    fields = fields_of(headers)
    random.shuffle(fields)
    reading = read_ids(fields, None, facts_of(extra))
    assert (reading.rank, reading.kind, reading.match, reading.value) == expected
