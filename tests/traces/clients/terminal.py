"""Agents in a terminal: pi, Crush, Goose, Hermes, Kimi's, jcode, tau, Qwen Code."""

import hashlib
from random import Random
from typing import Any

from tests.traces import words
from tests.traces.clients.base import STAINLESS_JS, STAINLESS_PY, Client, clock_time, date, serialised, tail
from tests.traces.play import Reply, Request
from tests.traces.session import Entry, Said, Session, User


class Pi(Client):
    """On a custom provider, its model set to send affinity fields; a compaction is bare even then, and two at once."""

    name = "pi"
    agent = "pi/1.6.0 (linux; node/v22.11.0; x64)"
    fixed = STAINLESS_JS
    names = False
    retries = True
    thinks = True
    compact_arguments = True
    does = ("compact", "edit_last", "fork", "abort", "switch", "retry", "regenerate", "drop_reasoning")

    def identify(self, session: Session, kind: str, request: Request) -> None:
        if kind == "compaction":
            request.loose = True
            return
        names = ("session_id", "x-client-request-id", "x-session-affinity")
        request.id_fields = [(name, session.id) for name in names]

    def system(self, session: Session) -> str:
        now = session.clock.now
        return (
            f"You are an expert coding assistant. {words.fixed(self.name, 900)}\n"
            f"Current date and time: {date(now)} {clock_time(session.started_at)}\n"
            f"Current working directory: {session.cwd}"
        )

    def user(self, session: Session, entry: User, index: int) -> Any:
        return [{"type": "text", "text": entry.text}]

    def assistant(self, session: Session, entry: Said) -> dict[str, Any]:
        message = super().assistant(session, entry)
        if entry.reasoning and not session.extra.get("no_reasoning"):
            message["reasoning_content"] = entry.reasoning
        return message

    def aborted(self, session: Session, reply: Reply) -> None:
        """An answer that was cut off is left out of what it sends from then on."""

    def compaction(self, session: Session) -> list[list[dict[str, Any]]]:
        kept = tail(session, 1)
        older = session.history[: len(session.history) - len(kept)]
        told = {"role": "system", "content": "You summarise conversations and do not continue them."}
        asked = "Create a structured summary that another model will use to go on with the work."
        text = serialised(older, "[User]: ", "[Assistant]: ")
        whole = f"<conversation>\n{text}\n</conversation>\n\n{asked}"
        requests = [[told, {"role": "user", "content": [{"type": "text", "text": whole}]}]]
        if len(kept) > 2:
            split = [self.entry(session, entry, index) for index, entry in enumerate(kept[:-1])]
            prefix = "This is the beginning of a turn that is too large to keep. Summarise it."
            requests.append([*split, {"role": "user", "content": [{"type": "text", "text": prefix}]}])
        return requests

    def compacted(self, session: Session, summaries: list[str]) -> list[Entry]:
        text = "\n\n---\n\n".join(summaries)
        told = f"The conversation before this point was compacted into this summary:\n\n<summary>\n{text}\n</summary>"
        kept = tail(session, 1)
        return [User(told, session.clock.now), *(kept[-1:] if len(kept) > 2 else kept)]


class PiGo(Pi):
    """On its built-in provider: the gateway's own field."""

    name = "pi-opencode-go"

    def identify(self, session: Session, kind: str, request: Request) -> None:
        request.fields.append(("x-opencode-client", "pi"))
        if kind == "compaction":
            request.loose = True
        else:
            request.id_fields = [("x-opencode-session", session.id)]


class Crush(Client):
    """A hash of the session in two fields, on titles and summaries too; a sub-agent has a session of its own."""

    name = "crush"
    agent = "Charm-Crush/0.30 (https://charm.land/crush)"
    names = False
    compact_arguments = True
    empty = ""
    does = ("compact", "agents", "switch", "abort", "retry")

    def identify(self, session: Session, kind: str, request: Request) -> None:
        value = hashlib.sha256(session.id.encode()).hexdigest()[:32]
        request.id_fields = [("x-session-id", value), ("x-session-affinity", value)]

    def system(self, session: Session) -> str:
        return (
            f"You are Crush. {words.fixed(self.name, 900)}\n<env>\nWorking directory: {session.cwd}\n"
            f"Platform: linux\nToday's date: {date(session.clock.now)}\n</env>"
        )

    def title(self, session: Session) -> list[dict[str, Any]]:
        asked = f"Generate a concise title for the following content:\n\n{session.opener}\n <think>\n\n</think>"
        return [
            {"role": "system", "content": "You write a title of at most fifty characters, in one line."},
            {"role": "user", "content": asked},
        ]

    def compaction(self, session: Session) -> list[list[dict[str, Any]]]:
        told = {"role": "system", "content": "You summarise a conversation so that work can go on from it."}
        asked = {"role": "user", "content": "Provide a detailed summary of our conversation above."}
        return [[told, *self.messages(session)[1:], asked]]

    def compacted(self, session: Session, summaries: list[str]) -> list[Entry]:
        return [User(summaries[0], session.clock.now)]


