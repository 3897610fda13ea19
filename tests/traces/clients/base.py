"""What all clients of the chat format share. Each differs in what it wraps, keeps, asks beside, and says of itself."""

import json
from random import Random
from typing import Any

from tests.traces import words
from tests.traces.play import Clock, Reply, Request, Script
from tests.traces.session import TOOLS, Entry, Result, Said, Session, User

DAY_MS = 86_400_000
STAINLESS_JS = [
    ("x-stainless-lang", "js"),
    ("x-stainless-package-version", "6.49.0"),
    ("x-stainless-runtime", "node"),
    ("x-stainless-retry-count", "0"),
]
STAINLESS_PY = [
    ("x-stainless-lang", "python"),
    ("x-stainless-package-version", "3.57.0"),
    ("x-stainless-async", "false"),
    ("x-stainless-retry-count", "0"),
]


def date(at: int) -> str:
    """The day of an instant, as prompts say it."""
    days = at // DAY_MS
    return f"2025-{1 + days // 28 % 12:02d}-{1 + days % 28:02d}"


def clock_time(at: int) -> str:
    seconds = at // 1000 % 86_400
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def tool(name: str, client: str) -> dict[str, Any]:
    """A tool's declaration; every client describes its own."""
    properties = {key: {"type": "string"} for key in ("path", "pattern", "command", "old", "new")}
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {
        "type": "function",
        "function": {"name": name, "description": f"The {name} tool of {client}.", "parameters": schema},
    }


