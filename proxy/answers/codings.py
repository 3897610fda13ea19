"""Content codings, undone on a copy: gzip, deflate, br and zstd (RFC 9110, section 8.4.1; RFC 7932; RFC 8878).

A decoder is fed pieces in order and gives back what they say so far. What it gives back is bounded: an answer that
unpacks to far more than was sent is no answer, and is given up (``Undecodable``).
"""

import sys
import zlib
from collections.abc import Callable
from typing import Any, Protocol

MAX_PIECE = 2_097_152  # bytes that one piece may unpack to
_MAX_RATIO = 256  # of all that was unpacked to all that was sent, once a piece's worth has been unpacked
_ZSTD_WINDOW_LOG = 23  # 8 MiB: the most that RFC 9659 lets a sender use
_HEADER = 2  # bytes that tell a zlib stream (RFC 1950) from a bare deflate one


class Undecodable(ValueError):
    """Not what it says it is, unknown here, or a bomb."""


class Decoder(Protocol):
    """One answer's coding. ``decode`` raises Undecodable, or whatever the library behind it does."""

    def decode(self, data: bytes) -> bytes: ...


class _Zlib:
    """Both gzip (several members, too) and deflate, with the zlib header that it should have or without."""

    __slots__ = ("_bits", "_start", "_state")

    def __init__(self, bits: int | None) -> None:
        self._bits = bits
        self._start = b""
        self._state = zlib.decompressobj(bits) if bits is not None else None

    def decode(self, data: bytes) -> bytes:
        if self._state is None:
            data = self._start = self._start + data
            if len(data) < _HEADER:
                return b""
            wrapped = data[0] & 0x0F == zlib.DEFLATED and int.from_bytes(data[:2], "big") % 31 == 0
            self._state = zlib.decompressobj(15 if wrapped else -15)
        plain = self._some(data, MAX_PIECE)
        while self._bits is not None and self._state.eof and self._state.unused_data:
            rest = self._state.unused_data
            self._state = zlib.decompressobj(self._bits)
            plain += self._some(rest, MAX_PIECE - len(plain))
        return plain

    def _some(self, data: bytes, room: int) -> bytes:
        assert self._state is not None
        plain = self._state.decompress(data, max(1, room))
        if self._state.unconsumed_tail:
            raise Undecodable("it unpacks to too much")
        return plain


class _Brotli:
    __slots__ = ("_state",)

    def __init__(self) -> None:
        import brotli  # type: ignore[import-untyped]  # noqa: PLC0415 - only who meets one pays for it

        self._state = brotli.Decompressor()

    def decode(self, data: bytes) -> bytes:
        plain: bytes = self._state.process(data, output_buffer_limit=MAX_PIECE)
        if not self._state.can_accept_more_data():
            raise Undecodable("it unpacks to too much")
        return plain


class _Zstd:
    __slots__ = ("_make", "_state")

    def __init__(self) -> None:
        zstd = _zstd()
        options = {zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG}
        self._make: Callable[[], Any] = lambda: zstd.ZstdDecompressor(options=options)
        self._state = self._make()

    def decode(self, data: bytes) -> bytes:
        pieces = []
        room = MAX_PIECE
        while data:
            if self._state.eof:
                self._state = self._make()
            plain = self._state.decompress(data, room)
            pieces.append(plain)
            room -= len(plain)
            if room <= 0 or not (self._state.eof or self._state.needs_input):
                raise Undecodable("it unpacks to too much")
            data = self._state.unused_data if self._state.eof else b""
        return b"".join(pieces)


def _zstd() -> Any:
    """The standard library's since Python 3.14 (PEP 784), else its backport."""
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415
    else:
        from backports import zstd  # noqa: PLC0415
    return zstd


_DECODERS: dict[bytes, Callable[[], Decoder]] = {
    b"gzip": lambda: _Zlib(31),
    b"x-gzip": lambda: _Zlib(31),
    b"deflate": lambda: _Zlib(None),
    b"br": _Brotli,
    b"zstd": _Zstd,
}


def coding_of(value: bytes | None) -> bytes | None:
    """The coding that a ``Content-Encoding`` names, in lower case; None: there is none. Several are one odd name."""
    coding = b"" if value is None else value.strip().lower()
    return None if coding in {b"", b"identity"} else coding


class Unpacking:
    """Undoes one coding, piece by piece, and keeps watch over how much comes out."""

    __slots__ = ("_decoder", "_received", "_unpacked")

    def __init__(self, coding: bytes) -> None:
        make = _DECODERS.get(coding)
        if make is None:
            raise Undecodable("this coding is not known here")
        try:
            self._decoder = make()
        except ImportError:
            raise Undecodable("what undoes this coding is not installed") from None
        self._received = self._unpacked = 0

    def decode(self, data: bytes) -> bytes:
        """What the next piece says. Raises Undecodable; then nothing more can be read."""
        try:
            plain = self._decoder.decode(data)
        except Exception as exc:  # noqa: BLE001 - each library has errors of its own; all mean the same here
            raise Undecodable(str(exc)) from None
        self._received += len(data)
        self._unpacked += len(plain)
        if self._unpacked > max(MAX_PIECE, self._received * _MAX_RATIO):
            raise Undecodable("it unpacks to too much")
        return plain


def beginning(coding: bytes, body: bytes, limit: int) -> bytes | None:
    """The first ``limit`` bytes of what a coded body says, whole or cut short; None where it says nothing."""
    try:
        return Unpacking(coding).decode(body)[:limit] or None
    except Undecodable:
        return None
