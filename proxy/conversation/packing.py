"""A line of talk as bytes for the archive, and back: keyed hashes, numbers and times, nothing that can be read."""

import struct
import sys
from array import array
from typing import Final, NamedTuple

from proxy.conversation.lineage import IDS, MARKS, Lineage
from proxy.conversation.transcript import Transcript

_HEAD: Final = struct.Struct("<QQQQ4QQIIHHHB")
_POINTS = 64  # of a line's points; an edit further back is found by its answers
_LATEST = 4  # marks of the latest answer
_MASK = (1 << 64) - 1
_TOOLS, _STREAM, _OWNED, _WAITING = 1, 2, 4, 8


class Row(NamedTuple):
    """One line as the archive has it; ``said`` is everything that is only compared. Instants are unix ms."""

    row: int
    scope: str
    label: str
    cohort: str | None
    began_at: int
    seen_at: int
    said: bytes


def pack(line: Lineage, *, waiting: bool) -> Row:
    """What is kept of a line over a restart."""
    latest = (*line.latest, 0, 0, 0, 0)[:_LATEST]
    flags = _TOOLS * line.tools | _STREAM * line.stream | _OWNED * line.owned | _WAITING * waiting
    points, marks, ids = line.points[-_POINTS:], line.marks, line.ids
    head = _HEAD.pack(
        line.request,
        line.full,
        line.last & _MASK,
        line.opener,
        *latest,
        line.failed_at,
        line.length,
        line.first,
        len(points),
        len(marks),
        len(ids),
        flags,
    )
    said = head + _bytes(points) + _bytes(marks) + _bytes(ids)
    return Row(line.row, line.scope, line.label, line.cohort, line.began_at, line.seen_at, said)


def unpack(row: Row, waits_for: str) -> Lineage:
    """The line that was packed; ``waits_for`` is the finish reason of one that waits for a tool.

    Raises:
        ValueError: this is no line.
    """
    try:
        request, full, last, opener, *rest = _HEAD.unpack_from(row.said)
    except struct.error:
        raise ValueError("too short") from None
    *latest, failed_at, length, first, points, marks, ids, flags = rest
    size = _HEAD.size + 8 * (points + marks + ids)
    if len(row.said) != size or marks > MARKS or ids > IDS or not 0 < points <= length or not request:
        raise ValueError("of another size")
    values = _values(row.said[_HEAD.size :])
    said = Transcript()
    said.points, said.last, said.opener = values[:points], last, opener
    line = Lineage(row.label, row.scope, row.cohort, row.began_at, said, owned=bool(flags & _OWNED))
    line.marks, line.ids = values[points : points + marks], values[points + marks :]
    line.request, line.full = request, full
    line.latest = tuple(mark for mark in latest if mark)
    line.length, line.first, line.offset = length, first, length - points
    line.failed_at, line.seen_at, line.row = failed_at, row.seen_at, row.row
    line.tools, line.stream = bool(flags & _TOOLS), bool(flags & _STREAM)
    line.finish = waits_for if flags & _WAITING else None
    return line


def _bytes(values: "array[int]") -> bytes:
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values.tobytes()


def _values(data: bytes) -> "array[int]":
    values = array("Q", data)
    if sys.byteorder == "big":
        values.byteswap()
    return values
