"""Which reader an answer gets. How it is read is the business of ``proxy/answers``."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from proxy.answers.body import BodyReader, Refusal
from proxy.answers.coded import CodedTap
from proxy.answers.codings import coding_of
from proxy.answers.events import semantic
from proxy.answers.reading import Tap
from proxy.answers.stream import StreamReader
from proxy.answers.usage import normalised
from proxy.wire.head import ResponseHead

__all__ = ["Tap", "semantic", "tap_for", "tokens"]

FIELDS = frozenset((b"content-type", b"content-encoding"))  # what of a head says how to read its body


def tokens(usage: dict[str, Any] | None) -> dict[str, int]:
    """The counts of a usage object by kind, in any of the spellings providers use; what was not said is absent."""
    counts = normalised(usage)
    return counts.told() if counts is not None else {}


@lru_cache(maxsize=256)
def _kind(content_type: bytes | None) -> str | None:
    """What can be read of a content type: ``events``, ``json``, or nothing."""
    told = content_type.lower() if content_type is not None else b""
    if b"event-stream" in told:
        return "events"
    return "json" if b"json" in told else None


def readable(head: ResponseHead) -> bool:
    """Is this answer of a kind that can be read: events, or JSON?"""
    return _kind(head.get(b"content-type")) is not None


def tap_for(head: ResponseHead, mono_ms: Callable[[], float], *, wants_answer: bool = False) -> Tap | None:
    """A reader for what can be read as it passes; None for what is neither events nor JSON.

    ``wants_answer``: what the model says is gathered, too, where it is a chat completion.
    """
    if head.status >= 400:
        return Refusal()
    kind = _kind(head.get(b"content-type"))
    if kind is None:
        return None
    reader: Tap
    if kind == "json":
        reader = BodyReader(wants_answer=wants_answer)
    else:
        reader = StreamReader(mono_ms, wants_answer=wants_answer)
    encoding = head.get(b"content-encoding")
    if encoding is not None and (coding := coding_of(encoding)) is not None:
        return CodedTap(coding, reader)
    return reader
