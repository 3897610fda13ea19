"""Assistants in an editor: Cline, Roo, Continue, Zed, and aider beside it."""

import re
from random import Random
from typing import Any

from tests.traces import words
from tests.traces.clients.base import STAINLESS_JS, STAINLESS_PY, Client, clock_time, date, serialised, tail
from tests.traces.play import Call, Reply, Request, Script
from tests.traces.session import Entry, Result, Said, Session, User
from tests.traces.talk import ask

_XML = re.compile(r"<(read|edit|bash|search)>\n(.*?)\n</\1>", re.DOTALL)

EDITED = 200  # characters of an answer of aider's that has edits in it


def _environment(session: Session, at: int, number: int) -> str:
    rng = Random(f"{session.label}/{number}")
    tabs = "\n".join(words.sentence(rng).split()[-1] for _ in range(3))
    return (
        f"<environment_details>\n# Visible Files\n{tabs}\n\n# Current Time\n{date(at)} {clock_time(at)} (UTC)\n\n"
        f"# Context Window Usage\n{number * 1_733} / 128K tokens used\n</environment_details>"
    )


class Cline(Client):
    """Nothing. It calls tools in the text of an answer, so that results come as user messages; long histories lose their middle."""

    name = "cline"
    agent = "Cline/3.0.65"
    fixed = [("HTTP-Referer", "https://cline.bot"), ("X-Title", "Cline"), *STAINLESS_JS]
    retries = True
    does = ("truncate", "edit_last", "abort", "retry", "compact")

    def tools_on(self, kind: str) -> bool:
        return False

    def spoken(self, reply: Reply) -> Reply:
        text = reply.text + "".join(f"\n<{c.name}>\n{c.arguments}\n</{c.name}>" for c in reply.calls)
        return reply._replace(text=text, calls=())

    def heard(self, reply: Reply) -> Reply:
        calls = tuple(Call(name, name, told) for name, told in _XML.findall(reply.text))
        return reply._replace(calls=calls)

    def assistant(self, session: Session, entry: Said) -> dict[str, Any]:
        return {"role": "assistant", "content": [{"type": "text", "text": entry.text}]}

    def keeps(self, reply: Reply) -> str:
        return reply.text.strip()

    def entry(self, session: Session, entry: Entry, index: int) -> dict[str, Any]:
        if isinstance(entry, Result):
            told = f"[{entry.call.name}] Result:\n{entry.text}"
            parts = [told, _environment(session, entry.at, index)]
            return {"role": "user", "content": [{"type": "text", "text": text} for text in parts]}
        return super().entry(session, entry, index)

    def user(self, session: Session, entry: User, index: int) -> Any:
        text = f"<task>\n{entry.text}\n</task>" if index == 0 else f"<user_message>\n{entry.text}\n</user_message>"
        return [{"type": "text", "text": part} for part in (text, _environment(session, entry.at, index))]

    def aborted(self, session: Session, reply: Reply) -> None:
        session.history.append(Said(f"{reply.text}\n\n[Response interrupted by user]"))

    def compaction(self, session: Session) -> list[list[dict[str, Any]]]:
        asked = "The conversation is getting long. Write a summary of it with <summarize_task>."
        return [[*self.messages(session), {"role": "user", "content": [{"type": "text", "text": asked}]}]]

    def compacted(self, session: Session, summaries: list[str]) -> list[Entry]:
        told = f"This session is continued from one that ran out of context. Summary:\n{summaries[0]}"
        return [*session.history[:2], User(told, session.clock.now)]


class Roo(Client):
    """Nothing. Tool ids are sanitised; what surrounds the user's words moves with the time."""

    name = "roo"
    agent = "RooCode/3.40.0"
    fixed = [("HTTP-Referer", "https://github.com/RooVetGit/Roo-Cline"), ("X-Title", "Roo Code"), *STAINLESS_JS]
    retries = True
    empty = ""
    call_style = "kimi-k2"
    does = ("compact", "edit_last", "abort", "retry", "truncate", "switch")

    def session(self, *given: Any, **more: Any) -> Session:
        made = super().session(*given, **more)
        made.call_ids = words.CallIds("kimi-k2" if made.model == "kimi-k3" else "vllm")
        return made

    def call_id(self, sent: str) -> str:
        return re.sub(r"[^A-Za-z0-9_-]", "_", sent)

    def messages(self, session: Session) -> list[dict[str, Any]]:
        """What surrounds a tool result follows it as a message of the user's."""
        made = [{"role": "system", "content": self.system(session)}]
        for index, entry in enumerate(session.history):
            made.append(self.entry(session, entry, index))
            after = session.history[index + 1] if index + 1 < len(session.history) else None
            if isinstance(entry, Result) and not isinstance(after, Result):
                made.append({"role": "user", "content": _environment(session, entry.at, index)})
        return made

    def user(self, session: Session, entry: User, index: int) -> Any:
        text = f"<user_message>\n{entry.text}\n</user_message>"
        return [{"type": "text", "text": part} for part in (text, _environment(session, entry.at, index))]

    def aborted(self, session: Session, reply: Reply) -> None:
        session.history.append(Said(f"{reply.text}\n\n[Response interrupted by user]"))

    def compaction(self, session: Session) -> list[list[dict[str, Any]]]:
        told = {"role": "system", "content": "Your task is to create a detailed summary of the conversation so far."}
        asked = {"role": "user", "content": "Summarize the conversation so far, as described in the instructions."}
        return [[told, *self.messages(session)[1:], asked]]

    def compacted(self, session: Session, summaries: list[str]) -> list[Entry]:
        return [User(f"## Conversation Summary\n{summaries[0]}", session.clock.now)]


