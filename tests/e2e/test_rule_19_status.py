"""Rule 19: the status is the upstream's; nothing before it, nothing followed."""

import gzip
import time

import pytest

from tests.fakes.client import request
from tests.fakes.relay import CROSSED, Relay
from tests.fakes.upstream import PLAIN, ROUTED, UNROUTED, Upstream, sized

PATHS = [ROUTED, UNROUTED, PLAIN]
JSON_ERROR = b'{"type":"error","error":{"type":"AuthError","message":"Invalid API key."}}'

ANSWERS = [
    pytest.param(b"200 OK", JSON_ERROR, b"application/json", b"", id="200-with-an-error-inside"),
    pytest.param(b"200 OK", b"", b"application/json", b"", id="200-empty"),
    pytest.param(b"200 Alles gut", b"x", b"", b"", id="200-other-words"),
    pytest.param(b"201 Created", b"x", b"", b"", id="201"),
    pytest.param(b"299 ", b"x", b"", b"", id="299-no-words"),
    pytest.param(b"400 Bad Request", gzip.compress(JSON_ERROR), b"application/json", b"gzip", id="400-gzip"),
    pytest.param(b"401 Unauthorized", JSON_ERROR, b"application/json", b"", id="401"),
    pytest.param(b"402 Payment Required", JSON_ERROR, b"application/json", b"", id="402"),
    pytest.param(b"403 Forbidden", b"<html>error code: 1010</html>", b"text/html", b"", id="403-html"),
    pytest.param(b"404 Not Found", b"<!doctype html>", b"text/html; charset=utf-8", b"", id="404-html"),
    pytest.param(b"418 I'm a teapot", b"x", b"", b"", id="418"),
    pytest.param(b"422 Unprocessable", JSON_ERROR, b"application/json", b"", id="422"),
    pytest.param(b"429 Too Many Requests", JSON_ERROR, b"application/json", b"", id="429"),
    pytest.param(b"451 caf\xe9", b"x", b"", b"", id="451-latin"),
    pytest.param(b"500 Internal", b"plain trouble", b"text/plain", b"", id="500-text"),
    pytest.param(b"503 Unavailable", JSON_ERROR, b"application/json", b"", id="503"),
    pytest.param(b"524 A Timeout Occurred", b"<html>" + b"x" * 200_000, b"text/html", b"", id="524-large"),
    pytest.param(b"529 Overloaded Now", JSON_ERROR * 2000, b"application/json", b"", id="529-large"),
    pytest.param(b"599 Far Out", b"x", b"", b"", id="599"),
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("status", "body", "kind", "coding"), ANSWERS)
async def test_status_reason_and_body_are_upstreams(
    relay: Relay, status: bytes, body: bytes, kind: bytes, coding: bytes, path: bytes
):
    fields = [b"Content-Type: " + kind] * bool(kind) + [b"Content-Encoding: " + coding] * bool(coding)
    reply = await relay.ask(relay.case(sized(body, status, *fields)).on(path))
    assert b"%d %b" % (reply.status, reply.reason) == status
    assert reply.data == body
    assert reply.all(b"content-type") == ([kind] if kind else [])


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("status", [b"301 Moved", b"302 Found", b"303 See Other", b"307 Temporary", b"308 Permanent"])
async def test_a_redirect_is_passed_on_and_not_followed(relay: Relay, status: bytes, path: bytes):
    elsewhere = await Upstream().start()
    try:
        location = f"{elsewhere.url}/stolen".encode()
        case = relay.case(sized(b"", status, b"Location: " + location))
        reply = await relay.ask(case.on(path), fields=[(b"Authorization", b"Bearer sk")])
        assert (reply.status, reply.all(b"location")) == (int(status[:3]), [location])
        assert elsewhere.opened == 0
        assert len(case.requests) == 1
    finally:
        await elsewhere.stop()


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
@pytest.mark.parametrize("path", PATHS)
async def test_not_one_byte_comes_before_upstreams_status(relay: Relay, path: bytes):
    case = relay.case(1.5, sized(b"{}", b"401 Unauthorized", b'WWW-Authenticate: Bearer realm="x"'))
    async with await relay.connect() as client:
        await client.send(request(case.on(path)))
        asked = time.perf_counter()
        reply = await client.reply()
        assert client.wire.arrivals[0][1] - asked > 1.4
    assert (reply.status, reply.all(b"www-authenticate")) == (401, [b'Bearer realm="x"'])


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "PROPFIND", "QUERY"])
@pytest.mark.parametrize("path", [b"/zen/go/v1/models", b"/anything/at/all", ROUTED])
async def test_any_method_on_any_path_is_forwarded(relay: Relay, method: str, path: bytes):
    case = relay.case(sized(b"" if method == "HEAD" else b"ok"))
    reply = await relay.ask(case.on(path), method, framing="none")
    assert reply.status == 200 or (method == "QUERY" and reply.status == 400), "an unknown method may be a 400"
    assert [seen.head.start[0] for seen in case.requests] in ([method.encode()], [] if method == "QUERY" else None)
