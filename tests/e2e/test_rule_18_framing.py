"""Rule 18: framing is ours to get right, both ways."""

import asyncio
import json
import time

import pytest

from tests.fakes.client import END, JSON, chunk, request
from tests.fakes.relay import ALL, Relay
from tests.fakes.upstream import PLAIN, ROUTED, SSE, UNROUTED, Exchange, sized

PATHS = [ROUTED, UNROUTED, PLAIN]
HOPS = [
    (b"Connection", b"X-Hop, Keep-Alive, TE"),
    (b"X-Hop", b"1"),
    (b"TE", b"trailers"),
    (b"Keep-Alive", b"timeout=5"),
    (b"Proxy-Authorization", b"Basic z"),
    (b"Proxy-Connection", b"keep-alive"),
    (b"X-End", b"keep"),
]


async def follow_up(relay: Relay, client, path: bytes) -> None:
    """A normal request on the same connection has its own answer."""
    assert (await client.ask(request(relay.case(sized(b"next")).on(path)))).data == b"next"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("body", "framing"), [(JSON, "length"), (JSON, "chunked"), (b"", "length"), (b"", "chunked")])
async def test_a_sized_request_stays_sized_and_there_is_one_framing(
    relay: Relay, body: bytes, framing: str, path: bytes
):
    case = relay.case(sized(b"ok"))
    await relay.ask(case.on(path), body=body, framing=framing)
    head = case.requests[0].head
    length, coding = head.all(b"content-length"), head.all(b"transfer-encoding")
    assert len(length) + len(coding) == 1
    if framing == "length":
        assert length == [b"%d" % len(body)]
    assert case.requests[0].data == body


