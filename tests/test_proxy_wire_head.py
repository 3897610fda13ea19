"""Heads: what crosses, what stays on its hop, what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import BadResponse
from proxy.wire.framing import Chunked, Sized, ToClose
from proxy.wire.head import Noting, parse_response, request_head, response_head


def test_a_request_head_keeps_the_end_to_end_fields_as_sent():
    head = request_head(
        b"POST",
        b"/v1/x?a=%2F",
        b"up.example:8443",
        [(b"hOsT", b"localhost:1"), (b"X-A", b"1"), (b"x-a", b"2"), (b"Content-Length", b"3")],
        chunked=False,
    )
    assert head == (
        b"POST /v1/x?a=%2F HTTP/1.1\r\nhOsT: up.example:8443\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 3\r\n\r\n"
    )


def test_hop_by_hop_fields_and_those_named_by_connection_stay_behind():
    head = request_head(
        b"POST",
        b"/",
        b"up",
        [
            (b"Host", b"x"),
            (b"Connection", b"close, X-Hop, content-length, authorization"),
            (b"X-Hop", b"1"),
            (b"TE", b"trailers"),
            (b"Proxy-Authorization", b"Basic z"),
            (b"Proxy-Connection", b"keep-alive"),
            (b"Upgrade", b"h2c"),
            (b"HTTP2-Settings", b"AAA"),
            (b"Expect", b"100-continue"),
            (b"Authorization", b"Bearer k"),
            (b"Content-Length", b"0"),
            (b"X-End", b"keep"),
        ],
        chunked=False,
    )
    assert head == b"POST / HTTP/1.1\r\nHost: up\r\nAuthorization: Bearer k\r\nContent-Length: 0\r\nX-End: keep\r\n\r\n"


def test_a_chunked_request_has_exactly_one_framing():
    head = request_head(
        b"POST", b"/", b"up", [(b"Content-Length", b"5"), (b"Transfer-Encoding", b"chunked")], chunked=True
    )
    assert head == b"POST / HTTP/1.1\r\nHost: up\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("raw", "method", "framing"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", b"GET", Sized),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"GET", Chunked),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"GET", ToClose),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n", b"HEAD", None),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b"GET", None),
        (b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", b"GET", None),
    ],
)
def test_framing_follows_status_method_and_fields(raw, method, framing):
    head = parse_response(raw, method)
    if framing is None:
        assert (head.length, head.delimited) == (0, True)
        return
    assert isinstance(head.framing(), framing)
    assert head.delimited is head.framing().delimited
    assert head.length == (5 if framing is Sized else None)


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\r\n folded\r\n\r\n",
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    ],
)
def test_what_cannot_be_relayed_safely_is_refused(raw):
    with pytest.raises(BadResponse):
        parse_response(raw, b"GET")


def test_a_response_head_is_the_upstreams_own():
    raw = (
        b"HTTP/1.1 529 Overloaded Now\r\nServer: a\r\nserver: b\r\nSet-Cookie: 1\r\nSet-Cookie: 2\r\nETag: x\r\n"
        b"x-CaSe: y\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nContent-Length: 0\r\n\r\n"
    )
    head = parse_response(raw, b"POST")
    assert response_head(head, b"x-ocpool-route: spare\r\n", close=True, dechunk=False) == (
        b"HTTP/1.1 529 Overloaded Now\r\nServer: a\r\nserver: b\r\nSet-Cookie: 1\r\nSet-Cookie: 2\r\nETag: x\r\n"
        b"x-CaSe: y\r\nContent-Length: 0\r\nx-ocpool-route: spare\r\nConnection: close\r\n\r\n"
    )


def test_an_http_1_0_client_is_told_of_no_chunks():
    head = parse_response(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n", b"GET")
    assert response_head(head, b"", close=True, dechunk=True) == b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"


def test_a_field_that_came_twice_counts_once_or_is_one_list():
    raw = (
        b"HTTP/1.1 200 OK\r\nServer-Timing: a;dur=1\r\nX-Log:  first \t\r\nserver-timing: b;dur=2\r\nx-log: second\r\n"
        b"X-Empty: \r\nX-Logs: other\r\nContent-Length: 0\r\n\r\n"
    )
    head = parse_response(raw, b"POST", Noting(frozenset((b"server-timing", b"x-log", b"x-empty", b"x-absent"))))
    assert head.notable == {
        b"server-timing": b"a;dur=1, b;dur=2",
        b"x-log": b"first",
        b"x-empty": b"",
        b"content-length": b"0",
    }
    assert head.get(b"x-log") == b"first"
    assert head.get(b"x-absent") is None


names = st.sampled_from(
    (b"Content-Type", b"TE", b"te", b"X-Te", b"Connection", b"KEEP-ALIVE", b"Set-Cookie", b"x-hop", b"Trailer", b"tEa")
)
values = st.sampled_from((b"", b"x-hop", b"close", b"keep-alive", b"a: b", b" c ", b"TE", b"\xff"))


@given(st.lists(st.tuples(names, st.sampled_from((b":", b": ", b":\t")), values), max_size=6), st.booleans())
def test_what_goes_on_as_it_came_holds_no_field_of_its_hop(lines, dechunk):
    """Looking for the noted fields alone finds the same as taking every line apart."""
    raw = b"HTTP/1.1 200 Y\r\n" + b"".join(b"".join(line) + b"\r\n" for line in lines) + b"Content-Length: 0\r\n\r\n"
    asked = frozenset((b"content-type", b"set-cookie"))
    head = parse_response(raw, b"POST", Noting(asked))
    fields = [(name, value.strip(b" \t")) for name, _, value in lines]
    for name in asked:
        assert head.get(name) == next((value for key, value in fields if key.lower() == name), None)
    tokens = {token.strip() for name, value in fields if name.lower() == b"connection" for token in value.split(b",")}
    stays = {b"te", b"connection", b"keep-alive"} | ({b"x-hop"} & tokens) | ({b"trailer"} if dechunk else set())
    crossing = [line for line in lines if line[0].lower() not in stays]
    assert response_head(head, b"X: 1\r\n", close=False, dechunk=dechunk) == (
        b"HTTP/1.1 200 Y\r\n"
        + b"".join(b"".join(line) + b"\r\n" for line in crossing)
        + b"Content-Length: 0\r\nX: 1\r\n\r\n"
    )
    assert head.keep_alive is (b"close" not in tokens)


@pytest.mark.parametrize("start", [b"HTTP/1.0 200 OK", b"HTTP/2.0 200 OK"])
def test_another_version_is_written_as_ours(start):
    head = parse_response(start + b"\r\nContent-Length: 0\r\n\r\n", b"POST")
    assert not head.keep_alive
    assert response_head(head, b"", close=False, dechunk=False) == b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def test_the_chunks_are_announced_to_a_client_that_gets_them():
    raw = b"HTTP/1.1 200 OK\r\ntransfer-Encoding: chunked\r\nConnection: keep-alive\r\nTrailer: X-Sum\r\n\r\n"
    assert response_head(parse_response(raw, b"POST"), b"", close=False, dechunk=False) == (
        b"HTTP/1.1 200 OK\r\ntransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
    )
    raw = b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\nETag: x\r\n\r\n"
    assert response_head(parse_response(raw, b"GET"), b"", close=False, dechunk=False) == (
        b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"
    )
