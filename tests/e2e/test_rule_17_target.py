"""Rule 17: path and query arrive as the same bytes after the documented base-URL rule."""

import pytest

from tests.fakes.relay import Relay, Relays
from tests.fakes.upstream import Upstream, sized

SAME = [
    b"/zen/go/v1/models/org%2Fm%3A1?x=%2F+%27%28&y=a%20b&z=%E4%BD%A0",
    b"//v1//a/../b?q",
    b"/p?a=1&a=2;c&&d=",
    b"/%7Ey",
    b"/~y",
    b'/p?raw=[]|"',
    b"/p?a=1?b=2",
    b"/p/",
    b"/p//",
    b"/./p/../q/.",
    b"/p;x=1/q",
    b"/p%",
    b"/p%zz?%",
    b"/zen/v1/chat/completions?x=%2f%2F",
    b"/zen/go/v1/chat/completions?case=",
    b"/inference/go/openai/v1/models",
    b"/v1beta/models/gemini:generateContent?alt=sse",
    b"/",
    b"/V1/models",
    b"/v1models",
    b"/a{b}c^`\\<>",
]
PREFIXED = [
    (b"/v1/models", b"/zen/go/v1/models"),
    (b"/v1/a%25b?x", b"/zen/go/v1/a%25b?x"),
    (b"/v1/x/../y?#", b"/zen/go/v1/x/../y?#"),
    (b"/v1//x", b"/zen/go/v1//x"),
    (b"/v1/chat/completions", b"/zen/go/v1/chat/completions"),
    (b"/v1/chat/completions?a=%2F", b"/zen/go/v1/chat/completions?a=%2F"),
    (b"/v1/v1/models", b"/zen/go/v1/v1/models"),
    (b"/s/my%20talk/v1/models?x=%20", b"/zen/go/v1/models?x=%20"),
    (b"/s/talk/zen/v1/models", b"/zen/v1/models"),
    (b"/s/talk/v1/chat/completions", b"/zen/go/v1/chat/completions"),
]
# Where the server library refuses before we see the request, or drops a byte: listed in the README as known.
EXCEPTIONS = [
    (b"/zen/go/v1/a%25b?", {b"/zen/go/v1/a%25b?", b"/zen/go/v1/a%25b"}),
    (b"/caf\xe9", {b"/caf\xe9"}),
    (b"/p?q=\x7f", {b"/p?q=\x7f"}),
    ("/北京".encode(), {"/北京".encode()}),
]


async def arrived(relay: Relay, target: bytes, method: str = "GET") -> bytes | int:
    """The target as the upstream saw it, or the status of a refusal."""
    case = relay.case(sized(b"ok"))
    framing = "none" if method == "GET" else "length"
    reply = await relay.ask(target, method, fields=[(b"x-case", case.key)], framing=framing)
    return case.requests[0].target if case.requests else reply.status


@pytest.mark.parametrize("target", SAME)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_target_arrives_as_the_same_bytes(relay: Relay, target: bytes, method: str):
    assert await arrived(relay, target, method) == target


@pytest.mark.parametrize(("target", "expected"), PREFIXED)
async def test_a_short_target_is_put_under_the_default_path(relay: Relay, target: bytes, expected: bytes):
    relay.needs_daemon()
    assert await arrived(relay, target) == expected


@pytest.mark.parametrize(("target", "allowed"), EXCEPTIONS)
async def test_a_known_exception_is_identical_or_a_400(relay: Relay, target: bytes, allowed: set[bytes]):
    relay.needs_daemon()
    assert await arrived(relay, target) in {*allowed, 400}


@pytest.mark.parametrize(
    "target",
    [
        b"http://example.com/v1/models",
        b"https://169.254.169.254/latest",
        b"HTTP://127.0.0.1/v1/models",
        b"example.com:443",
        b"v1/models",
        b"*",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "CONNECT", "OPTIONS"])
async def test_a_target_that_is_no_path_is_refused_and_nothing_goes_out(relay: Relay, target: bytes, method: str):
    relay.needs_daemon()
    opened = relay.upstream.opened
    case = relay.case(sized(b"ok"))
    fields = [(b"x-case", case.key)]
    reply = await relay.ask(target, method, fields=fields, framing="none" if method != "POST" else "length")
    if target == b"*" and method == "OPTIONS" and case.requests:
        assert case.requests[0].target == b"*"
        return
    assert reply.status in (400, 403, 405)
    assert case.requests == []
    assert relay.upstream.opened == opened


@pytest.mark.parametrize(
    ("base", "default", "target", "expected"),
    [
        ("", "/zen/go/v1", b"/v1/models", b"/zen/go/v1/models"),
        ("/", "/zen/go/v1", b"/v1/models", b"/zen/go/v1/models"),
        ("/v1", "/v1", b"/v1/models?a=%2F", b"/v1/v1/models?a=%2F"),
        ("/api/paas/v4", "/zen/go/v1", b"/zen/go/v1/models", b"/api/paas/v4/zen/go/v1/models"),
        ("/api/paas/v4/", "/zen/v1", b"/v1/models", b"/api/paas/v4/zen/v1/models"),
        ("/a%20b", "/zen/go/v1", b"//x", b"/a%20b//x"),
    ],
)
async def test_a_path_in_the_base_url_is_put_in_front(
    relays: Relays, base: str, default: str, target: bytes, expected: bytes
):
    upstream = await Upstream().start()
    url = upstream.url

    class Based(Upstream):
        @property
        def url(self) -> str:
            return url + base

    upstream.__class__ = Based
    relay = await relays.make(upstream=upstream, upstream__default_path=default)
    relay.needs_daemon()
    assert await arrived(relay, target) == expected
    assert upstream.cases
