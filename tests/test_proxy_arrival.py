"""Heads as clients send them: what is taken, what is refused, and how soon."""

import pytest

from proxy.arrival import MAX_FIELDS, check_part, parse_request
from proxy.errors import BadRequest, HeadTooLarge

HEAD = b"POST /v1/chat/completions?a=%2F HTTP/1.1\r\nHost: localhost\r\nX-A: 1\r\nx-a:  2 \r\nContent-Length: 5\r\n\r\n"


def test_a_head_keeps_its_target_and_fields_as_sent():
    head = parse_request(HEAD)
    assert (head.method, head.target) == (b"POST", b"/v1/chat/completions?a=%2F")
    assert head.fields == [(b"Host", b"localhost"), (b"X-A", b"1"), (b"x-a", b"2"), (b"Content-Length", b"5")]
    assert (head.length, head.chunked, head.keep_alive, head.expects, head.modern) == (5, False, True, False, True)


@pytest.mark.parametrize(
    ("line", "fields", "keeps"),
    [
        (b"GET / HTTP/1.1", b"", True),
        (b"GET / HTTP/1.1", b"Connection: close\r\n", False),
        (b"GET / HTTP/1.1", b"Connection: Keep-Alive, Close\r\n", False),
        (b"GET / HTTP/1.0", b"", False),
        (b"GET / HTTP/1.0", b"Connection: keep-alive\r\n", False),
    ],
)
def test_whether_a_connection_stays_is_said_by_version_and_field(line: bytes, fields: bytes, keeps: bool):
    assert parse_request(line + b"\r\nHost: x\r\n" + fields + b"\r\n").keep_alive is keeps


def test_an_expectation_counts_in_http_1_1_alone():
    head = b"POST / HTTP/1.%d\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n"
    assert parse_request(head % 1).expects
    assert not parse_request(head % 0).expects


@pytest.mark.parametrize(
    "fields",
    [
        b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n",
        b"Upgrade: websocket\r\nConnection: Upgrade\r\n",
    ],
)
def test_an_offer_to_switch_protocols_is_no_error_of_the_head(fields: bytes):
    assert parse_request(b"GET / HTTP/1.1\r\nHost: x\r\n" + fields + b"\r\n").fields[0] == (b"Host", b"x")


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", id="two-hosts"),
        pytest.param(b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", id="two-lengths"),
        pytest.param(
            b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", id="length-and-chunks"
        ),
        pytest.param(b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", id="no-chunks"),
        pytest.param(b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", id="negative"),
        pytest.param(b"POST / HTTP/1.1\r\nContent-Length : 1\r\n\r\n", id="space-before-the-colon"),
        pytest.param(b"GET / HTTP/1.1\r\nX: a\r\n b\r\n\r\n", id="folded"),
        pytest.param(b"GET / HTTP/1.1\nHost: x\r\n\r\n", id="bare-line-feed"),
        pytest.param(b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", id="other-version"),
        pytest.param(b"GET / HTTP/1.1\r\nX: a\0b\r\n\r\n", id="zero"),
        pytest.param(b"\x16\x03\x01\x02\x00\r\n\r\n", id="tls"),
    ],
)
def test_what_is_no_http_1_1_is_refused(head: bytes):
    with pytest.raises(BadRequest):
        parse_request(head)


def test_a_head_over_the_limits_is_too_large():
    many = b"".join(b"X-%d: 1\r\n" % n for n in range(MAX_FIELDS + 1))
    for fields in (many, b"X: " + b"v" * 70_001 + b"\r\n"):
        with pytest.raises(HeadTooLarge):
            parse_request(b"GET / HTTP/1.1\r\nHost: x\r\n" + fields + b"\r\n")


@pytest.mark.parametrize("part", [b"", b"P", b"POST /v1", b"POST / HTTP/1.1\r\nHo", HEAD[:-2]])
def test_a_part_of_a_good_head_is_waited_on(part: bytes):
    check_part(part)


@pytest.mark.parametrize(
    ("part", "error"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", BadRequest),
        (b"GET / HTTP/1.1\n\n", BadRequest),
        (b"GET /" + b"a" * 70_001, HeadTooLarge),
        (b"GET / HTTP/1.1\r\n" + b"X: 1\r\n" * (MAX_FIELDS + 2), HeadTooLarge),
    ],
)
def test_a_part_that_cannot_become_one_is_refused_at_once(part: bytes, error: type[Exception]):
    with pytest.raises(error):
        check_part(part)
