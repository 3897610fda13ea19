"""Whole lines out of pieces, for next to nothing per piece: pieces are kept, and looked at once some have gathered.

Lines end in LF, CRLF or CR (the event-stream format of the HTML standard, section 9.2.5).
"""

from abc import abstractmethod
from itertools import cycle

from proxy.answers.reading import Tap

MAX_LINE = 262_144  # bytes; a longer line is not read: it is relayed all the same
_MOST_PIECES = 64
_LARGE = 512  # bytes of a piece that is counted by its size, too
_MOST_LARGE = 32_768  # bytes of such pieces that are held
# Streams that began together would all be looked at in the same moment: each has another number of pieces.
_PIECES = cycle(range(32, 64, 5))


class Lines(Tap):
    """Pieces on their way to lines. At most 64 KiB are held beside the latest piece and the beginning of one line.

    Until it has ``begun``, each line is read when it comes, and its instant is noted.
    """

    __slots__ = ("_due", "_held", "_large", "_pieces", "_skipping")

    def __init__(self) -> None:
        self.begun = False
        self.unread = None
        self._held: list[bytes] = []
        self._due = 0  # more pieces than this are looked at
        self._pieces = next(_PIECES)
        self._large = 0  # bytes that are held in large pieces
        self._skipping = False

    def feed(self, data: bytes) -> None:
        """The next piece. Never raises."""
        held = self._held
        held.append(data)
        if len(held) > self._due or len(data) > _LARGE:
            self._look(data)

    def close(self) -> None:
        """No more comes. A last line without its end is read if it is whole."""
        if not self._held or self._skipping:
            return
        self._read()
        if self._held and self._is_whole(self._held[0]):
            self._held.append(b"\n")
            self._read()

    @abstractmethod
    def _lines(self, batch: bytes) -> None:
        """Read whole lines, with their ends."""

    @abstractmethod
    def _is_whole(self, line: bytes) -> bool:
        """Can this line be read although its end did not come?"""

    def _look(self, newest: bytes) -> None:
        if self._skipping and not self._skip(newest):
            return
        if len(newest) > _LARGE:
            self._large += len(newest)
        if len(self._held) <= self._due and self._large < _MOST_LARGE:
            return
        goes_on = b"\n" not in newest and b"\r" not in newest
        if goes_on and not self.begun and self._large < _MOST_LARGE and len(self._held) < _MOST_PIECES:
            return  # the line that is to be read when it comes
        self._read()

    def _read(self) -> None:
        """Read every line that is whole, and hold on to the beginning of the next."""
        held = self._held
        joined = b"".join(held) if len(held) > 1 else held[0]
        end = max(joined.rfind(b"\n"), joined.rfind(b"\r")) + 1
        if end:
            try:
                self._lines(joined[:end])
            except Exception:  # noqa: BLE001 - whatever an upstream sends must not reach the relay
                self.unread = "json"
        rest = joined[end:]
        self._skipping = len(rest) > MAX_LINE
        if self._skipping:
            self.unread = "line"
            rest = b""
        self._large = 0
        self._held = [rest] if rest else []
        self._due = self._pieces if self.begun and not self._skipping else 0

    def _skip(self, newest: bytes) -> bool:
        """In a line that is too long: True when it has ended, with what follows it held."""
        ends = [place for place in (newest.find(b"\n"), newest.find(b"\r")) if place >= 0]
        rest = newest[min(ends) :] if ends else b""
        self._held = [rest] if rest else []
        self._skipping = not ends
        return bool(ends)
