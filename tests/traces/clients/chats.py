"""Chats and programs: Open WebUI, LangChain, the openai SDKs, LiteLLM in front, WorkBuddy, curl."""

from typing import Any

from tests.traces import words
from tests.traces.clients.base import STAINLESS_PY, Client, serialised
from tests.traces.play import Reply, Request, Script
from tests.traces.session import Session, tail_entries
from tests.traces.talk import ask


class OpenWebUI(Client):
    """The chat's id with its switch on, or in a field of the user's; titles, tags and follow-ups after an answer."""

    name = "open-webui"
    agent = "Python/3.12 aiohttp/3.14.1"
    uses = ()
    names = False
    title_beside = False
    does = ("regenerate", "edit_last", "edit_first", "switch", "abort")

    def system(self, session: Session) -> str:
        return ""

    def identify(self, session: Session, kind: str, request: Request) -> None:
        if session.rng is not None and int(session.id[0], 16) % 2:
            request.id_fields = [("X-OpenWebUI-Chat-Id", session.id)]
            return
        task = "" if kind == "turn" else f"{kind}_generation"
        request.id_fields = [("x-session-id", session.id), ("x-task", task)]

    def title(self, session: Session) -> list[dict[str, Any]]:
        return self.task(session, "Generate a concise, 3-5 word title with an emoji summarizing the chat history.", 2)

    def task(self, session: Session, asked: str, last: int) -> list[dict[str, Any]]:
        text = serialised(tail_entries(session, last), "USER: ", "ASSISTANT: ")
        told = f"### Task:\n{asked}\n### Output:\nJSON\n### Chat History:\n<chat_history>\n{text}\n</chat_history>"
        return [{"role": "user", "content": told}]

    def after_turn(self, session: Session) -> Script:
        return self._tasks(session, session.turns == 1)

    def _tasks(self, session: Session, first: bool) -> Script:
        follow_ups = self.task(session, "Suggest 3-5 relevant follow-up questions that the user might ask next.", 6)
        tags = self.task(session, "Generate 1-3 broad tags categorizing the main themes of the chat history.", 6)
        yield from ask(session, "follow_up", follow_ups, Reply('{"follow_ups": ["And then?"]}'))
        if first:
            yield from ask(session, "tags", tags, Reply('{"tags": ["Technology"]}'))


class LangChain(Client):
    """Nothing, unless the program gives each conversation a field of its own."""

    name = "langchain"
    agent = "langchain-openai/1.7.4"
    fixed = STAINLESS_PY
    retries = True
    names = False
    empty = ""
    models = ("deepseek-v4.1-flash", "glm-5.3")
    does = ("retry", "regenerate", "switch", "truncate")

    def identify(self, session: Session, kind: str, request: Request) -> None:
        request.id_fields = [("x-session-id", session.id)]

    def system(self, session: Session) -> str:
        return f"You are a helpful agent. {words.fixed(self.name, 200)}"


class OpenAISDK(Client):
    """A loop around the SDK: nothing but its retry count; exact with a default header."""

    name = "openai-sdk"
    agent = "OpenAI/Python 3.57.0"
    fixed = STAINLESS_PY
    retries = True
    names = False
    uses = ("search", "read")
    does = ("retry", "regenerate", "truncate", "abort")

    def identify(self, session: Session, kind: str, request: Request) -> None:
        request.id_fields = [("x-session-id", session.id)]

    def system(self, session: Session) -> str:
        return "You are a helpful assistant."

    def body(self, session: Session, kind: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
        return super().body(session, kind, messages) | {"user": "end-user-7", "temperature": 0.2}


class Curl(Client):
    """A shell script that keeps its messages in a file."""

    name = "curl"
    agent = "curl/8.5.0"
    fixed = [("Accept", "*/*")]
    uses = ()
    stream = False
    does = ("retry", "regenerate", "edit_first")

    def system(self, session: Session) -> str:
        return ""


class LiteLLM(Client):
    """Programs behind a LiteLLM proxy that passes their session field on."""

    name = "litellm"
    agent = "litellm/1.108.0"
    fixed = STAINLESS_PY
    names = False
    compact_arguments = True
    does = ("retry", "switch", "truncate")

    def head(self, session: Session, kind: str) -> list[tuple[str, str]]:
        trace = words.uuid(session.rng)
        return [*self.fixed, ("x-litellm-trace-id", trace), ("x-request-id", trace)]

    def identify(self, session: Session, kind: str, request: Request) -> None:
        request.id_fields = [("x-litellm-session-id", session.id)]


class WorkBuddy(Client):
    """``conversationId`` in the body."""

    name = "workbuddy"
    agent = "WorkBuddy/2.4"
    names = False
    uses = ()
    does = ("regenerate", "edit_last", "retry")

    def identify(self, session: Session, kind: str, request: Request) -> None:
        request.id_body = {"conversationId": session.id}

    def system(self, session: Session) -> str:
        return "You are WorkBuddy, a friendly colleague."
