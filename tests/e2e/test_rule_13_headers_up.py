"""Rule 13: the upstream sees the client's end-to-end fields, the session field swapped, Host its own, nothing added."""

from uuid import uuid4

import pytest

from tests.fakes.http1 import Fields
from tests.fakes.relay import Relay, Relays
from tests.fakes.upstream import PLAIN, ROUTED, UNROUTED, sized

H = b"x-opencode-session"
SET = [
    (b"Accept", b"text/event-stream"),
    (b"X-D", b"1"),
    (b"user-agent", b"OpenAI/Python 2.1"),
    (b"x-D", b"2"),
    (b"X-CaSe-Is-Kept", b"Yes"),
    (b"X-Stainless-Retry-Count", b"0"),
    (b"Authorization", b"Bearer sk-test"),
    (b"X-Empty", b""),
    (b"X-Latin", b"caf\xe9"),
    (b"X-Utf8", "北京".encode()),
    (b"X-Inner", b"a  b\tc"),
    (b"Cookie", b"a=1; b=2"),
    (b"Cookie", b"c=3"),
    (b"Content-Type", b"application/json"),
    (b"X-Forwarded-For", b"203.0.113.9"),
    (b"Via", b"1.1 theirs"),
    (b"Forwarded", b"for=203.0.113.9"),
    (b"Range", b"bytes=0-10"),
    (b"If-None-Match", b'"x"'),
    (b"Accept-Encoding", b"br;q=1.0, gzip"),
    (b"Priority", b"u=1"),
    (b"x-opencode-org-id", b"org_1"),
    (b"X-Codex-Turn-Metadata", b'{"turn":1}'),
    (b"anthropic-version", b"2023-06-01"),
]


def end_to_end(fields: Fields) -> Fields:
    """Without framing, Host and the session field, which have rules of their own."""
    own = {b"host", b"content-length", b"transfer-encoding", b"connection", H}
    return [field for field in fields if field[0].lower() not in own]


@pytest.mark.parametrize("path", [ROUTED, UNROUTED, PLAIN])
async def test_fields_arrive_in_order_spelling_and_number(relay: Relay, path: bytes):
    case = relay.case(sized(b"ok"))
    assert (await relay.ask(case.on(path), fields=SET, session=b"0f0e0d0c-session-value")).status == 200
    assert end_to_end(case.requests[0].head.fields) == SET
    assert case.requests[0].head.all(H) == [b"0f0e0d0c-session-value"]


@pytest.mark.parametrize("path", [ROUTED, UNROUTED, PLAIN])
@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_a_bare_request_gains_nothing_but_the_session_field(relay: Relay, framing: str, path: bytes):
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    # Said before, it would be recognised: its id would be that conversation's.
    body = b'{"model":"m","messages":[{"role":"user","content":"%b"}]}' % uuid4().hex.encode()
    assert (await relay.ask(case.on(path), body=body, framing=framing)).status == 200
    names = sorted(name.lower() for name, _ in case.requests[0].head.fields)
    frame = b"content-length" if framing == "length" else b"transfer-encoding"
    session = [] if path == PLAIN else [H]
    assert names == sorted([b"host", frame, *session])
    assert all(len(value) >= 16 for value in case.requests[0].head.all(H))


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "OPTIONS"])
async def test_a_request_without_a_body_gains_nothing_at_all(relay: Relay, method: str):
    relay.needs_daemon()
    case = relay.case(sized(b"") if method != "HEAD" else b"HTTP/1.1 200 OK\r\n\r\n")
    await relay.ask(case.on(PLAIN), method, framing="none")
    assert case.requests[0].head.fields == [(b"Host", relay.upstream.host)]


@pytest.mark.parametrize("path", [ROUTED, UNROUTED, PLAIN])
@pytest.mark.parametrize("host", [b"localhost:8377", b"127.0.0.1", b"LOCALHOST"])
async def test_host_is_the_upstreams_and_so_is_the_name_asked_for_in_tls(relay: Relay, host: bytes, path: bytes):
    relay.needs_daemon()
    relay.authority.names.clear()
    case = relay.case(sized(b"ok", b"200 OK", b"Connection: close"))
    for _ in range(40):  # until the idle connections of earlier tests are used up, and a new one is made
        assert (await relay.ask(case.on(path), host=host)).status == 200
        if relay.authority.names or not relay.upstream.tls:
            break
    assert {seen.head.one(b"host") for seen in case.requests} == {relay.upstream.host}
    assert set(relay.authority.names) <= {"localhost"}
    assert relay.authority.names or not relay.upstream.tls


@pytest.mark.parametrize("path", [ROUTED, UNROUTED, PLAIN])
async def test_what_is_meant_for_ocpool_stays_with_it(relay: Relay, path: bytes):
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    own = [
        (b"x-ocpool-conversation", b"my-talk"),
        (b"X-OCPool-Class", b"interactive"),
        (b"X-Ocpool-Token", b"secret-t"),
    ]
    await relay.ask(case.on(path), fields=[*own, (b"X-End", b"keep")])
    raw = case.requests[0].head.raw.lower()
    assert b"ocpool" not in raw
    assert b"my-talk" not in raw
    assert b"secret-t" not in raw
    assert case.requests[0].head.all(b"x-end") == [b"keep"]


async def test_mode_off_changes_no_field(relays: Relays):
    relay = await relays.make(routing__mode="off")
    relay.needs_daemon()
    fields = [*SET, (b"session_id", b"theirs-1"), (b"x-session-affinity", b"theirs-2")]
    for path in (ROUTED, UNROUTED):
        case = relay.case(sized(b"ok"))
        await relay.ask(case.on(path), fields=fields, session=b"theirs-3")
        assert end_to_end(case.requests[0].head.fields) == fields
        assert case.requests[0].head.all(H) == [b"theirs-3"]
        case = relay.case(sized(b"ok"))
        await relay.ask(case.on(path))
        assert case.requests[0].head.all(H) == []
