"""A reader behind a content coding: it is given what a copy of the answer unpacks to."""

from collections.abc import Callable

from proxy.answers.codings import Undecodable, Unpacking


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
