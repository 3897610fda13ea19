"""Where bodies end: counters against an independent model, over every split."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.framing import Chunked, Empty, FramingError, Sized, ToClose, encode_chunk

pieces = st.lists(st.binary(min_size=1, max_size=300), max_size=8)


def feed_all(framing, wire: bytes, cuts: list[int]) -> tuple[int, bytes]:
    """Feed ``wire`` cut at ``cuts``; the absolute end offset (-1: none) and the entity."""
    entity: list[bytes] = []
    offsets = sorted({min(cut, len(wire)) for cut in cuts} | {0, len(wire)})
    for start, stop in zip(offsets, offsets[1:], strict=False):
        end = framing.feed(wire[start:stop], entity.append)
        if end >= 0:
            return start + end, b"".join(entity)
    return -1, b"".join(entity)


@given(pieces, st.lists(st.integers(0, 3000), max_size=12), st.binary(max_size=20), st.booleans(), st.booleans())
def test_chunked_finds_its_end_at_any_split(chunks, cuts, surplus, extension, trailer):
    wire = b"".join(b"%X%b\r\n%b\r\n" % (len(chunk), b";a=b" if extension else b"", chunk) for chunk in chunks)
    wire += b"0\r\n" + (b"X-Sum: 1\r\n" if trailer else b"") + b"\r\n"
    end, entity = feed_all(Chunked(), wire + surplus, cuts)
    assert end == len(wire)
    assert entity == b"".join(chunks)


@given(pieces, st.lists(st.integers(0, 3000), max_size=12))
def test_chunked_without_its_last_chunk_never_ends(chunks, cuts):
    framing = Chunked()
    end, entity = feed_all(framing, b"".join(map(encode_chunk, chunks)), cuts)
    assert end == -1
    assert not framing.done
    assert entity == b"".join(chunks)


@given(st.binary(max_size=400), st.binary(max_size=50), st.lists(st.integers(0, 500), max_size=6))
def test_sized_ends_after_its_length(body, surplus, cuts):
    if not body:
        assert Sized(0).done
        return
    end, entity = feed_all(Sized(len(body)), body + surplus, cuts)
    assert end == len(body)
    assert entity == body


@given(st.binary(max_size=400), st.lists(st.integers(0, 500), max_size=6))
def test_chunked_never_fails_otherwise_than_by_its_own_error(noise, cuts):
    try:
        feed_all(Chunked(), noise, cuts)
    except FramingError:
        pass


@pytest.mark.parametrize(
    "wire",
    [
        b"g\r\n",
        b"-1\r\n",
        b"0x5\r\nhello\r\n",
        b"1_0\r\n",
        b" 5\r\nhello\r\n",
        b"5\nhello\r\n",
        b"5\r\nhelloXX",
        b"5\r\nhello\rX",
        b"FFFFFFFFFFFFFFFF\r\n",
        b"\r\n",
        b"5" * 20000,
    ],
)
def test_chunked_refuses_a_broken_size(wire):
    with pytest.raises(FramingError):
        feed_all(Chunked(), wire, [])


def test_endless_trailers_are_refused():
    framing = Chunked()
    framing.feed(b"0\r\n", None)
    with pytest.raises(FramingError):
        feed_all(framing, b"X-Trailer: something\r\n" * 10_000, [])


def test_to_close_never_ends_by_itself():
    framing = ToClose()
    assert framing.feed(b"anything", None) == -1
    assert not framing.delimited


def test_empty_is_over_before_it_begins():
    assert Empty().done
    assert Empty().feed(b"surplus", None) == 0
