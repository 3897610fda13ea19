"""Reads an answer that is one JSON document, or keeps the beginning of a refusal. Nothing here raises."""

import orjson

from proxy.answers import chat
from proxy.answers.reading import Tap
from proxy.answers.usage import normalised
from proxy.conversation.answer import Answer

MAX_JSON = 1_048_576  # a longer document is not read: it is relayed all the same
MAX_REFUSAL = 65_536


class BodyReader(Tap):
    """One document, read at its end."""

    __slots__ = ("_kept", "_size", "_wants_answer", "answer")
    stream = False
    events = 0
    first_semantic_ms = None

    def __init__(self, *, wants_answer: bool = False) -> None:
        self._wants_answer = wants_answer
        self._kept: list[bytes] = []
        self._size = 0
        self.begun = False
        self.answer: Answer | None = None
        self.usage = self.counts = self.error = self.model = self.unread = None

    def feed(self, data: bytes) -> None:
        """The next piece."""
        self.begun = True
        self._size = size = self._size + len(data)
        if size <= MAX_JSON:
            self._kept.append(data)
        elif self._kept:
            self.unread = "size"
            self._kept.clear()

    def close(self) -> None:
        """The body is over: read it."""
        kept = self._kept
        if not kept:
            return
        body = b"".join(kept)
        kept.clear()
        try:
            document = orjson.loads(body)
            if isinstance(document, list):  # Google streams an array where nobody asks for events
                for event in document:
                    self._take(event, body)
            else:
                self._take(document, body)
            if self._wants_answer:
                self.answer = chat.whole(document)
        except Exception:  # noqa: BLE001 - whatever an upstream sends must not reach the relay
            self.unread = "json"
        self.counts = normalised(self.usage)


class Refusal(Tap):
    """An answer that says no, of whatever kind: its first 64 KiB are kept, because somebody is to blame for it."""

    __slots__ = ("body",)
    stream = False
    events = 0
    first_semantic_ms = usage = counts = error = model = unread = None

    def __init__(self) -> None:
        self.begun = False
        self.body = b""

    def feed(self, data: bytes) -> None:
        """The next piece."""
        self.begun = True
        if len(self.body) < MAX_REFUSAL:
            self.body += data[: MAX_REFUSAL - len(self.body)]

    def close(self) -> None:
        """It is for others to read."""
