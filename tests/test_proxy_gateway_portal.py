"""A web page in the gateway's place, told from the gateway's own answers."""

import pytest

from proxy.gateway.portal import is_page, suspected
from proxy.wire.head import ResponseHead, parse_response

HOST = b"opencode.ai"
PAGE = b"<!DOCTYPE html><title>Welcome to the hotel</title>"
AWAY = b"http://portal.hotel.example/login?to=http%3A%2F%2Fopencode.ai"


def head(status: int, kind: bytes | None = b"text/html; charset=utf-8", location: bytes | None = None) -> ResponseHead:
    kinds = [b"Content-Type: " + kind] if kind is not None else []
    lines = [*kinds, *([b"Location: " + location] if location is not None else [])]
    return parse_response(b"\r\n".join((b"HTTP/1.1 %d " % status, *lines, b"", b"")), b"POST")


@pytest.mark.parametrize(
    "answer",
    [
        head(511),
        head(511, b"application/json"),
        head(511, None),
        head(200),
        head(203, b"TEXT/HTML"),
        head(200, b"application/xhtml+xml"),
        head(302, location=AWAY),
        head(307, location=b"HTTPS://Elsewhere.example"),
        head(301, location=b"http://opencode.ai:8080/"),
    ],
)
def test_a_page_of_somebody_elses_is_suspected(answer: ResponseHead):
    assert suspected(answer.status, answer.fields, HOST)


@pytest.mark.parametrize(
    "answer",
    [
        head(200, b"application/json"),
        head(200, b"text/event-stream"),
        head(200, None),
        head(403),  # the network in front of the gateway
        head(404),
        head(502),
        head(524),
        head(302, None, AWAY),
        head(302, b"application/json", AWAY),
        head(302),
        head(302, location=b"/zen/go/v1/"),
        head(307, location=b"https://OPENCODE.ai/new/place"),
        head(302, location=b"mailto:someone"),
    ],
)
def test_what_may_be_the_gateways_is_left_alone(answer: ResponseHead):
    assert not suspected(answer.status, answer.fields, HOST)


@pytest.mark.parametrize("body", [PAGE, b"\r\n\t <html>", b"\xef\xbb\xbf<!-- x --><html>", b"<"])
def test_a_page_begins_with_a_tag(body: bytes):
    assert is_page(200, body)


@pytest.mark.parametrize("body", [b"", b'{"choices":[]}', b"data: {}\n\n", b"ok", b"\x1f\x8b<"])
def test_an_answer_with_the_wrong_type_is_no_page(body: bytes):
    assert not is_page(200, body)
    assert is_page(302, body)
    assert is_page(511, body)
