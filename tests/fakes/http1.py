"""An HTTP/1.1 reader of the tests' own, after RFC 9112, that keeps the bytes as they came.

It shares nothing with the product, so that a mistake there is not repeated here.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

Fields: TypeAlias = list[tuple[bytes, bytes]]

BODYLESS = {204, 304}


class Malformed(Exception):
    """The peer sent something that is not HTTP/1.1."""


@dataclass
class Head:
    """A start line in its three parts, and the fields in the order and spelling they came in."""

    start: tuple[bytes, bytes, bytes]
    fields: Fields
    raw: bytes

    def all(self, name: bytes) -> list[bytes]:
        """Every value of a field, in order."""
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def one(self, name: bytes) -> bytes | None:
        """The value of a field that must not be repeated."""
        values = self.all(name)
        if len(values) > 1:
            raise Malformed(f"{name!r} came {len(values)} times")
        return values[0] if values else None


def parse_head(raw: bytes) -> Head:
    """Read a head that ends with its empty line."""
    lines = raw.split(b"\r\n")
    if lines[-2:] != [b"", b""]:
        raise Malformed(f"a head without its end: {raw[-40:]!r}")
    parts = lines[0].split(b" ", 2)
    if len(parts) != 3:
        raise Malformed(f"start line {lines[0]!r}")
    fields = []
    for line in lines[1:-2]:
        name, colon, value = line.partition(b":")
        if not colon or not name or name != name.strip():
            raise Malformed(f"field line {line!r}")
        fields.append((name, value.strip(b" \t")))
    return Head((parts[0], parts[1], parts[2]), fields, raw)


@dataclass
class Body:
    """Reads one body from a growing buffer; ``feed`` as often as there is more."""

    framing: str  # none, length, chunked, close
    length: int = 0
    data: bytearray = field(default_factory=bytearray)
    chunks: list[int] = field(default_factory=list)
    extensions: list[bytes] = field(default_factory=list)
    trailers: Fields = field(default_factory=list)
    complete: bool = False
    _need: int = -1  # bytes left of the chunk being read, its CRLF included; -1: a size line comes

    def __post_init__(self) -> None:
        if self.framing == "none" or (self.framing == "length" and self.length == 0):
            self.complete = True

    def feed(self, buffer: bytearray, at: int) -> int:
        """Take what belongs to the body from ``buffer[at:]``; returns the new offset."""
        if self.complete:
            return at
        if self.framing == "length":
            part = buffer[at : at + self.length - len(self.data)]
            self.data += part
            self.complete = len(self.data) == self.length
            return at + len(part)
        if self.framing == "close":
            self.data += buffer[at:]
            return len(buffer)
        return self._feed_chunks(buffer, at)

    def _feed_chunks(self, buffer: bytearray, at: int) -> int:
        while not self.complete:
            if self._need > 2:
                part = buffer[at : at + self._need - 2]
                if not part:
                    return at
                self.data += part
                self._need -= len(part)
                at += len(part)
            elif self._need == 2:
                if len(buffer) < at + 2:
                    return at
                if buffer[at : at + 2] != b"\r\n":
                    raise Malformed(f"chunk ends with {bytes(buffer[at : at + 2])!r}")
                at += 2
                self._need = -1
            else:
                end = buffer.find(b"\r\n", at)
                if end < 0:
                    return at
                size, _, extension = bytes(buffer[at:end]).partition(b";")
                if not size or size.strip(b"0123456789abcdefABCDEF"):
                    raise Malformed(f"chunk size {size!r}")
                if int(size, 16) == 0:
                    return self._feed_trailers(buffer, at, end)
                self.chunks.append(int(size, 16))
                self.extensions.append(extension)
                self._need = int(size, 16) + 2
                at = end + 2
        return at

    def _feed_trailers(self, buffer: bytearray, at: int, size_end: int) -> int:
        end = size_end if buffer[size_end : size_end + 4] == b"\r\n\r\n" else buffer.find(b"\r\n\r\n", size_end + 2)
        if end < 0:
            return at
        if end > size_end:
            self.trailers = parse_head(b"x y z\r\n" + bytes(buffer[size_end + 2 : end]) + b"\r\n\r\n").fields
        self.complete = True
        return end + 4


def _framing(head: Head, otherwise: str) -> Body:
    coding, length = head.one(b"transfer-encoding"), head.one(b"content-length")
    if coding is not None and length is not None:
        raise Malformed("both Content-Length and Transfer-Encoding")
    if coding is not None:
        if coding.lower() != b"chunked":
            raise Malformed(f"transfer coding {coding!r}")
        return Body("chunked")
    if length is not None:
        if not length.isdigit():
            raise Malformed(f"length {length!r}")
        return Body("length", int(length))
    return Body(otherwise)


def request_body(head: Head) -> Body:
    """The body a request's head announces."""
    return _framing(head, "none")


def response_body(head: Head, method: str) -> Body:
    """The body a response's head announces to a request of that method."""
    status = int(head.start[1])
    if method == "HEAD" or status < 200 or status in BODYLESS:
        return Body("none")
    return _framing(head, "close")
