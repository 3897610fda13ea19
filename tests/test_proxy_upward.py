"""Forms of heads: what is filled in is what would have been made for each request alone."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.arrival import RequestHead
from proxy.gateway.fields import rewrite
from proxy.upward import form_of
from proxy.wire.head import request_head

HEADER = b"x-opencode-session"
NAMES = [
    b"Accept",
    b"Authorization",
    b"Connection",
    b"Content-Type",
    b"Cookie",
    b"Host",
    b"User-Agent",
    b"X-100%",
    b"X-Copy",
    b"X-OpenCode-Session",
    b"session_id",
    b"te",
    b"x-ocpool-class",
    b"x-opencode-session",
    b"x-parent-session-id",
    b"x-session-affinity",
]
SESSION = b"0123456789abcdef0123"
VALUES = st.sampled_from(
    [b"", b"a", b"100%", b"%(session)b", b"%d", SESSION, b"another-session-of-it", b"close", b"X-Copy"]
)
FIELDS = st.lists(st.tuples(st.sampled_from(NAMES), VALUES), max_size=8)
TARGET, PLACE = b"/zen/go/v1/chat/completions?q=100%25", b"opencode.ai"


def made(fields: list[tuple[bytes, bytes]], session: bytes | None) -> tuple[list[tuple[bytes, bytes]], bytes]:
    sent = rewrite(fields, session_header=HEADER, session=session, parent=lambda _: None)
    return sent, request_head(b"POST", TARGET, PLACE, sent, chunked=False)


@given(FIELDS, st.sampled_from([SESSION, b"ses_other", b"%"]), st.integers(0, 10**9), st.booleans())
def test_a_form_filled_in_is_the_head_made_for_the_request(fields, session, length, rewritten):
    """Whatever the fields are; or there is no form, because a parent or a copy of an id is among them."""
    sized = [*fields, (b"Content-Length", b"%d" % length)]
    head = RequestHead(b"POST", TARGET, [*fields, (b"Content-Length", b"77")], modern=True)
    form = form_of(head, TARGET, PLACE, HEADER, rewritten=rewritten)
    if form is None:
        assert rewritten
        assert any(name == b"x-parent-session-id" for name, _ in fields) or any(len(value) >= 16 for _, value in fields)
        return
    sent, expected = made(sized, session if rewritten else None)
    assert form.fill(session, length) == expected
    if rewritten:
        own, _ = made(sized, None)
        assert (form.sole == session) is (sent == own)


def test_a_head_without_a_body_has_no_length():
    head = RequestHead(b"GET", b"/v1/models", [(b"Host", b"localhost")], modern=True)
    form = form_of(head, b"/zen/go/v1/models", PLACE, HEADER, rewritten=False)
    assert form is not None
    assert form.fill(None, None) == b"GET /zen/go/v1/models HTTP/1.1\r\nHost: opencode.ai\r\n\r\n"
