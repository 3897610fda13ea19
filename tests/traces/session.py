"""One conversation as the client keeps it: its history, its ids, and what the model will say next."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.traces import words
from tests.traces.play import Call, Clock, Reply

TOOLS = ("read", "edit", "bash", "search")


@dataclass(slots=True)
class User:
    """What the user said, and when; ``blocks`` are what the client puts around it."""

    text: str
    at: int
    blocks: tuple[str, ...] = ()


@dataclass(slots=True)
class Said:
    """What the model said; ``text`` as the client keeps it."""

    text: str
    calls: tuple[Call, ...] = ()
    reasoning: str = ""


@dataclass(slots=True)
class Result:
    """What a tool brought; ``text`` may be cleared later."""

    call: Call
    text: str
    at: int


Entry = User | Said | Result


@dataclass(slots=True)
class Session:
    """A conversation at one client. ``label`` is the right answer, ``content`` the one without ids where it differs."""

    client: Any
    rng: Random
    clock: Clock
    label: str
    key: str
    id: str = ""
    model: str = ""
    parent: "Session | None" = None
    agent: str | None = None
    content: str | None = None
    history: list[Entry] = field(default_factory=list)
    cwd: str = ""
    opener: str = ""
    started_at: int = 0
    call_ids: words.CallIds = field(default_factory=lambda: words.CallIds("openai"))
    turns: int = 0
    long_answers: bool = False
    extra: dict[str, Any] = field(default_factory=dict)

    def user(self, text: str, *blocks: str) -> None:
        self.history.append(User(text, self.clock.now, blocks))

    def said(self, reply: Reply) -> None:
        self.history.append(Said(self.client.keeps(reply), reply.calls, reply.reasoning))

    def results(self, reply: Reply) -> None:
        for call in reply.calls:
            self.history.append(Result(call, words.output(self.rng), self.clock.now))

    def final(self, text: str | None = None) -> Reply:
        """The model's last word of a turn."""
        long = words.prose(self.rng, self.rng.randrange(240, 900)) if self.long_answers else words.answer(self.rng)
        return Reply(long if text is None else text, reasoning=self._thought())

    def working(self, *tools: str) -> Reply:
        """The model calls tools."""
        calls = tuple(self.call_ids.call(self.rng, tool) for tool in tools)
        return Reply(words.step(self.rng), calls, self._thought())

    def _thought(self) -> str:
        return words.sentence(self.rng) if self.client.thinks else ""

    def last_user(self) -> int:
        """Where the last thing that the user said stands."""
        return max(index for index, entry in enumerate(self.history) if isinstance(entry, User))

    def child(self, number: int, agent: str) -> "Session":
        """A sub-agent's conversation: its own, whatever ids it shares."""
        rng = Random(f"{self.label}/child/{number}")
        return self.client.session(
            rng, self.clock, f"{self.label}/agent-{number}", self.key, parent=self, agent=agent, cwd=self.cwd
        )

    def fork(self, label: str | None = None) -> "Session":
        """The same history under a new id of the client's."""
        number = self.extra.setdefault("forks", 0) + 1
        self.extra["forks"] = number
        rng = Random(f"{self.label}/fork/{number}")
        made = self.client.session(rng, self.clock, label or self.label, self.key, cwd=self.cwd)
        made.history = list(self.history)
        made.content = self.content if label is None else None
        made.started_at = self.started_at
        made.opener = self.opener
        made.call_ids = self.call_ids
        made.model = self.model
        return made


def tail_entries(session: Session, count: int) -> list[Entry]:
    """The last messages with words in them."""
    return [entry for entry in session.history if not isinstance(entry, Result)][-count:]
