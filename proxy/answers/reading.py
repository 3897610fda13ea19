"""What was read of one answer, whichever reader read it."""

from typing import Any

from proxy.answers import usage
from proxy.answers.chat import ChatAnswer
from proxy.answers.events import failed, model_of
from proxy.conversation.answer import Answer


class Reading:
    """What is known so far. Instants are on the clock that the reader was given.

    ``usage`` holds the token counts as the provider put them, ``error`` an error in place of an answer, as it came,
    ``model`` what the answer calls its model. ``events`` came in all, ``opening_events`` of them before any output.
    ``unread`` says why something that was wanted could not be read: ``size``, ``line`` (both too long), ``json``.
    """

    __slots__ = (
        "_chat",
        "error",
        "events",
        "first_semantic_ms",
        "model",
        "opening_events",
        "unread",
        "usage",
    )

    def __init__(self, *, wants_answer: bool) -> None:
        self._chat = ChatAnswer() if wants_answer else None
        self.usage: dict[str, Any] | None = None
        self.error: bytes | None = None
        self.model: str | None = None
        self.events = self.opening_events = 0
        self.first_semantic_ms: float | None = None
        self.unread: str | None = None

    @property
    def answer(self) -> Answer | None:
        """What the model said; without its text where some of it could not be read.

        None where nobody wanted it, or where this is no chat completion.
        """
        if self._chat is None or not self._chat.begun:
            return None
        answer = self._chat.answer()
        return answer if self.unread is None else answer._replace(text=None)

    def _take(self, event: dict[str, Any], raw: bytes) -> None:
        """Take what one event says beside its text; ``raw`` is its JSON."""
        counts = usage.found(event)
        if counts is not None:
            self.usage = usage.merged(self.usage, counts)
        if failed(event):
            self.error = raw.strip()
        if self.model is None:
            self.model = model_of(event)