class Goose(Client):
    """``agent-session-id``, such as 20251123_7. It names a session by its first messages and compacts in the system text."""

    name = "goose"
    agent = "goose/1.12"
    names = False
    empty = ""
    does = ("compact", "edit_last", "retry", "abort")

    def new_id(self, rng: Random) -> str:
        return f"2025{rng.randrange(1, 13):02d}{rng.randrange(1, 29):02d}_{rng.randrange(1, 9_999)}"

    def identify(self, session: Session, kind: str, request: Request) -> None:
        request.id_fields = [("agent-session-id", session.id)]

    def system(self, session: Session) -> str:
        hour = clock_time(session.clock.now)[:2]
        return (
            f"You are a general-purpose AI agent called goose. The time is {date(session.clock.now)} {hour}:00.\n"
            f"{words.fixed(self.name, 700)}"
        )

    def title(self, session: Session) -> list[dict[str, Any]]:
        asked = f"Here are the first few user messages:\n{session.opener}\n\nProvide a short name of this session."
        return [{"role": "system", "content": "Answer in four words or less."}, {"role": "user", "content": asked}]

    def compaction(self, session: Session) -> list[list[dict[str, Any]]]:
        text = serialised(session.history, "[user]: ", "[assistant]: ")
        told = f"## Task\nSummarise this conversation.\n\n{text}"
        asked = "Please summarize the conversation history provided in the system prompt."
        return [[{"role": "system", "content": told}, {"role": "user", "content": asked}]]

    def compacted(self, session: Session, summaries: list[str]) -> list[Entry]:
        told = "Your context was compacted. Go on from the summary above and do not mention it."
        return [User(summaries[0], session.clock.now), Said(told), *tail(session, 1)[:1]]


class Hermes(Client):
    """The gateway's own field, on auxiliary calls too."""

    name = "hermes"
    agent = "OpenAI/Python 2.8.0"
    fixed = STAINLESS_PY
    retries = True
    names = False
    does = ("compact", "retry")

    def identify(self, session: Session, kind: str, request: Request) -> None:
        request.id_fields = [("x-opencode-session", session.id)]

    def title(self, session: Session) -> list[dict[str, Any]]:
        said = next((entry.text for entry in session.history if isinstance(entry, Said) and entry.text), "")
        asked = f"User: {session.opener[:500]}\n\nAssistant: {said[:500]}"
        return [
            {"role": "system", "content": "Write a title of three to seven words."},
            {"role": "user", "content": asked},
        ]

    title_beside = False

    def compaction(self, session: Session) -> list[list[dict[str, Any]]]:
        middle = session.history[2:-2]
        asked = f"Summarise these turns:\n\n{serialised(middle, '[USER]: ', '[ASSISTANT]: ')}"
        return [[{"role": "user", "content": asked}]]

    def compacted(self, session: Session, summaries: list[str]) -> list[Entry]:
        told = f"[CONTEXT COMPACTION] Earlier turns were compacted into this summary:\n{summaries[0]}"
        return [session.history[0], Said(told), *tail(session, 1)]


class KimiCli(Client):
    """``prompt_cache_key`` is the session; its model counts its tool calls."""

    name = "kimi-cli"
    agent = "KimiCLI/1.4.0"
    fixed = STAINLESS_PY
    names = False
    retries = True
    thinks = True
    models = ("kimi-k3", "kimi-k2.7-code")
    call_style = "kimi-k2"
    does = ("compact", "retry", "abort")

    def identify(self, session: Session, kind: str, request: Request) -> None:
        request.id_body = {"prompt_cache_key": session.id}

    def assistant(self, session: Session, entry: Said) -> dict[str, Any]:
        message = super().assistant(session, entry)
        if entry.reasoning:
            message["reasoning_content"] = entry.reasoning
        return message

    def compaction(self, session: Session) -> list[list[dict[str, Any]]]:
        text = serialised(session.history, "## user\n", "## assistant\n")
        return [
            [{"role": "system", "content": "You compact contexts."}, {"role": "user", "content": f"{text}\n\nCompact."}]
        ]

    def compacted(self, session: Session, summaries: list[str]) -> list[Entry]:
        told = f"Previous context has been compacted. Here is the compaction output:\n{summaries[0]}"
        return [User(told, session.clock.now), *tail(session, 1)]


class Jcode(Client):
    """The gateway's own field, with a fresh id for a fork."""

    name = "jcode"
    agent = "jcode/0.9"
    names = False
    does = ("fork", "retry", "switch", "regenerate")

    def identify(self, session: Session, kind: str, request: Request) -> None:
        request.id_fields = [("x-opencode-session", session.id)]


class Tau(Pi):
    """``session_id`` and a cache key, but the key alone on a compaction."""

    name = "tau"
    agent = "tau/0.4"
    does = ("compact", "edit_last", "retry")

    def identify(self, session: Session, kind: str, request: Request) -> None:
        request.id_body = {"prompt_cache_key": session.id}
        if kind != "compaction":
            request.id_fields = [("session_id", session.id)]


class QwenCode(Client):
    """Nothing of its session. Its first message is the environment, with the date."""

    name = "qwen-code"
    agent = "QwenCode/0.15.10 (linux; x64)"
    fixed = STAINLESS_JS
    retries = True
    compact_arguments = True
    does = ("compact", "edit_last", "retry", "abort")

    def messages(self, session: Session) -> list[dict[str, Any]]:
        made = super().messages(session)
        told = f"This is Qwen Code. Today is {date(session.started_at)}. Directory: {session.cwd}"
        context = [
            {"role": "user", "content": told},
            {"role": "assistant", "content": "Got it. Thanks for the context!"},
        ]
        return [made[0], *context, *made[1:]]

    def compaction(self, session: Session) -> list[list[dict[str, Any]]]:
        asked = {"role": "user", "content": "First, reason in your scratchpad. Then, generate the <state_snapshot>."}
        made = self.messages(session)
        return [[{"role": "system", "content": "You condense histories into a snapshot."}, *made[1:], asked]]

    def compacted(self, session: Session, summaries: list[str]) -> list[Entry]:
        thanks = Said("Got it. Thanks for the additional context!")
        return [User(summaries[0], session.clock.now), thanks, *tail(session, 1)]
