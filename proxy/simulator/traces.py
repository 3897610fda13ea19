"""Conversations as real clients send them: they grow turn by turn, ask for titles, and call tools.

Pure data, the same for the same seed. Whoever plays them hands back what was answered, and sends what follows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import orjson

from proxy.simulator.clients import OPENCODE, PI, Client
from proxy.simulator.draw import Draw
from proxy.simulator.prompts import BLOCK_TOKENS, TOKEN_BYTES, Prompt
from proxy.simulator.prose import words

Message = dict[str, Any]

FIRST_PROMPT_TOKENS: Final = 6_000
PERSONS: Final = 0.5  # the share of turns that a person begins; the others follow a tool's result
TITLE_PROMPT: Final = "You name conversations. Answer with a title of at most six words."
_TOOLS: Final[list[Message]] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"{name.capitalize()} something in the working directory.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
    }
    for name in ("read", "write", "edit", "bash", "grep", "list")
]


@dataclass(frozen=True, slots=True)
class Turn:
    """One request of a conversation.

    Attributes:
        pause_ms: From the last answer's end to this request, when a person thinks.
        tool_ms: The same when the answer called a tool.
        adds_tokens: How much this turn's own message holds.
    """

    pause_ms: float
    tool_ms: float
    adds_tokens: int


@dataclass(frozen=True, slots=True)
class Call:
    """One request, ready to send. ``path`` follows a base URL such as ``http://127.0.0.1:8377/zen/go/v1``."""

    kind: Literal["turn", "title", "warming"]
    fields: tuple[tuple[str, str], ...]
    body: bytes
    path: str = "/chat/completions"


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation of one client. ``start_ms`` counts from the trace's beginning."""

    number: int
    client: Client
    model: str
    session: str
    start_ms: float
    turns: tuple[Turn, ...]
    draw: Draw
    key: str = "sk-simulated"
    parent: str = ""  # the session it was started from, for a sub-agent's

    def child(self) -> "Conversation":
        """A sub-agent's conversation: a session of its own, which names this one."""
        draw = Draw.about(self.draw.subject, "child")
        session = self.client.session(draw, self.start_ms)
        return replace(
            self, session=session, turns=self.turns[: max(1, len(self.turns) // 2)], draw=draw, parent=self.session
        )

    def call(self, turn: int, replies: Sequence[Message] = ()) -> Call:
        """The request of a turn, from 0; ``replies`` are the assistant's messages so far, invented where missing."""
        return self._call("turn", turn, self._messages(turn, replies), {"tools": _TOOLS, "stream": True})

    def title(self) -> Call | None:
        """The request for a title, sent beside the first turn; None if the client asks for none."""
        if not self.client.titles:
            return None
        messages = [{"role": "system", "content": TITLE_PROMPT}, self._said(0)]
        return self._call("title", 0, messages, {"stream": True, "max_tokens": 60})

    def warming(self, turn: int, replies: Sequence[Message] = ()) -> Call | None:
        """The last turn again for one token, while the user is away; None if the client does not."""
        if not self.client.warms:
            return None
        more = {"tools": _TOOLS, "stream": True, "max_tokens": 1}
        return self._call("warming", turn, self._messages(turn, replies), more)

    def waits_ms(self, turn: int) -> float:
        """How long after the last answer's end this turn is sent: half of them follow a tool, half a person.

        Which it is belongs to the trace and not to the answer, so that two policies meet the same conversations.
        """
        person = self.draw.fraction(f"person {turn}") < PERSONS
        return self.turns[turn].pause_ms if person else self.turns[turn].tool_ms

    def prompt_tokens(self, turn: int) -> int:
        """About how many tokens a turn's prompt has, without the replies."""
        return FIRST_PROMPT_TOKENS + sum(one.adds_tokens for one in self.turns[: turn + 1])

    def prompt(self, turn: int) -> Prompt:
        """A turn's prompt as a cache would see it, without making its text: for worlds without sockets."""
        tokens = self.prompt_tokens(turn)
        first = int(self.draw.hex("prompt", 14), 16)
        return Prompt(tokens, range(first, first + tokens // BLOCK_TOKENS))

    def _call(
        self, kind: Literal["turn", "title", "warming"], turn: int, messages: list[Message], more: Message
    ) -> Call:
        body = {"model": self.model, "messages": messages} | more
        message_id = f"msg_{Draw.about(self.draw.subject, turn).hex('message', 26)}"
        return Call(kind, self.client.fields(self.session, self.key, message_id, self.parent), orjson.dumps(body))

    def _messages(self, turn: int, replies: Sequence[Message]) -> list[Message]:
        system = f"You are a coding agent. Working directory: /home/user/project-{self.number}\n"
        messages = [{"role": "system", "content": system + _text(Draw("system"), FIRST_PROMPT_TOKENS)}, self._said(0)]
        for past in range(turn):
            reply = replies[past] if past < len(replies) else self._invented(past)
            messages.append(reply)
            messages += self._after(reply, past + 1)
        return messages

    def _said(self, turn: int) -> Message:
        text = _text(Draw.about(self.draw.subject, turn), self.turns[turn].adds_tokens)
        return {"role": "user", "content": f"{self.number}.{turn}: {text}"}

    def _after(self, reply: Message, turn: int) -> list[Message]:
        """The results of the tools it called, or what the user says."""
        calls = reply.get("tool_calls") or []
        if not calls:
            return [self._said(turn)]
        text = _text(Draw.about(self.draw.subject, turn), max(1, self.turns[turn].adds_tokens // len(calls)))
        return [{"role": "tool", "tool_call_id": call["id"], "content": text} for call in calls]

    def _invented(self, turn: int) -> Message:
        said = Draw.about(self.draw.subject, "reply", turn)
        return {"role": "assistant", "content": "".join(words(said, int(said.scaled("length", 20, 300))))}


_PAGE: Final = "".join(words(Draw("page"), 40_000)).encode().decode("ascii", "ignore")


def _text(draw: Draw, tokens: int) -> str:
    """Text of about this many tokens; where it starts is the draw's."""
    size = tokens * TOKEN_BYTES
    start = int(draw.fraction("page") * len(_PAGE) / 2)
    pages = size // (len(_PAGE) - start) + 1
    return (_PAGE[start:] * pages)[:size]


def conversations(
    seed: int,
    count: int,
    *,
    every_ms: float,
    burst: int = 1,
    turns: tuple[int, int] = (3, 40),
    peak_tokens: int = 150_000,
    models: Sequence[str] = ("deepseek-v4.1-flash",),
    clients: Sequence[Client] = (PI, OPENCODE),
) -> list[Conversation]:
    """``count`` conversations, ``burst`` of them at once every ``every_ms``.

    Each has a number of turns between the bounds, small numbers more often, and ends early at ``peak_tokens``.
    """
    made = []
    for number in range(count):
        draw = Draw.about("trace", seed, number)
        start_ms = number // burst * every_ms
        client = draw.one_of("client", clients)
        session = client.session(draw, 1_796_000_000_000 + seed * 10**9 + start_ms)
        planned = _turns(draw, int(draw.scaled("turns", turns[0], turns[1] + 1)), peak_tokens)
        model = draw.one_of("model", models)
        made.append(Conversation(number, client, model, session, start_ms, planned, draw))
    return made


def _turns(draw: Draw, count: int, peak_tokens: int) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    total = FIRST_PROMPT_TOKENS
    for number in range(count):
        adds = int(draw.scaled(f"adds {number}", 200, 12_000)) if number else int(draw.scaled("first", 20, 2_000))
        if turns and total + adds > peak_tokens:
            break
        total += adds
        pause_ms = draw.scaled(f"pause {number}", 4_000, 120_000)
        turns.append(Turn(pause_ms, draw.scaled(f"tool {number}", 200, 5_000), adds))
    return tuple(turns)
