"""OpenCode under both kinds of provider id, and Kilo, which was made from it."""

from random import Random
from typing import Any

from tests.traces import words
from tests.traces.clients.base import Client, date, tail
from tests.traces.play import Request
from tests.traces.session import Entry, Said, Session, User

_HISTORY_ASKED = "What did we do so far?"


class OpenCodeCustom(Client):
    """Under a provider id of the user's: the session twice, and the parent of a sub-agent."""

    name = "opencode"
    agent = "opencode/1.18.33"
    id_style = "ses"
    compact_arguments = True
    empty = ""
    names = False
    does = ("compact", "agents", "edit_last", "edit_first", "fork", "prune", "switch", "abort", "retry")

    def new_id(self, rng: Random) -> str:
        return f"ses_{words.digits(rng, 12)}{words.base62(rng, 14)}"

    def identify(self, session: Session, kind: str, request: Request) -> None:
        request.id_fields = [("x-session-affinity", session.id), ("X-Session-Id", session.id)]
        if session.parent:
            request.id_fields.append(("x-parent-session-id", session.parent.id))

    def system(self, session: Session) -> str:
        return (
            f"You are opencode, an agent that works in a terminal.\n\n{words.fixed(self.name, 900)}\n\n"
            f"<env>\n  Working directory: {session.cwd}\n  Is directory a git repo: yes\n  Platform: linux\n"
            f"  Today's date: {date(session.clock.now)}\n</env>"
        )

    def title(self, session: Session) -> list[dict[str, Any]]:
        return [
            {"role": "system", "content": "You name threads. Answer with one line of at most fifty characters."},
            {"role": "user", "content": "Generate a title for this conversation:\n"},
            {"role": "user", "content": session.opener},
        ]

    def compaction(self, session: Session) -> list[list[dict[str, Any]]]:
        asked = "Provide a detailed summary of the conversation above for another agent that goes on with the work."
        return [[*self.messages(session), {"role": "user", "content": asked}]]

    def compacted(self, session: Session, summaries: list[str]) -> list[Entry]:
        kept = tail(session, 1) if session.rng.random() < 0.5 else []
        return [User(_HISTORY_ASKED, session.clock.now), Said(summaries[0]), *kept]


class OpenCodeGo(OpenCodeCustom):
    """Under a provider id that begins with ``opencode``: the gateway's own field."""

    name = "opencode-go"

    def head(self, session: Session, kind: str) -> list[tuple[str, str]]:
        message = f"msg_{words.digits(session.rng, 12)}{words.base62(session.rng, 14)}"
        return [("x-opencode-request", message), ("x-opencode-project", "global"), ("x-opencode-client", "cli")]

    def identify(self, session: Session, kind: str, request: Request) -> None:
        request.id_fields = [("x-opencode-session", session.id)]
        if session.parent:
            request.id_fields.append(("x-parent-session-id", session.parent.id))


class Kilo(OpenCodeCustom):
    """As OpenCode, but a title has an id of its own, made from the session's."""

    name = "kilo"
    agent = "opencode-kilo/7.7.7"

    def identify(self, session: Session, kind: str, request: Request) -> None:
        value = f"title-{session.id}" if kind == "title" else session.id
        request.id_fields = [("x-session-affinity", value), ("X-Session-Id", value)]
        if session.parent:
            request.id_fields.append(("x-parent-session-id", session.parent.id))
