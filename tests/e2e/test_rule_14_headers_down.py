"""Rule 14: the client sees the upstream's end-to-end fields, and at most three of ours."""

import pytest

from tests.fakes.client import END, chunk
from tests.fakes.http1 import Fields
from tests.fakes.relay import Relay, Relays
from tests.fakes.upstream import PLAIN, ROUTED, UNROUTED, sized

OURS = {b"x-ocpool-conversation", b"x-ocpool-match", b"x-ocpool-route"}

SETS: list[list[bytes]] = [
    [b"Set-Cookie: a=%d" % n for n in range(5)] + [b"X-D: 1", b"X-D: 2", b"set-cookie: b=1"],
    [b"Server: cloudflare", b"Date: Mon, 30 Nov 2026 10:00:00 GMT"],
    [b"Server: one", b"Server: two", b"Date: not a date"],
    [],
    [b'ETag: "x"', b"x-CaSe: kept", b"X-EMPTY:", b"X-Latin: caf\xe9", "X-Utf8: 北京".encode()],
    [b"X-Accel-Buffering: no", b"Cache-Control: no-cache, no-transform"],
    [
        b"retry-after: 287441",
        b"anthropic-ratelimit-unified-status: rejected",
        b"x-request-id: req_1",
        b"x-ratelimit-remaining-requests: 0",
    ],
    [
        b"server-timing: gateway;dur=12",
        b'Server-Timing: cfEdge;dur=3, upstream;dur=99.5;desc=""',
        b"x-opencode-endpoint-id: ep_1",
        b"x-opencode-log-id: 5b1f",
        b"cf-ray: 1-ORD",
        b'alt-svc: h3=":443"',
        b"Strict-Transport-Security: max-age=1",
        b"Access-Control-Allow-Origin: *",
    ],
    [b"Location: https://elsewhere.example/x", b"WWW-Authenticate: Bearer", b"WWW-Authenticate: Basic", b"Vary: *"],
    [b"Content-Type: text/event-stream; charset=utf-8", b"Content-Language: zh", b"Via: 1.1 cf", b"Age: 1"],
]


def end_to_end(fields: Fields) -> list[bytes]:
    skip = OURS | {b"connection", b"content-length", b"transfer-encoding", b"keep-alive"}
    return [name + b": " + value for name, value in fields if name.lower() not in skip]


def tidy(lines: list[bytes]) -> list[bytes]:
    return [line if b": " in line else line.replace(b":", b": ", 1) for line in lines]


@pytest.mark.parametrize("path", [ROUTED, UNROUTED, PLAIN])
@pytest.mark.parametrize("status", [b"200 OK", b"429 Too Many Requests", b"503 Unavailable"])
@pytest.mark.parametrize("lines", SETS, ids=range(len(SETS)))
async def test_fields_come_down_in_order_spelling_and_number(
    relay: Relay, lines: list[bytes], status: bytes, path: bytes
):
    reply = await relay.ask(relay.case(sized(b"{}", status, *lines)).on(path))
    assert reply.status == int(status[:3])
    assert end_to_end(reply.head.fields) == tidy(lines)
    assert reply.all(b"content-length") == [b"2"]


@pytest.mark.parametrize("path", [ROUTED, UNROUTED, PLAIN])
@pytest.mark.parametrize("lines", SETS, ids=range(len(SETS)))
async def test_the_fields_of_a_stream_come_down_too(relay: Relay, lines: list[bytes], path: bytes):
    head = b"\r\n".join([b"HTTP/1.1 200 OK", *lines, b"Transfer-Encoding: chunked"]) + b"\r\n\r\n"
    reply = await relay.ask(relay.case(head, chunk(b"data: 1\n\n"), END).on(path))
    assert end_to_end(reply.head.fields) == tidy(lines)
    assert reply.all(b"transfer-encoding") == [b"chunked"]
    assert reply.complete


async def test_ours_are_three_and_only_where_a_conversation_was_decided(relay: Relay):
    relay.needs_daemon()
    routed = await relay.ask(relay.case(sized(b"ok")).on(ROUTED), session=b"a-session-of-mine")
    ours = {name.lower(): value for name, value in routed.head.fields if b"ocpool" in name.lower()}
    assert set(ours) == OURS
    assert ours[b"x-ocpool-route"] in {b"spare", b"natural", b"probe", b"repin", b"none"}
    assert b"a-session-of-mine" not in b"".join(ours.values())
    for path in (UNROUTED, PLAIN):
        reply = await relay.ask(relay.case(sized(b"ok")).on(path))
        assert {name.lower() for name, _ in reply.head.fields if b"ocpool" in name.lower()} <= OURS


async def test_ours_can_be_turned_off(relays: Relays):
    relay = await relays.make(headers__expose=False)
    relay.needs_daemon()
    reply = await relay.ask(relay.case(sized(b"ok", b"200 OK", b"X-A: 1")).on(ROUTED))
    assert reply.head.raw == sized(b"ok", b"200 OK", b"X-A: 1").removesuffix(b"ok")
