"""What an answer says about itself while it passes: which reader it gets, and what the rest of the house asks of it.

The tap sees copies of the entity's bytes and changes nothing. It never raises, never waits, and holds a bounded amount.
How an answer is read is the business of ``proxy/answers``.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from proxy.answers.body import BodyReader
from proxy.answers.coded import Coded
from proxy.answers.codings import coding_of
from proxy.answers.events import semantic
from proxy.answers.stream import StreamReader
from proxy.answers.usage import Usage, normalised
from proxy.conversation.answer import Answer
from proxy.wire.head import ResponseHead

__all__ = ["Tap", "semantic", "tap_for", "tokens"]

FIELDS = frozenset((b"content-type", b"content-encoding"))  # what of a head says how to read its body


class Tap:
    """Reads one answer. ``stream`` chooses between server-sent events and one body; ``feed`` takes its pieces.

    ``wants_answer``: what the model says is gathered, too, where it is a chat completion. ``coding`` is the answer's
    content coding. A ``refusal`` is only kept. What was read stands after ``close``; instants stand at once.
    """

    __slots__ = ("_coded", "_reader", "feed", "stream")

    def __init__(
        self,
        mono_ms: Callable[[], float],
        *,
        stream: bool,
        wants_answer: bool = False,
        coding: bytes | None = None,
        refusal: bool = False,
    ) -> None:
        self.stream = stream
        self._reader: StreamReader | BodyReader
        if stream:
            self._reader = StreamReader(mono_ms, wants_answer=wants_answer)
        else:
            self._reader = BodyReader(mono_ms, wants_answer=wants_answer, refusal=refusal)
        self._coded = Coded(coding, self._reader.feed) if coding is not None else None
        self.feed: Callable[[bytes], None] = self._reader.feed if self._coded is None else self._coded.feed

    @property
    def eager(self) -> bool:
        """Does it want to see the next piece when it comes, because the instant counts?"""
        return self._reader.eager

    def feed_all(self, pieces: list[bytes]) -> None:
        """Pieces that came one after the other, seen later."""
        if self._coded is None and isinstance(self._reader, StreamReader):
            self._reader.feed_all(pieces)
        else:
            self.feed(b"".join(pieces))

    def close(self) -> None:
        """The answer is over: read what could not be read before."""
        self._reader.close()

    @property
    def size(self) -> int:
        """Size of the answer as it was sent."""
        return self._reader.size if self._coded is None else self._coded.size

    @property
    def events(self) -> int:
        """Events of a stream, the end mark included."""
        return self._reader.events

    @property
    def first_semantic_ms(self) -> float | None:
        """When the first event with output came, on the clock that was given."""
        return self._reader.first_semantic_ms

    @property
    def usage(self) -> dict[str, Any] | None:
        """The token counts as the provider put them."""
        return self._reader.usage

    @property
    def counts(self) -> Usage | None:
        """The token counts in our own terms; None where the provider told none."""
        return normalised(self._reader.usage)

    @property
    def output_tokens(self) -> tuple[int, bool] | None:
        """Tokens of output, and whether that is an estimate: without a count, each event counts as one."""
        told = self.counts
        if told is not None and told.output is not None:
            return told.output, False
        seen = self._reader.events - self._reader.opening_events
        return (seen, True) if self.stream and seen > 0 else None

    @property
    def answer(self) -> Answer | None:
        """What the model said; None where it was not wanted, or could not be read at all."""
        return None if self._coded is not None and self._coded.failed else self._reader.answer

    @property
    def model(self) -> str | None:
        """What the answer calls its model."""
        return self._reader.model

    @property
    def error(self) -> bytes | None:
        """An error inside an answer that said 200, as it came."""
        return self._reader.error

    @property
    def unread(self) -> str | None:
        """Why some of it could not be read: ``coding``, ``size``, ``line``, ``json``; None where all could."""
        return "coding" if self._coded is not None and self._coded.failed else self._reader.unread

    @property
    def body(self) -> bytes:
        """What was kept of an answer that is no stream."""
        return self._reader.body if isinstance(self._reader, BodyReader) else b""


def tokens(usage: dict[str, Any] | None) -> dict[str, int]:
    """The counts of a usage object by kind, in any of the spellings providers use; what was not said is absent."""
    counts = normalised(usage)
    return counts.told() if counts is not None else {}


@lru_cache(maxsize=256)
def _kind(content_type: bytes) -> str | None:
    """What can be read of a content type: ``events``, ``json``, or nothing."""
    told = content_type.lower()
    if b"event-stream" in told:
        return "events"
    return "json" if b"json" in told else None


def readable(head: ResponseHead) -> bool:
    """Is this answer of a kind that can be read: events, or JSON?"""
    return _kind(head.get(b"content-type") or b"") is not None


def tap_for(head: ResponseHead, mono_ms: Callable[[], float], *, wants_answer: bool = False) -> Tap | None:
    """A tap for what can be read as it passes; None for what is neither events nor JSON.

    A refusal is kept whatever it is, because somebody is to blame for it.
    """
    if head.status >= 400:
        return Tap(mono_ms, stream=False, refusal=True)
    coding = coding_of(head.get(b"content-encoding"))
    kind = _kind(head.get(b"content-type") or b"")
    if kind is None:
        return None
    return Tap(mono_ms, stream=kind == "events", wants_answer=wants_answer, coding=coding)