class Continue(Client):
    """Nothing, nor on the title, which is asked for with the first answer."""

    name = "continue"
    agent = "node-fetch"
    empty = " "
    compact_arguments = True
    does = ("edit_last", "regenerate", "edit_first", "abort", "compact")
    title_beside = False

    def keeps(self, reply: Reply) -> str:
        return reply.text.rstrip()

    def title(self, session: Session) -> list[dict[str, Any]] | None:
        said = [entry.text for entry in session.history if isinstance(entry, Said) and entry.text]
        asked = "Given the following, reply with a title for the chat that is 3-4 words in length:\n\n"
        text = re.sub(r"```.*?```", "", said[-1], flags=re.DOTALL).strip() if said else ""
        return [{"role": "user", "content": asked + text}] if text else None

    def compaction(self, session: Session) -> list[list[dict[str, Any]]]:
        asked = "Summarise our conversation so that it can go on from the summary alone."
        return [[*self.messages(session)[1:], {"role": "user", "content": asked}]]

    def compacted(self, session: Session, summaries: list[str]) -> list[Entry]:
        return [User(f"Summary of the conversation so far:\n\n{summaries[0]}", session.clock.now), *tail(session, 1)]


class Zed(Client):
    """``prompt_cache_key`` is the thread, where the model has it switched on; the title repeats the thread."""

    name = "zed"
    agent = "Zed/0.210.4 (linux; x86_64)"
    names = False
    compact_arguments = True
    title_beside = False
    does = ("edit_last", "regenerate", "edit_first", "abort", "switch")

    def identify(self, session: Session, kind: str, request: Request) -> None:
        request.id_body = {"prompt_cache_key": session.id}

    def user(self, session: Session, entry: User, index: int) -> Any:
        return [{"type": "text", "text": entry.text}]

    def title(self, session: Session) -> list[dict[str, Any]]:
        asked = "Write a title of three to seven words for this conversation, without punctuation."
        return [*self.messages(session)[1:], {"role": "user", "content": [{"type": "text", "text": asked}]}]


class Aider(Client):
    """Nothing. A repo map and the chat's files move about between finished turns; files change with every answer."""

    name = "aider"
    agent = "litellm/1.108.0"
    fixed = STAINLESS_PY
    uses = ()
    small = "deepseek-v4.1-flash"
    retries = True
    does = ("retry", "edit_last", "abort", "switch", "summarise", "rerun")

    def messages(self, session: Session) -> list[dict[str, Any]]:
        """System, examples, repo map, finished turns, files, the current turn, reminder."""
        last = session.last_user()
        done = [self.entry(session, entry, index) for index, entry in enumerate(session.history[:last])]
        now = [self.entry(session, entry, index) for index, entry in enumerate(session.history[last:])]
        made = [{"role": "system", "content": f"Act as an expert developer.\n{words.fixed('aider', 500)}"}]
        made += [
            {"role": "user", "content": "Change get_factorial() to use math.factorial"},
            {"role": "assistant", "content": f"To make this change:\n{words.fixed('example', 300)}"},
            {"role": "user", "content": "I switched to a new code base. Please don't consider the above files."},
            {"role": "assistant", "content": "Ok."},
        ]
        version = Random(f"{session.label}/{session.turns}")
        repo = f"Here are summaries of some files present in my git repository.\n{words.output(version)}"
        files = f"I have *added these files to the chat*.\n{words.output(version)}"
        made += [{"role": "user", "content": repo}, {"role": "assistant", "content": "Ok, I won't edit them."}]
        made += done
        made += [{"role": "user", "content": files}, {"role": "assistant", "content": "Ok, any changes are to those."}]
        return [*made, *now, {"role": "system", "content": "Keep to the format of the examples."}]

    def after_turn(self, session: Session) -> Script | None:
        """A commit message, where the answer edited something: its blocks make it a long one."""
        said = session.history[-1]
        if len(said.text) < EDITED or session.rng.random() < 0.3:
            return None
        context = f"USER: {session.history[session.last_user()].text}\nASSISTANT: {said.text}\n"
        messages = [
            {"role": "system", "content": "You write a commit message of one line for the diffs."},
            {"role": "user", "content": f"# Context\n{context}\n{words.output(session.rng)}"},
        ]
        return _quietly(session, "commit", messages)

    def summarise(self, session: Session) -> Script:
        """Finished turns are replaced by a summary, made aside."""
        kept = tail(session, 1)
        text = serialised(session.history[: len(session.history) - len(kept)], "# USER\n", "# ASSISTANT\n")
        messages = [
            {"role": "system", "content": "Briefly summarise this partial conversation about programming."},
            {"role": "user", "content": text},
        ]
        got = yield from ask(session, "summary", messages, Reply(words.prose(session.rng, 500)))
        told = f"I spoke to you previously about a number of things.\n{got.text}"
        session.history = [User(told, session.clock.now), Said("Ok."), *kept]


def _quietly(session: Session, kind: str, messages: list[dict[str, Any]]) -> Script:
    yield from ask(session, kind, messages, Reply(words.sentence(session.rng)[:60]))
