"""A request's body while it comes: kept within bounds, or handed on piece by piece."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import BadRequest, BodyTooLarge
from proxy.incoming import AT_ONCE_BYTES, Buffers, Incoming


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in zip(places, places[1:], strict=False)]


@given(
    st.binary(max_size=200),
    st.one_of(st.just(b""), st.binary(max_size=20)),
    st.lists(st.integers(0, 300), max_size=6),
    st.booleans(),
    st.booleans(),
)
def test_whatever_its_pieces_a_body_is_the_same_and_what_follows_is_not_its(body, after, cuts, chunked, with_head):
    wire = (
        b"".join(b"%x;x=1\r\n%b\r\n" % (len(p), p) for p in pieces(body, [3]) if p) + b"0\r\nT: 1\r\n\r\n"
        if chunked
        else body
    )
    came = pieces(wire + after, cuts)
    first = came[0] if with_head and came else b""
    incoming = Incoming(Buffers(10_000), None if chunked else len(body), first, chunked=chunked)
    incoming.gather(10_000)
    rest = b""
    for piece in came[1:] if incoming.arrived and first else came:
        rest += piece if incoming.arrived else incoming.feed(piece)
    assert incoming.arrived
    assert incoming.complete
    assert b"".join(incoming.chunks) == body
    assert incoming.size == len(body)
    assert rest == after


def test_no_body_has_arrived_from_the_start():
    incoming = Incoming(Buffers(0), None, chunked=False)
    assert incoming.arrived
    assert incoming.at_once() == []


def test_what_came_with_a_head_that_announces_no_body_is_not_its():
    incoming = Incoming(Buffers(0), None, b"GET / HTTP/1.1\r\n", chunked=False)
    assert incoming.feed(b"GET / HTTP/1.1\r\n") == b"GET / HTTP/1.1\r\n"
    assert incoming.complete
    assert incoming.size == 0


def test_a_length_over_the_limit_is_refused_before_a_byte_came():
    with pytest.raises(BodyTooLarge, match=r"listen\.max_body_bytes"):
        Incoming(Buffers(1_000), 11, chunked=False).gather(10)


def test_chunks_are_refused_when_they_grow_over_the_limit():
    incoming = Incoming(Buffers(1_000), None, chunked=True)
    incoming.gather(10)
    assert incoming.feed(b"a\r\n0123456789\r\n") == b""
    with pytest.raises(BodyTooLarge):
        incoming.feed(b"1\r\nx\r\n")


def test_broken_chunks_are_the_clients_fault():
    incoming = Incoming(Buffers(1_000), None, chunked=True)
    with pytest.raises(BadRequest):
        incoming.feed(b"zz\r\n")


@pytest.mark.parametrize("chunked", [False, True])
def test_what_finds_no_memory_is_not_kept_and_all_of_it_is_given_back(chunked: bool):
    """The first of two bodies fits, the second does not; when the first is dropped, there is room again."""
    buffers = Buffers(10)
    wire = b"8\r\n01234567\r\n0\r\n\r\n" if chunked else b"01234567"
    length = None if chunked else 8
    bodies = [Incoming(buffers, length, chunked=chunked) for _ in range(3)]
    for body in bodies[:2]:
        body.gather(100)
        body.feed(wire)
    assert [body.complete for body in bodies[:2]] == [True, False]
    bodies[0].drop()
    bodies[1].drop()
    assert buffers.used == 0
    bodies[2].gather(100)
    bodies[2].feed(wire)
    assert bodies[2].complete


def test_a_large_body_is_not_written_in_one_go():
    incoming = Incoming(Buffers(1 << 30), AT_ONCE_BYTES + 1, chunked=False)
    incoming.feed(bytes(AT_ONCE_BYTES + 1))
    assert incoming.complete
    assert incoming.at_once() is None
