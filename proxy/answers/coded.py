"""A reader behind a content coding: it is given what a copy of the answer unpacks to."""

from collections.abc import Callable

from proxy.answers.codings import Undecodable, Unpacking
from proxy.answers.reading import Tap
from proxy.conversation.answer import Answer


class Coded:
    """Feeds ``reader`` with what the pieces unpack to, until that fails; the answer itself is not touched."""

    __slots__ = ("_reader", "_unpacking", "failed", "size")

    def __init__(self, coding: bytes, reader: Callable[[bytes], None]) -> None:
        self._reader = reader
        self.size = 0
        self.failed = False
        self._unpacking: Unpacking | None = None
        try:
            self._unpacking = Unpacking(coding)
        except Undecodable:
            self.failed = True

    def feed(self, data: bytes) -> None:
        """The next piece, as it was sent. Never raises."""
        self.size += len(data)
        if self._unpacking is None:
            return
        try:
            plain = self._unpacking.decode(data)
        except Undecodable:
            self._unpacking = None
            self.failed = True
            return
        if plain:
            self._reader(plain)


class CodedTap(Tap):
    """A reader's answer, coded. What it says is the reader's, but that nothing is told of an answer that failed."""

    __slots__ = ("_coded", "_reader", "events", "first_semantic_ms", "stream")

    def __init__(self, coding: bytes, reader: Tap) -> None:
        self._coded = Coded(coding, reader.feed)
        self._reader = reader
        self.stream = reader.stream
        self._mirror()

    def feed(self, data: bytes) -> None:
        """The next piece, as it was sent."""
        self._coded.feed(data)
        if not self.begun:
            self._mirror()

    def close(self) -> None:
        """The answer is over."""
        self._reader.close()
        self._mirror()
        if self._coded.failed:
            self.unread = "coding"

    @property
    def answer(self) -> Answer | None:
        """What the model said."""
        return None if self._coded.failed else self._reader.answer

    def _mirror(self) -> None:
        reader = self._reader
        self.begun, self.first_semantic_ms, self.events = reader.begun, reader.first_semantic_ms, reader.events
        self.usage, self.counts = reader.usage, reader.counts
        self.error, self.model, self.unread = reader.error, reader.model, reader.unread
