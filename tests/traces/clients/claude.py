"""Claude Code: in its own format, behind a router, and behind a LiteLLM proxy."""

import json
from typing import Any

from tests.traces import words
from tests.traces.clients.base import Client, date, tool
from tests.traces.play import Reply, Request
from tests.traces.session import Entry, Result, Said, Session, User

_CONTINUED = "This session is being continued from a previous conversation that ran out of context."


def _reminder(session: Session) -> str:
    return (
        "<system-reminder>\nAs you answer the user's questions, you can use the following context:\n# claudeMd\n"
        f"{words.fixed('claude.md', 300)}\n# currentDate\nToday's date is {date(session.clock.now)}.\n</system-reminder>"
    )


class ClaudeCode(Client):
    """Messages: the session in a field and in ``metadata.user_id``, an agent's id beside it for a sub-agent."""

    name = "claude-code"
    agent = "claude-cli/2.1.197 (external, cli)"
    fixed = [("anthropic-version", "2023-06-01"), ("x-app", "cli"), ("anthropic-beta", "claude-code-20250219")]
    path = "/zen/go/v1/messages"
    call_style = "anthropic"
    small = "claude-haiku-5-5"
    models = ("claude-sonnet-5-5", "claude-opus-5-5")
    names = False
    does = ("compact", "agents", "edit_last", "switch", "retry", "abort")

    def identify(self, session: Session, kind: str, request: Request) -> None:
        root = session.parent or session
        request.id_fields = [("X-Claude-Code-Session-Id", root.id)]
        if session.agent:
            request.id_fields.append(("x-claude-code-agent-id", session.agent))
        user = {"device_id": "d" * 64, "account_uuid": "", "session_id": root.id}
        request.id_body = {"metadata": {"user_id": json.dumps(user)}}

    def body(self, session: Session, kind: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
        system = next((m["content"] for m in messages if m["role"] == "system"), None)
        rest = [message for message in messages if message["role"] != "system"]
        body = super().body(session, kind, rest)
        body.pop("stream_options", None)
        body |= {
            "max_tokens": 32_000,
            "system": [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
        }
        if "tools" in body:
            body["tools"] = [
                {"name": made["name"], "description": made["description"], "input_schema": made["parameters"]}
                for made in (entry["function"] for entry in body["tools"])
            ]
        if kind in ("turn", "agent") and isinstance(rest[-1]["content"], list):
            last = dict(rest[-1]["content"][-1], cache_control={"type": "ephemeral"})
            rest[-1] = {"role": rest[-1]["role"], "content": [*rest[-1]["content"][:-1], last]}
        return body

    def messages(self, session: Session) -> list[dict[str, Any]]:
        """Results of one answer's calls are one message."""
        made: list[dict[str, Any]] = [{"role": "system", "content": self.system(session)}]
        for index, entry in enumerate(session.history):
            new = self.entry(session, entry, index)
            if isinstance(entry, Result) and isinstance(session.history[index - 1], Result):
                made[-1]["content"] += new["content"]
            else:
                made.append(new)
        return made

    def entry(self, session: Session, entry: Entry, index: int) -> dict[str, Any]:
        match entry:
            case User(text=text):
                parts = [{"type": "text", "text": text}]
                if index == 0:
                    parts.insert(0, {"type": "text", "text": _reminder(session)})
                return {"role": "user", "content": parts}
            case Said():
                parts = [{"type": "text", "text": entry.text}] if entry.text else []
                return {"role": "assistant", "content": [*parts, *(_use(call) for call in entry.calls)]}
            case Result():
                content = {"type": "tool_result", "tool_use_id": entry.call.id, "content": entry.text}
                return {"role": "user", "content": [content]}

    def title(self, session: Session) -> list[dict[str, Any]]:
        told = "Write a title in sentence case for this session, as JSON with one field."
        asked = [{"type": "text", "text": f"<session>\n{session.opener}\n</session>"}]
        return [{"role": "system", "content": told}, {"role": "user", "content": asked}]

    def aborted(self, session: Session, reply: Reply) -> None:
        session.history.append(Said(reply.text))
        session.history.append(User("[Request interrupted by user]", session.clock.now))

    def compaction(self, session: Session) -> list[list[dict[str, Any]]]:
        asked = [{"type": "text", "text": "Your task is to create a detailed summary of the conversation so far."}]
        return [[*self.messages(session), {"role": "user", "content": asked}]]

    def compacted(self, session: Session, summaries: list[str]) -> list[Entry]:
        return [User(f"{_CONTINUED}\n\nSummary:\n{summaries[0]}", session.clock.now)]


def _use(call: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}


class ClaudeRouter(Client):
    """Behind claude-code-router, in the chat format: a random ``x-client-request-id``, and the session where it is passed on."""

    name = "claude-code-router"
    agent = "undici"
    names = False
    models = ("glm-5.3", "kimi-k3")
    small = "deepseek-v4.1-flash"
    compact_arguments = True
    does = ("compact", "agents", "edit_last", "switch", "retry")
    compacted = ClaudeCode.compacted

    def identify(self, session: Session, kind: str, request: Request) -> None:
        root = session.parent or session
        request.id_fields = [("x-claude-code-session-id", root.id)]
        if session.agent:
            request.id_fields.append(("x-claude-code-agent-id", session.agent))

    def head(self, session: Session, kind: str) -> list[tuple[str, str]]:
        return [("x-client-request-id", words.uuid(session.rng))]

    def user(self, session: Session, entry: User, index: int) -> Any:
        parts = [_reminder(session), entry.text] if index == 0 else [entry.text]
        return [{"type": "text", "text": text} for text in parts]

    def title(self, session: Session) -> list[dict[str, Any]]:
        asked = f"<session>\n{session.opener}\n</session>"
        return [
            {"role": "system", "content": "Write a title as JSON with one field."},
            {"role": "user", "content": asked},
        ]

    def compaction(self, session: Session) -> list[list[dict[str, Any]]]:
        asked = "Your task is to create a detailed summary of the conversation so far."
        return [[*self.messages(session), {"role": "user", "content": asked}]]


class ClaudeLiteLLM(ClaudeRouter):
    """Behind a LiteLLM proxy: ``prompt_cache_key`` is the session, shared with sub-agents; ``user`` is cut off."""

    name = "claude-code-litellm"
    agent = "litellm/1.108.0"

    def head(self, session: Session, kind: str) -> list[tuple[str, str]]:
        return []

    def identify(self, session: Session, kind: str, request: Request) -> None:
        root = session.parent or session
        request.id_body = {"prompt_cache_key": root.id, "user": f'{{"device_id": "{"d" * 49}'}


class Codex(Client):
    """Responses: session and thread in fields, the session as cache key; a sub-agent keeps the session, not the thread."""

    name = "codex"
    agent = "codex_cli_rs/0.171.0 (Linux; x86_64)"
    fixed = [("originator", "codex_cli_rs")]
    path = "/zen/v1/responses"
    models = ("gpt-6-luna", "gpt-6.2-sol")
    names = False
    does = ("compact", "agents", "edit_last", "switch", "retry", "fork", "abort")

    def identify(self, session: Session, kind: str, request: Request) -> None:
        root = session.parent or session
        turn = {"session_id": root.id, "thread_id": session.id, "thread_source": "user"}
        request.id_fields = [
            ("session-id", root.id),
            ("thread-id", session.id),
            ("x-client-request-id", session.id),
            ("x-codex-window-id", f"{session.id}:0"),
        ]
        if session.parent:
            turn |= {"thread_source": "subagent", "parent_thread_id": root.id}
            request.id_fields.append(("x-codex-parent-thread-id", root.id))
        request.id_fields.append(("x-codex-turn-metadata", json.dumps(turn)))
        request.id_body = {"prompt_cache_key": root.id}

    def body(self, session: Session, kind: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
        tools = [{"type": "function", "strict": False, **tool(name, self.name)["function"]} for name in self.uses]
        return {
            "model": session.model,
            "instructions": self.system(session),
            "input": messages,
            "tools": tools,
            "tool_choice": "auto",
            "store": False,
            "stream": True,
            "include": ["reasoning.encrypted_content"],
        }

    def messages(self, session: Session) -> list[dict[str, Any]]:
        told = f"<environment_context>\n  <cwd>{session.cwd}</cwd>\n  <current_date>{date(session.started_at)}</current_date>\n</environment_context>"
        made = [
            _item(
                "developer", "input_text", "<permissions instructions>Ask before you write.</permissions instructions>"
            ),
            _item("user", "input_text", told),
        ]
        for entry in session.history:
            match entry:
                case User(text=text):
                    made.append(_item("user", "input_text", text))
                case Said():
                    made += [_item("assistant", "output_text", entry.text)] * bool(entry.text)
                    made += [
                        {"type": "function_call", "call_id": c.id, "name": c.name, "arguments": c.arguments}
                        for c in entry.calls
                    ]
                case Result(call=call, text=text):
                    made.append({"type": "function_call_output", "call_id": call.id, "output": text})
        return made

    def compaction(self, session: Session) -> list[list[dict[str, Any]]]:
        asked = "You are performing a context checkpoint compaction. Create a handoff summary."
        return [[*self.messages(session), _item("user", "input_text", asked)]]

    def compacted(self, session: Session, summaries: list[str]) -> list[Entry]:
        users: list[Entry] = [entry for entry in session.history if isinstance(entry, User)]
        told = f"Another language model started to solve this problem. Its summary:\n{summaries[0]}"
        return [*users[-3:], User(told, session.clock.now)]


def _item(role: str, kind: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