class Client:
    """A client of the chat format that sends nothing of its session.

    Attributes:
        name: The row of the table.
        agent: Its User-Agent.
        fixed: What else it always sends.
        models: What its users run.
        small: The model of its side calls, None for the conversation's own.
        id_style: How it makes session ids.
        call_style: How its endpoint names tool calls.
        uses: Its tools; none for a plain chat.
        does: What happens in its conversations beside plain turns.
        thinks: The endpoint's reasoning comes beside the answer.
        compact_arguments: It parses a tool call and writes the arguments anew.
        empty: How it spells an assistant message without text.
        retries: It is built on an SDK that counts its retries.
        names: How users make it exact: a name in the path, for those that send no field.
    """

    name = "plain"
    agent = "client/1.0"
    fixed: list[tuple[str, str]] = []
    models = ("kimi-k3", "deepseek-v4.1-flash", "glm-5.3")
    small: str | None = None
    id_style = "uuid"
    call_style = "openai"
    uses: tuple[str, ...] = TOOLS
    does: tuple[str, ...] = ()
    thinks = False
    compact_arguments = False
    empty: str | None = None
    retries = False
    names = True
    stream = True
    path = "/v1/chat/completions"

    # --- a session

    def session(
        self,
        rng: Random,
        clock: Clock,
        label: str,
        key: str,
        parent: Session | None = None,
        agent: str | None = None,
        cwd: str = "",
    ) -> Session:
        made = Session(self, rng, clock, label, key, parent=parent, agent=agent)
        made.id = self.new_id(rng)
        made.model = parent.model if parent else rng.choice(self.models)
        made.cwd = cwd or f"/home/ada/src/{rng.choice(('shop', 'ledger', 'atlas', 'relay'))}"
        made.started_at = clock.now
        made.call_ids = words.CallIds(self.call_style)
        return made

    def new_id(self, rng: Random) -> str:
        return words.uuid(rng)

    def identify(self, session: Session, kind: str, request: Request) -> None:
        """Add what the client says of its session."""
        if self.names:
            request.id_name = f"{self.name}-{session.id[:13]}"

    # --- a request

    def request(self, session: Session, kind: str, messages: list[dict[str, Any]], reply: Reply) -> Request:
        body = self.body(session, kind, messages)
        request = Request(
            self.name,
            kind,
            session.key,
            self.path,
            [("User-Agent", self.agent), ("Content-Type", "application/json"), *self.head(session, kind)],
            body,
            session.label,
            reply,
            takes_ms=session.rng.randrange(1_200, 16_000),
            content=session.content,
        )
        self.identify(session, kind, request)
        return request

    def head(self, session: Session, kind: str) -> list[tuple[str, str]]:
        return list(self.fixed)

    def body(self, session: Session, kind: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
        side = kind not in ("turn", "agent")
        body: dict[str, Any] = {"model": self.small if side and self.small else session.model, "messages": messages}
        if self.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        if self.uses and self.tools_on(kind):
            body["tools"] = [tool(name, self.name) for name in self.uses]
        return body

    def tools_on(self, kind: str) -> bool:
        return kind in ("turn", "agent")

    # --- the history on the wire

    def system(self, session: Session) -> str:
        return f"You are a coding assistant working in {session.cwd}. {words.fixed(self.name, 600)}"

    def messages(self, session: Session) -> list[dict[str, Any]]:
        system = self.system(session)
        first = [{"role": "system", "content": system}] if system else []
        return first + [self.entry(session, entry, index) for index, entry in enumerate(session.history)]

    def entry(self, session: Session, entry: Entry, index: int) -> dict[str, Any]:
        match entry:
            case User():
                return {"role": "user", "content": self.user(session, entry, index)}
            case Said():
                return self.assistant(session, entry)
            case Result():
                return {"role": "tool", "tool_call_id": self.call_id(entry.call.id), "content": entry.text}

    def user(self, session: Session, entry: User, index: int) -> Any:
        return entry.text

    def assistant(self, session: Session, entry: Said) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": entry.text or (self.empty if entry.calls else "")}
        if entry.calls:
            message["tool_calls"] = [
                {
                    "id": self.call_id(call.id),
                    "type": "function",
                    "function": {"name": call.name, "arguments": self.arguments(call.arguments)},
                }
                for call in entry.calls
            ]
        return message

    def call_id(self, sent: str) -> str:
        return sent

    def arguments(self, sent: str) -> str:
        if not self.compact_arguments:
            return sent
        return json.dumps(json.loads(sent), separators=(",", ":"), ensure_ascii=False)

    def keeps(self, reply: Reply) -> str:
        """What of an answer's text goes into the history."""
        return reply.text

    def spoken(self, reply: Reply) -> Reply:
        """How the model says it to this client: some have tool calls in the text."""
        return reply

    def heard(self, reply: Reply) -> Reply:
        """What the client makes of it: the other way round."""
        return reply

    def aborted(self, session: Session, reply: Reply) -> None:
        """The user stopped this answer; what came of it stays, unless the client drops it."""
        session.said(reply)

    # --- side calls: None where the client has none

    def title(self, session: Session) -> list[dict[str, Any]] | None:
        return None

    title_beside = True  # concurrent with the first turn; else after it

    def after_turn(self, session: Session) -> Script | None:
        """Calls that follow every turn."""
        return None

    def compaction(self, session: Session) -> list[list[dict[str, Any]]] | None:
        """What is asked to shorten the history: one request, or several at once."""
        return None

    def compacted(self, session: Session, summaries: list[str]) -> list[Entry]:
        """The history afterwards."""
        raise NotImplementedError

    def agent_task(self, session: Session, number: int) -> str:
        """What a sub-agent is told."""
        return words.task(session.rng)


def tail(session: Session, turns: int) -> list[Entry]:
    """The last turns of a history, from what the user said on."""
    starts = [index for index, entry in enumerate(session.history) if isinstance(entry, User)]
    return session.history[starts[-turns] :] if len(starts) >= turns else list(session.history)


def serialised(entries: list[Entry], user: str, assistant: str) -> str:
    """A history as text, as some summarisers are given it."""
    parts = []
    for entry in entries:
        match entry:
            case User():
                parts.append(f"{user}{entry.text}")
            case Said() if entry.text:
                parts.append(f"{assistant}{entry.text}")
            case Result():
                parts.append(f"[Tool result]: {entry.text[:200]}")
            case _:
                pass
    return "\n\n".join(parts)
