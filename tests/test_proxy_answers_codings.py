"""Copies of coded answers are undone piece by piece, within bounds."""

import gzip
import random
import sys
import zlib

import brotli
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.answers.coded import Coded
from proxy.answers.codings import MAX_PIECE, Undecodable, Unpacking, beginning, coding_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PLAIN = b"".join(b'data: {"choices":[{"delta":{"content":"word %d"}}]}\n\n' % n for n in range(400))


def bare_deflate(plain: bytes) -> bytes:
    state = zlib.compressobj(wbits=-15)
    return state.compress(plain) + state.flush()


CODERS = {
    "gzip": (b"gzip", gzip.compress),
    "two gzip members": (b"x-gzip", lambda plain: gzip.compress(plain[:5000]) + gzip.compress(plain[5000:])),
    "deflate": (b"deflate", zlib.compress),
    "deflate without its header": (b"deflate", bare_deflate),
    "br": (b"br", lambda plain: brotli.compress(plain, quality=4)),
    "zstd": (b"zstd", zstd.compress),
    "two zstd frames": (b"zstd", lambda plain: zstd.compress(plain[:5000]) + zstd.compress(plain[5000:])),
}
coders = pytest.mark.parametrize(("coding", "encode"), CODERS.values(), ids=list(CODERS))


@coders
@settings(max_examples=30)
@given(cuts=st.lists(st.integers(0, 4000), max_size=12))
def test_any_split_says_the_same(coding, encode, cuts):
    wire = encode(PLAIN)
    said: list[bytes] = []
    coded = Coded(coding, said.append)
    offsets = sorted({min(cut, len(wire)) for cut in cuts} | {0, len(wire)})
    for start, stop in zip(offsets, offsets[1:], strict=False):
        coded.feed(wire[start:stop])
    assert b"".join(said) == PLAIN
    assert not coded.failed
    assert coded.size == len(wire)


@coders
def test_byte_by_byte_says_the_same(coding, encode):
    said: list[bytes] = []
    coded = Coded(coding, said.append)
    for byte in encode(PLAIN):
        coded.feed(bytes([byte]))
    assert b"".join(said) == PLAIN


@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"br", b"zstd"])
@given(pieces=st.lists(st.binary(max_size=100), max_size=8))
def test_noise_is_given_up_without_a_fuss(coding, pieces):
    coded = Coded(coding, lambda plain: None)
    for piece in pieces:
        coded.feed(piece)
    assert coded.size == sum(map(len, pieces))


@coders
def test_what_is_flushed_is_read_before_the_end(coding, encode):
    """A stream's events must not wait for its last byte."""
    if coding == b"br":
        state = brotli.Compressor()
        wire = state.process(PLAIN[:500]) + state.flush()
    elif coding == b"zstd":
        state = zstd.ZstdCompressor()
        wire = state.compress(PLAIN[:500], zstd.ZstdCompressor.FLUSH_BLOCK)
    else:
        state = zlib.compressobj(wbits=-15 if encode is bare_deflate else 31 if b"gzip" in coding else 15)
        wire = state.compress(PLAIN[:500]) + state.flush(zlib.Z_SYNC_FLUSH)
    assert Unpacking(coding).decode(wire) == PLAIN[:500]


@coders
def test_a_bomb_is_given_up(coding, encode):
    """In one piece by its size; in many by how much more comes out than went in."""
    bomb = encode(bytes(16 * MAX_PIECE))
    coded = Coded(coding, lambda plain: None)
    coded.feed(bomb)
    assert coded.failed
    unpacked = 0

    def count(plain: bytes) -> None:
        nonlocal unpacked
        unpacked += len(plain)

    coded = Coded(coding, count)
    for start in range(0, len(bomb), 64):
        coded.feed(bomb[start : start + 64])
    assert unpacked <= 3 * MAX_PIECE


def test_a_window_that_a_server_may_not_use_is_refused():
    """RFC 9659: 8 MiB; a frame may ask for gigabytes."""
    options = {zstd.CompressionParameter.window_log: 27, zstd.CompressionParameter.enable_long_distance_matching: 1}
    state = zstd.ZstdCompressor(options=options)
    wire = state.compress(random.Random(1).randbytes(20_000_000), zstd.ZstdCompressor.FLUSH_FRAME)
    with pytest.raises(Undecodable):
        Unpacking(b"zstd").decode(wire[:100_000])


@pytest.mark.parametrize("coding", [b"compress", b"gzip, br", b"", b"dcb"])
def test_other_codings_are_not_read(coding):
    assert Coded(coding, lambda plain: None).failed
    assert beginning(coding, b"x", 10) is None


def test_no_coding_is_none():
    assert coding_of(None) is None
    assert coding_of(b" Identity ") is None
    assert coding_of(b" GZip") == b"gzip"


@coders
def test_the_beginning_of_a_body_that_was_cut_short(coding, encode):
    wire = encode(PLAIN)
    cut = 0 if coding == b"zstd" else 3  # of a zstd frame only whole blocks are read
    said = beginning(coding, wire[: len(wire) - cut], 1000)
    assert said is not None
    assert PLAIN.startswith(said)
    assert len(said) <= 1000
