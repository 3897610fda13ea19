"""What may be asked of the reader of an answer, whichever it is.

A reader sees copies of the entity's bytes and changes nothing. It never raises or waits, and holds a bounded amount.
"""

from abc import abstractmethod
from typing import Any

from proxy.answers import usage
from proxy.answers.events import failed, model_of
from proxy.answers.usage import Usage
from proxy.conversation.answer import Answer


class Tap:
    """Reads one answer. What was read stands after ``close``; instants and ``begun`` stand at once.

    ``stream``: it is one of server-sent events; ``events`` of them came in all, the end mark included.
    ``begun``: the answer itself has begun, a stream's at ``first_semantic_ms``, on the clock that was given.
    ``usage`` holds the token counts as the provider put them, ``counts`` in our own terms; ``error`` is an error in
    place of an answer, as it came; ``model`` is what the answer calls its model. ``unread`` says why something that was
    wanted could not be read: ``coding``, ``size``, ``line`` (both too long), ``json``. ``body`` is kept of a refusal.
    """

    __slots__ = ("begun", "counts", "error", "model", "unread", "usage")

    stream: bool
    begun: bool
    events: int
    first_semantic_ms: float | None
    usage: dict[str, Any] | None
    counts: Usage | None
    error: bytes | None
    model: str | None
    unread: str | None
    body = b""

    @abstractmethod
    def feed(self, data: bytes) -> None:
        """The next piece."""

    def feed_all(self, pieces: list[bytes]) -> None:
        """Pieces that came one after the other, seen later."""
        self.feed(b"".join(pieces))

    @abstractmethod
    def close(self) -> None:
        """The answer is over: read what could not be read before."""

    @property
    def answer(self) -> Answer | None:
        """What the model said; None where nobody wants it, where it could not be read, or is no chat completion."""
        return None

    def _take(self, event: dict[str, Any], raw: bytes) -> None:
        """Take what one event says beside its text; ``raw`` is its JSON."""
        counts = usage.found(event)
        if counts is not None:
            self.usage = counts if self.usage is None else usage.merged(self.usage, counts)
        if not event.get("choices") and failed(event):
            self.error = raw.strip()
        if self.model is None:
            self.model = model_of(event)
