"""Reads an answer that is one JSON document, or keeps the beginning of a refusal. Nothing here raises."""

from collections.abc import Callable
from typing import Any

import orjson

from proxy.answers.chat import ChatAnswer
from proxy.answers.events import Facts
from proxy.conversation.answer import Answer

MAX_JSON = 1_048_576  # a longer document is not read: it is relayed all the same
MAX_REFUSAL = 65_536


class BodyReader:
    """One body. A ``refusal`` is only kept, its first 64 KiB; an answer is read at its end.

    ``unread`` says why it could not be: ``size``, ``json``.
    """

    __slots__ = ("_chat", "_facts", "_kept", "_mono_ms", "_refusal", "events", "first_semantic_ms", "size", "unread")

    def __init__(self, mono_ms: Callable[[], float], *, wants_answer: bool = False, refusal: bool = False) -> None:
        self._mono_ms = mono_ms
        self._chat = ChatAnswer() if wants_answer else None
        self._facts = Facts()
        self._refusal = refusal
        self._kept: list[bytes] = []
        self.size = 0
        self.events = 0
        self.first_semantic_ms: float | None = None
        self.unread: str | None = None

    def feed(self, data: bytes) -> None:
        """The next piece."""
        if self.first_semantic_ms is None:
            self.first_semantic_ms = self._mono_ms()
        before = self.size
        self.size += len(data)
        if self._refusal:
            if before < MAX_REFUSAL:
                self._kept.append(data[: MAX_REFUSAL - before])
        elif self.size <= MAX_JSON:
            self._kept.append(data)
        elif self.unread is None:
            self.unread = "size"
            self._kept.clear()

    @property
    def body(self) -> bytes:
        """What was kept."""
        return b"".join(self._kept)

    @property
    def last_semantic_ms(self) -> float | None:
        """A body is one event."""
        return self.first_semantic_ms

    @property
    def opening_events(self) -> int:
        """Events before the first with output."""
        return 0

    @property
    def usage(self) -> dict[str, Any] | None:
        """The token counts as the provider put them."""
        return self._facts.usage

    @property
    def error(self) -> bytes | None:
        """The error in place of an answer, as it came."""
        return self._facts.error

    @property
    def model(self) -> str | None:
        """What the answer calls its model."""
        return self._facts.model

    @property
    def answer(self) -> Answer | None:
        """What the model said; None where nobody wanted it or it could not be read."""
        return self._chat.answer() if self._chat is not None and self.unread is None else None

    def close(self) -> None:
        """The body is over: read it."""
        if self._refusal or not self._kept:
            return
        body = b"".join(self._kept)
        self._kept = []
        try:
            document = orjson.loads(body)
            # Google streams an array where nobody asks for events.
            for event in document if isinstance(document, list) else (document,):
                self._facts.read(event, body)
                if self._chat is not None and not self._chat.add((event,)):
                    self.unread = "json"
        except Exception:  # noqa: BLE001 - whatever an upstream sends must not reach the relay
            self.unread = "json"
