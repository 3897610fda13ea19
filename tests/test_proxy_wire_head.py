"""Heads: what crosses, what stays on its hop, what is refused."""

import pytest

from proxy.errors import BadResponse
from proxy.wire.framing import Chunked, Empty, Sized, ToClose
from proxy.wire.head import parse_response, request_head, response_head


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
        (b"HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n", b"HEAD", Empty),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b"GET", Empty),
        (b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", b"GET", Empty),
    ],
)
def test_framing_follows_status_method_and_fields(raw, method, framing):
    assert isinstance(parse_response(raw, method).framing, framing)


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
