"""Reads an answer that is one JSON document, or keeps the beginning of a refusal. Nothing here raises."""

from collections.abc import Callable

import orjson

from proxy.answers.reading import Reading
from proxy.conversation.answer import Answer

MAX_JSON = 1_048_576  # a longer document is not read: it is relayed all the same
MAX_REFUSAL = 65_536


class BodyReader(Reading):
    """One body. A ``refusal`` is only kept, its first 64 KiB; an answer is read at its end."""

    __slots__ = ("_kept", "_mono_ms", "_refusal", "size")

    def __init__(self, mono_ms: Callable[[], float], *, wants_answer: bool = False, refusal: bool = False) -> None:
        super().__init__(wants_answer=wants_answer)
        self._mono_ms = mono_ms
        self._refusal = refusal
        self._kept: list[bytes] = []
        self.size = 0

    def feed(self, data: bytes) -> None:
        """The next piece."""
        if self.first_semantic_ms is None:
            self.first_semantic_ms = self._mono_ms()  # a body is one event
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
    def eager(self) -> bool:
        """Is the instant of the next piece wanted?"""
        return self.first_semantic_ms is None

    @property
    def body(self) -> bytes:
        """What was kept."""
        return b"".join(self._kept)

    @property
    def answer(self) -> Answer | None:
        """What the model said; None where nobody wanted it or it could not be read."""
        return super().answer if self.unread is None else None

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
                self._take(event, body)
                if self._chat is not None and not self._chat.add((event,)):
                    self.unread = "json"
        except Exception:  # noqa: BLE001 - whatever an upstream sends must not reach the relay
            self.unread = "json"
