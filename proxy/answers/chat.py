"""The first choice of a chat completion, put together from the deltas of a stream or taken from a whole answer."""

from collections.abc import Iterable
from typing import Any

import orjson

from proxy.conversation.answer import Answer, ToolCall

MAX_TEXT = 262_144  # characters of text, and of all tool arguments together
_MAX_CALLS = 256
_MAX_NAME = 1024  # characters of a tool call's id or name
_ODD = (TypeError, AttributeError, KeyError, IndexError, ValueError)


class _Call:
    __slots__ = ("arguments", "id", "name")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


class ChatAnswer:
    """Gathers one answer, within bounds: a longer text is not told at all, longer arguments are cut."""

    __slots__ = ("_calls", "_cut", "_finish", "_latest", "_room", "_room_for_arguments", "_texts", "begun")

    def __init__(self) -> None:
        self.begun = False  # it is a chat completion
        self._texts: list[str] = []
        self._room = self._room_for_arguments = MAX_TEXT
        self._calls: dict[object, _Call] = {}
        self._latest: object = None
        self._finish: str | None = None
        self._cut = False

    def add(self, events: Iterable[Any]) -> bool:
        """The next events of the stream, or one whole answer. False where some could not be read."""
        good = True
        for event in events:
            try:
                choices = event.get("choices")
                if choices:
                    self._choice(choices[0])
            except _ODD:
                good = False
        return good

    def add_texts(self, texts: Iterable[str]) -> None:
        """The next pieces of text, where an event holds nothing else."""
        text = "".join(texts)
        if text:
            self._text(text)

    def add_arguments(self, index: int, texts: Iterable[str]) -> None:
        """The next pieces of the arguments of the call with this number, where an event holds nothing else."""
        self._call(index, {"function": {"arguments": "".join(texts)}})

    def _choice(self, choice: dict[str, Any]) -> None:
        self.begun = True
        if choice.get("index"):  # of several choices a client goes on with the first
            return
        delta = choice.get("delta") or choice.get("message")
        if delta:
            content = delta.get("content")
            if content:
                self._text(content)
            calls = delta.get("tool_calls")
            if calls:
                for call in calls:
                    index = call.get("index")
                    # Some providers number nothing: then a new id is a new call.
                    self._call(index if index is not None else call.get("id") or self._latest, call)
            if delta.get("function_call"):
                self._call("function_call", {"function": delta["function_call"]})
        finish = choice.get("finish_reason")
        if finish:
            self._finish = str(finish)[:_MAX_NAME]

    def _text(self, content: object) -> None:
        if not isinstance(content, str):  # a list of parts, as in a request
            parts = content if isinstance(content, list) else []
            content = "".join(part["text"] for part in parts if part.get("type") == "text")
        self._room -= len(content)
        if self._room < 0:
            self._texts.clear()
        elif content:
            self._texts.append(content)

    def _call(self, index: object, delta: dict[str, Any]) -> None:
        call = self._calls.get(index)
        if call is None:
            if len(self._calls) >= _MAX_CALLS:
                self._cut = True
                return
            call = self._calls[index] = _Call()
        self._latest = index
        if delta.get("id"):
            call.id = str(delta["id"])[:_MAX_NAME]
        function = delta.get("function") or {}
        if function.get("name"):
            call.name = str(function["name"])[:_MAX_NAME]
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = orjson.dumps(arguments).decode()
        if not isinstance(arguments, str):
            return
        if len(arguments) > self._room_for_arguments:
            arguments = arguments[: self._room_for_arguments]
            self._cut = True
        self._room_for_arguments -= len(arguments)
        if arguments:
            call.arguments.append(arguments)

    def compact(self) -> None:
        """Join what was gathered in small pieces, which take several times their size."""
        if len(self._texts) > 1:
            self._texts = ["".join(self._texts)]
        for call in self._calls.values():
            if len(call.arguments) > 1:
                call.arguments = ["".join(call.arguments)]

    def answer(self) -> Answer:
        """What there is so far."""
        return Answer(
            "".join(self._texts) if self._room >= 0 else None,
            tuple(ToolCall(call.id, call.name, "".join(call.arguments)) for call in self._calls.values()),
            self._finish,
            self._finish is not None and not self._cut,
        )


def whole(document: Any) -> Answer | None:
    """What a whole answer says, or a list of events; None where that is no chat completion.

    Raises:
        ValueError: some of it cannot be read.
    """
    if isinstance(document, dict) and (plain := _plain(document)) is not None:
        return plain
    chat = ChatAnswer()
    if not chat.add(document if isinstance(document, list) else (document,)):
        raise ValueError("not all of it has the shape of a chat completion")
    return chat.answer() if chat.begun else None


def _plain(document: dict[str, Any]) -> Answer | None:
    """What nearly every whole answer says: a text of choice 0, and nothing else."""
    choices = document.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choice := choices[0], dict):
        return None
    message, finish = choice.get("message"), choice.get("finish_reason")
    if not isinstance(message, dict) or not isinstance(finish, str) or choice.get("index") or choice.get("delta"):
        return None
    text = message.get("content")
    if not isinstance(text, str) or message.get("tool_calls") or message.get("function_call"):
        return None
    if len(text) > MAX_TEXT or not 0 < len(finish) <= _MAX_NAME:
        return None
    return Answer(text, (), finish, True)
