"""Reads a stream of server-sent events from copies of its pieces.

Until the first event that carries output, each event is parsed when it comes. After that many are read together: where
they are all pieces of text (least of all where they are alike but for it), no event is parsed by itself; where
nobody wants the answer only events are parsed that may hold token counts or an error.

What is read does not depend on how the bytes were cut. Nothing here raises.
"""

from collections.abc import Callable
from typing import Any

import orjson

from proxy.answers import quick
from proxy.answers.alike import Alike, alike
from proxy.answers.chat import ChatAnswer
from proxy.answers.events import semantic
from proxy.answers.lines import MAX_LINE, Lines
from proxy.answers.usage import normalised
from proxy.conversation.answer import Answer

OPENING_EVENTS = 64  # events parsed in search of one with output, then the next counts as such
DONE = b"[DONE]"  # the end mark of the streams that have one
_NEXT = b"\n\ndata:"


class StreamReader(Lines):
    """One stream."""

    __slots__ = (
        "_alike", "_chat", "_mono_ms", "events", "first_semantic_ms", "opening_events",
    )  # fmt: skip
    stream = True

    def __init__(self, mono_ms: Callable[[], float], *, wants_answer: bool = False) -> None:
        super().__init__()
        self._mono_ms = mono_ms
        self._chat = ChatAnswer() if wants_answer else None
        self._alike: Alike | None = None
        self.events = self.opening_events = 0  # of all, those that came before any output
        self.first_semantic_ms = self.usage = self.counts = self.error = self.model = None

    def feed_all(self, pieces: list[bytes]) -> None:
        """Pieces that came one after the other, most often an event each: read at once. Never raises."""
        like = self._alike
        if like is not None and not self._held and not self._skipping and self._are_alike(like, pieces):
            self.events += len(pieces)
            return
        self._due = 0
        self.feed(b"".join(pieces))
        self._alike = alike(pieces[-1]) if self.begun and not self._held else None

    def _are_alike(self, like: Alike, pieces: list[bytes]) -> bool:
        """Take events that differ in a text only; False where they are anything else."""
        if self._chat is None:
            return like.fit(pieces)
        texts = like.texts(pieces)
        if texts is None:
            return False
        like.tell(self._chat, texts)
        return True

    def close(self) -> None:
        """The stream is over."""
        super().close()
        self.counts = normalised(self.usage)

    @property
    def answer(self) -> Answer | None:
        """What the model said; without its text where some of it could not be read."""
        if self._chat is None or not self._chat.begun:
            return None
        answer = self._chat.answer()
        return answer if self.unread is None else answer._replace(text=None)

    def _is_whole(self, line: bytes) -> bool:
        return line.startswith(b"data:") and _object(line[5:]) is not None

    def _lines(self, batch: bytes) -> None:
        if not self.begun:
            batch = batch[self._opening(batch) :]
        lines = batch
        if b"\r" in lines:
            lines = lines.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if len(lines) > MAX_LINE:
            lines = self._without_long(lines)
        lines = lines.strip(b"\n")
        count = (b"\n" + lines).count(b"\ndata:")
        if count == 0:
            return
        self.events += count
        plain = lines.startswith(b"data:") and lines.count(b"\n") == 2 * lines.count(_NEXT) == 2 * (count - 1)
        if self._chat is not None:
            self._all(self._chat, lines, count, plain=plain)
        elif quick.may_tell(lines, count):
            for payload in _payloads(lines, plain=plain):
                if quick.may_tell(payload, 1) and (event := self._parsed(payload)) is not None:
                    self._take(event, payload)

    def _opening(self, batch: bytes) -> int:
        """Parse event by event until one carries output; returns the bytes up to its end."""
        place = 0
        while place < len(batch):
            end = min(found for found in (batch.find(b"\n", place), batch.find(b"\r", place)) if found >= 0)
            line, place = batch[place:end], end + 1
            if len(line) > MAX_LINE:
                self.unread = "line"
            elif line.startswith(b"data:") and self._opens(line[5:]):
                self.begun = True
                self.first_semantic_ms = self._mono_ms()
                return place
        return place

    def _opens(self, payload: bytes) -> bool:
        """Read one of the first events; True when output begins with it."""
        self.events += 1
        event = self._parsed(payload)
        if event is not None:
            self._take(event, payload)
            if self._chat is not None and not self._chat.add((event,)):
                self.unread = "json"
            if semantic(event):
                return True
        self.opening_events += 1
        return self.opening_events >= OPENING_EVENTS

    def _without_long(self, lines: bytes) -> bytes:
        """Leave out what is longer than a line may be."""
        every = lines.split(b"\n")
        good = [line for line in every if len(line) <= MAX_LINE]
        if len(good) < len(every):
            self.unread = "line"
        return b"\n".join(good)

    def _all(self, chat: ChatAnswer, lines: bytes, count: int, *, plain: bool) -> None:
        """Take what events say: together where they are all text, else parsed at once, or, where that fails, singly."""
        tells = quick.may_tell(lines, count)
        if plain and not tells and (texts := quick.texts(lines, count)) is not None:
            chat.add_texts(texts)
            return
        payloads = _payloads(lines, plain=plain)
        if payloads[-1].strip() == DONE:
            payloads.pop()
        try:
            events = orjson.loads(b"[%b]" % b",".join(payloads))
        except orjson.JSONDecodeError:
            events = []
        if len(events) != len(payloads):
            events = [self._parsed(payload) for payload in payloads]
        if tells:
            for event, payload in zip(events, payloads, strict=True):
                if isinstance(event, dict) and quick.may_tell(payload, 1):
                    self._take(event, payload)
        if not chat.add(event for event in events if event is not None):
            self.unread = "json"
        chat.compact()

    def _parsed(self, payload: bytes) -> dict[str, Any] | None:
        """One event; None for what is none, which counts as unread unless it is the end mark."""
        event = _object(payload)
        if event is None and payload.strip() != DONE:
            self.unread = "json"
        return event


def _payloads(lines: bytes, *, plain: bool) -> list[bytes]:
    """The data of each event. ``plain``: there is nothing but data lines, each with a blank one behind it."""
    if plain:
        return lines[5:].split(_NEXT)
    return [line[5:] for line in lines.split(b"\n") if line.startswith(b"data:")]


def _object(payload: bytes) -> dict[str, Any] | None:
    try:
        event = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return None
    return event if isinstance(event, dict) else None
