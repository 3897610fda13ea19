"""Where a message body ends (RFC 9112, section 6): counters that read framing and never change a byte.

``feed`` is shown the bytes as they arrive and returns the offset at which the body ended, or -1 while it goes on.
``sink``, where given, is handed the entity's bytes without chunk framing.
"""

import re
from collections.abc import Callable
from typing import Protocol

Sink = Callable[[bytes], None]

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?")
_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")
_MAX_SIZE_LINE = 16_384
_MAX_TRAILERS = 65_536


class FramingError(ValueError):
    """The sender broke its own framing."""


class Framing(Protocol):
    """One body's end finder."""

    delimited: bool  # False: the end of the connection is the end of the body
    done: bool

    @property
    def between(self) -> bool:
        """Between two chunks: is the next byte the first of a size line?"""
        ...

    def feed(self, data: bytes, sink: Sink | None) -> int:
        """See the module; raises FramingError."""
        ...


class Empty:
    """No body at all: HEAD, 1xx, 204, 304."""

    __slots__ = ()
    delimited = True
    done = True
    between = False

    def feed(self, data: bytes, sink: Sink | None) -> int:  # noqa: ARG002
        return 0


class Sized:
    """Content-Length."""

    __slots__ = ("done", "left")
    delimited = True
    between = False

    def __init__(self, length: int) -> None:
        self.left = length
        self.done = length == 0

    def feed(self, data: bytes, sink: Sink | None) -> int:
        size = len(data)
        if size < self.left:
            self.left -= size
            if sink is not None:
                sink(data)
            return -1
        end = self.left
        self.left = 0
        self.done = True
        if sink is not None and end:
            sink(data if end == size else data[:end])
        return end


class ToClose:
    """Neither length nor chunks: the body lasts until the connection ends."""

    __slots__ = ("done",)
    delimited = False
    between = False

    def __init__(self) -> None:
        self.done = False

    def feed(self, data: bytes, sink: Sink | None) -> int:
        if sink is not None:
            sink(data)
        return -1


class Chunked:
    """Chunked transfer coding, trailers included."""

    __slots__ = ("_left", "_line", "_trailers", "done")
    delimited = True

    def __init__(self) -> None:
        self._left = 0  # bytes of the current chunk still to come; 0: at a line
        self._line = b""  # an incomplete line, or the CRLF after a chunk's data
        self._trailers = -1  # bytes of trailers seen; -1: the last chunk has not come
        self.done = False

    @property
    def between(self) -> bool:
        return not self._left and not self._line and self._trailers < 0

    def feed(self, data: bytes, sink: Sink | None) -> int:
        pos = 0
        size = len(data)
        if self.between:
            whole = _SIZE_LINE.match(data)
            # Nearly always a piece is one chunk: its size line, its data, its end.
            if whole is not None and data.endswith(b"\r\n") and size - whole.end() - 2 == int(whole[1], 16) > 0:
                if sink is not None:
                    sink(data[whole.end() : -2])
                return -1
        while pos < size:
            left = self._left
            if left > 0:
                if size - pos < left:
                    self._left = left - (size - pos)
                    if sink is not None:
                        sink(data[pos:] if pos else data)
                    return -1
                if sink is not None:
                    sink(data[pos : pos + left])
                pos += left
                self._left = -1
            elif left < 0:
                pos = self._after_chunk(data, pos)
            else:
                pos = self._at_line(data, pos)
                if self.done:
                    return pos
        return -1

    def _after_chunk(self, data: bytes, pos: int) -> int:
        """The CRLF that closes a chunk's data, possibly split."""
        if not self._line and data.startswith(b"\r\n", pos):
            self._left = 0
            return pos + 2
        pair = self._line + data[pos : pos + 2 - len(self._line)]
        if not b"\r\n".startswith(pair):
            raise FramingError("a chunk is longer than its size says")
        pos += len(pair) - len(self._line)
        if len(pair) == 2:
            self._line = b""
            self._left = 0
        else:
            self._line = pair
        return pos

    def _at_line(self, data: bytes, pos: int) -> int:
        """A size line, or a line of the trailers."""
        end = data.find(b"\n", pos)
        if end < 0:
            self._line += data[pos:]
            if len(self._line) > _MAX_SIZE_LINE:
                raise FramingError("a chunk's size line does not end")
            return len(data)
        line = self._line + data[pos : end + 1] if self._line else data[pos : end + 1]
        self._line = b""
        if not line.endswith(b"\r\n"):
            raise FramingError("a line of the chunk framing ends in a bare LF")
        if self._trailers >= 0:
            self._trailers += len(line)
            if self._trailers > _MAX_TRAILERS:
                raise FramingError("the trailers are too large")
            self.done = line == b"\r\n"
            return end + 1
        found = _SIZE.fullmatch(line, 0, len(line) - 2)
        if found is None:
            raise FramingError("a chunk's size is not a hexadecimal number")
        self._left = int(found[1], 16)
        if self._left == 0:
            self._trailers = 0
        return end + 1


def encode_chunk(data: bytes) -> bytes:
    """One chunk; never call it with nothing, which would end the body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"


def _size_line(whole: int) -> bytes:
    """The size line of the one chunk that takes ``whole`` bytes, framing included."""
    for digits in range(1, 4):
        line = b"%x\r\n" % max(0, whole - digits - 4)
        if len(line) == digits + 2 and whole > digits + 4:
            return line
    return b" " * (whole + 1)  # there is none: longer than any piece it is looked for in


SMALL = 1024
# By the size of a piece: how it begins if it is nothing but one whole chunk, written as nearly everybody does, in lower
# case and without extensions; and where the chunk's data begins then.
SIZE_LINES = tuple(_size_line(whole) for whole in range(SMALL))
DATA_AT = tuple(map(len, SIZE_LINES))