BODYLESS = [
    pytest.param("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n", id="head-77"),
    pytest.param("HEAD", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", id="head-chunked"),
    pytest.param("HEAD", b"HTTP/1.1 200 OK\r\n\r\n", id="head-unframed"),
    pytest.param("POST", b"HTTP/1.1 204 No Content\r\n\r\n", id="204"),
    pytest.param("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", id="304-sized"),
    pytest.param("GET", b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", id="304-chunked"),
    pytest.param("POST", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", id="zero"),
]


@pytest.mark.parametrize("relay", ALL, indirect=True, ids="-".join)
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("method", "head"), BODYLESS)
async def test_a_reply_without_a_body_has_none_and_leaves_both_connections_usable(
    relay: Relay, method: str, head: bytes, path: bytes
):
    case = relay.case(head)
    async with await relay.connect() as client:
        framing = "length" if method == "POST" else "none"
        reply = await client.ask(request(case.on(path), method=method.encode(), framing=framing), method)
        assert reply.status == int(head[9:12])
        assert reply.raw == b""
        if b"77" in head:
            assert reply.one(b"content-length") == b"77"
        opened = len(relay.upstream.wires)
        await follow_up(relay, client, path)
    if relay._daemon is not None and head.find(b"Length") > 0:
        assert len(relay.upstream.wires) == opened, "a good upstream connection was not reused"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("size", [5, 1_100_000])
async def test_expect_is_answered_here_and_not_passed_on(relay: Relay, size: int, path: bytes):
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    async with await relay.connect() as client:
        await client.send(request(case.on(path), b"x" * size, [(b"Expect", b"100-continue")], framing="head"))
        asked = time.perf_counter()
        await client.wire.until(lambda: client.wire.data.startswith(b"HTTP/1.1 100 "), 1, "100 Continue")
        assert time.perf_counter() - asked < 0.5
        await client.send(b"x" * size)
        reply = await client.reply()
        await follow_up(relay, client, path)
    assert (reply.status, reply.data) == (200, b"ok")
    assert case.requests[0].head.all(b"expect") == []
    assert case.requests[0].data == b"x" * size


@pytest.mark.parametrize("path", PATHS)
async def test_expect_with_the_body_sent_at_once_works(relay: Relay, path: bytes):
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    async with await relay.connect() as client:
        reply = await client.ask(request(case.on(path), fields=[(b"Expect", b"100-continue")]))
        await follow_up(relay, client, path)
    assert reply.data == b"ok"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_an_offer_of_h2c_is_ignored(relay: Relay, framing: str, path: bytes):
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    offer = [(b"Connection", b"Upgrade, HTTP2-Settings"), (b"Upgrade", b"h2c"), (b"HTTP2-Settings", b"AAMAAABk")]
    reply = await relay.ask(case.on(path), fields=offer, framing=framing)
    assert reply.status == 200
    assert case.requests[0].data == JSON
    for name in (b"upgrade", b"http2-settings", b"connection"):
        assert case.requests[0].head.all(name) == []


@pytest.mark.parametrize("path", PATHS)
async def test_fields_for_one_hop_do_not_cross_upwards(relay: Relay, path: bytes):
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    await relay.ask(case.on(path), fields=HOPS)
    names = {name.lower() for name, _ in case.requests[0].head.fields}
    assert names <= {b"host", b"content-length", b"x-end", b"x-opencode-session"}
    assert case.requests[0].head.all(b"x-end") == [b"keep"]


@pytest.mark.parametrize("path", PATHS)
async def test_fields_for_one_hop_do_not_cross_downwards(relay: Relay, path: bytes):
    relay.needs_daemon()
    lines = [name + b": " + value for name, value in HOPS]
    case = relay.case(sized(b"ok", b"200 OK", *lines, b"Trailer: X-Sum", b"Upgrade: h2c"))
    reply = await relay.ask(case.on(path))
    names = {name.lower() for name, _ in reply.head.fields if not name.lower().startswith(b"x-ocpool")}
    assert names - {b"trailer", b"connection"} == {b"content-length", b"x-end"}
    assert b"x-hop" not in b"".join(reply.all(b"connection")).lower()


@pytest.mark.parametrize("path", PATHS)
async def test_connection_cannot_name_the_framing_or_the_session_away(relay: Relay, path: bytes):
    relay.needs_daemon()
    case = relay.case(sized(b"ok", b"200 OK", b"Connection: content-length, content-type", b"Content-Type: a/b"))
    abuse = [(b"Connection", b"content-length, host, x-opencode-session")]
    async with await relay.connect() as client:
        reply = await client.ask(request(case.on(path), fields=abuse, session=b"kept-although-named"))
        await follow_up(relay, client, path)
    assert reply.data == b"ok"
    assert case.requests[0].data == JSON


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "interim", [b"103 Early Hints\r\nLink: </x>", b"102 Processing\r\nX: y", b"100 Continue\r\nX: y"]
)
async def test_an_interim_head_is_not_the_answer(relay: Relay, interim: bytes, path: bytes):
    head = b"HTTP/1.1 " + interim + b"\r\n\r\n"
    case = relay.case(head, head, 0.1, sized(b"final"))
    reply = await relay.ask(case.on(path))
    assert (reply.status, reply.data) == (200, b"final")


BAD = [
    pytest.param(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"ok") + END, id="both"
    ),
    pytest.param(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n" + chunk(b"ok") + END,
        id="both-reversed",
    ),
    pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", id="two-lengths"),
    pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok", id="negative"),
    pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nok", id="hex"),
    pytest.param(b"HTTP/1.1 200 OK\r\nX : y\r\nContent-Length: 2\r\n\r\nok", id="space-before-colon"),
    pytest.param(b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\nok", id="no-colon"),
    pytest.param(b"HTTP/1.1 abc OK\r\n\r\nok", id="status-no-number"),
    pytest.param(b"HTTP/2 200 OK\r\n\r\nok", id="other-version"),
    pytest.param(b"<html>hello</html>\r\n\r\n", id="no-http"),
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("raw", BAD)
async def test_an_upstream_that_breaks_the_framing_is_a_502_and_its_connection_is_left(
    relay: Relay, raw: bytes, path: bytes
):
    relay.needs_daemon()
    case, after = relay.case(raw), relay.case(sized(b"next"))
    async with await relay.connect() as client:
        reply = await client.ask(request(case.on(path)))
        assert (reply.status, reply.one(b"content-type")) == (502, b"application/json")
        assert json.loads(reply.data)["error"]["code"]
        assert (await client.ask(request(after.on(path)))).data == b"next"
    assert after.requests[0].connection != case.requests[0].connection
    assert len(case.requests) == 1


SMUGGLED = [
    pytest.param(
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\n\r\n", id="both"
    ),
    pytest.param(b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde", id="two-lengths"),
    pytest.param(b"Content-Length: +5\r\n\r\nabcde", id="plus"),
    pytest.param(b"Transfer-Encoding: chunked, identity\r\n\r\n5\r\nabcde\r\n0\r\n\r\n", id="identity"),
    pytest.param(b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabcde\r\n0\r\n\r\n", id="bad-size"),
    pytest.param(b"Transfer-Encoding : chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n", id="space-before-colon"),
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("rest", SMUGGLED)
async def test_a_request_whose_end_is_in_doubt_is_refused(relay: Relay, rest: bytes, path: bytes):
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    async with await relay.connect() as client:
        await client.send(b"POST " + case.on(path) + b" HTTP/1.1\r\nHost: localhost\r\n" + rest)
        reply = await client.reply()
        assert reply.status == 400
        assert reply.one(b"content-type") == b"application/json"
        await client.wire.gone(2)
    assert all(not seen.body.complete for seen in case.requests)
    assert not relay.upstream.strays or b"/evil" not in relay.upstream.strays[-1].target


@pytest.mark.parametrize("path", PATHS)
async def test_pipelined_requests_are_answered_in_order(relay: Relay, path: bytes):
    async def slow(exchange: Exchange) -> None:
        await exchange.read()
        await exchange.send(SSE, chunk(b"one"), chunk(b"two"), END, gap=0.03)

    first, second, third = relay.case(slow), relay.case(sized(b"second")), relay.case(sized(b"third"))
    async with await relay.connect() as client:
        await client.send(b"".join(request(case.on(path)) for case in (first, second, third)))
        assert [(await client.reply()).data for _ in range(3)] == [b"onetwo", b"second", b"third"]


@pytest.mark.parametrize("path", PATHS)
async def test_a_client_that_wants_to_close_is_answered_and_closed(relay: Relay, path: bytes):
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    async with await relay.connect() as client:
        reply = await client.ask(request(case.on(path), fields=[(b"Connection", b"close")]))
        assert reply.data == b"ok"
        await client.wire.gone(1)
        assert not client.wire.was_reset
    assert case.requests[0].head.all(b"connection") == []


@pytest.mark.parametrize("path", PATHS)
async def test_an_upstream_of_http_1_0_is_understood(relay: Relay, path: bytes):
    case = relay.case(b"HTTP/1.0 200 OK\r\nContent-Type: a/b\r\n\r\nold", 0.05, "fin")
    reply = await relay.ask(case.on(path))
    assert (reply.status, reply.data, reply.complete) == (200, b"old", True)


@pytest.mark.parametrize("path", PATHS)
async def test_an_early_answer_to_an_upload_reaches_the_client(relay: Relay, path: bytes):
    """Upstream refuses at the head and closes; the client still learns why."""
    relay.needs_daemon()
    case = relay.case(
        sized(b'{"error":{"message":"too big"}}', b"413 Too Large", b"Connection: close"), 0.5, read=False
    )
    async with await relay.connect() as client:
        await client.send(request(case.on(path), b"x" * 300_000, framing="head"))
        if path == ROUTED:
            await client.send(b"x" * 300_000)
        reply = await client.reply()
    assert (reply.status, reply.complete) == (413, True)


@pytest.mark.parametrize("path", PATHS)
async def test_requests_with_one_head_are_told_apart_wherever_they_are_cut(relay: Relay, path: bytes):
    """On one connection, each in two pieces, then with a piece of the next one behind it."""
    case = relay.case(sized(b"ok"))
    asked = [json.dumps({"model": "m", "n": "x" * (number % 5)}).encode() for number in range(60)]
    raw = [request(case.on(path), body) for body in asked]
    cuts = [1 + number * (len(one) - 2) // 40 for number, one in enumerate(raw[:40])]
    async with await relay.connect() as client:
        for one, cut in zip(raw, cuts, strict=False):
            await client.send(one[:cut])
            await asyncio.sleep(0.003)
            await client.send(one[cut:])
            assert (await client.reply()).data == b"ok"
        halves = [(one[: len(one) // 2], one[len(one) // 2 :]) for one in raw[40:]]
        await client.send(halves[0][0])
        for (_, half), (following, _) in zip(halves, [*halves[1:], (b"", b"")], strict=True):
            await client.send(half + following)
            assert (await client.reply()).data == b"ok"
    assert [seen.data for seen in case.requests] == asked
