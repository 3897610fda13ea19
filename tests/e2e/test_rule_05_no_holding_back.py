"""Rule 5: the head is at the client within 100 ms of the upstream's, every byte within 50 ms, whatever its type."""

import pytest

from tests.fakes.client import END, chunk, request
from tests.fakes.relay import CROSSED, Relay
from tests.fakes.upstream import PLAIN, ROUTED, UNROUTED
from tests.fakes.watched import best_of

KINDS = [b"text/event-stream", b"application/json", b"text/plain", b"application/octet-stream", b""]


def head(kind: bytes, framing: str, status: bytes = b"200 OK") -> bytes:
    lines = [b"HTTP/1.1 " + status] + ([b"Content-Type: " + kind] if kind else [])
    lines += {"chunked": [b"Transfer-Encoding: chunked"], "length": [b"Content-Length: 320"], "close": []}[framing]
    return b"\r\n".join(lines) + b"\r\n\r\n"


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
@best_of(3)
async def test_every_event_is_at_the_client_within_50_ms(relay: Relay, kind: bytes, framing: str, path: bytes):
    marks = [b"%031d\n" % n for n in range(10)]
    script: list[object] = [head(kind, framing), 0.05]
    for mark in marks:
        script += [chunk(mark) if framing == "chunked" else mark, 0.03]
    case = relay.case(*script, *{"chunked": [END], "length": [], "close": ["fin"]}[framing])
    async with await relay.connect() as client:
        reply = await client.ask(request(case.on(path)))
        sent = case.requests[0]
        assert reply.data == b"".join(marks)
        assert reply.head_at - sent.when(b"HTTP/1.1 200") < 0.1
        late = [client.wire.when(client.wire.data.find(mark)) - sent.when(mark) for mark in marks]
        assert max(late) < 0.05


@pytest.mark.parametrize("path", [ROUTED, UNROUTED, PLAIN])
@pytest.mark.parametrize(
    "status",
    [
        b"200 OK",
        b"201 Created",
        b"400 Bad Request",
        b"401 No",
        b"429 Slow Down",
        b"500 Oops",
        b"503 Busy",
        b"529 Overloaded",
    ],
)
@best_of(3)
async def test_the_head_does_not_wait_for_the_body(relay: Relay, status: bytes, path: bytes):
    case = relay.case(head(b"text/event-stream", "chunked", status), 0.5, chunk(b"x"), END)
    async with await relay.connect() as client:
        await client.send(request(case.on(path)))
        reply = await client.head()
        assert reply.status == int(status[:3])
        assert reply.head_at - case.requests[0].when(b"HTTP/1.1") < 0.15
        assert (await client.rest(reply)).complete


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
@best_of(3)
async def test_comments_are_not_parked_until_a_real_event(relay: Relay, path: bytes):
    pings = [b": ping %d\n\n" % n for n in range(8)]
    script: list[object] = [head(b"text/event-stream", "chunked")]
    for ping in pings:
        script += [chunk(ping), 0.06]
    case = relay.case(*script, chunk(b"data: 1\n\n"), END)
    async with await relay.connect() as client:
        reply = await client.ask(request(case.on(path)))
        late = [client.wire.when(client.wire.data.find(ping)) - case.requests[0].when(ping) for ping in pings]
    assert reply.data == b"".join(pings) + b"data: 1\n\n"
    assert max(late) < 0.05


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
@best_of(3)
async def test_a_byte_at_a_time_is_passed_a_byte_at_a_time(relay: Relay, path: bytes):
    script: list[object] = [head(b"text/event-stream", "chunked")]
    for n in range(30):
        script += [chunk(b"%c" % (65 + n)), 0.02]
    case = relay.case(*script, END)
    async with await relay.connect() as client:
        await client.ask(request(case.on(path)))
        assert len(client.wire.arrivals) >= 25


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
@best_of(3)
async def test_an_upload_that_is_not_routed_is_passed_on_as_it_comes(relay: Relay):
    import asyncio

    case = relay.case(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    sent: list[float] = []
    async with await relay.connect() as client:
        await client.send(request(case.on(UNROUTED), framing="none", fields=[(b"Transfer-Encoding", b"chunked")]))
        seen = None
        for n in range(5):
            sent.append(asyncio.get_running_loop().time())
            await client.send(chunk(b"part%d" % n))
            seen = seen or await case.seen()
            await seen.wire.until(lambda n=n: b"part%d" % n in seen.wire.data, 0.1, "the part")
        await client.send(END)
        assert (await client.reply()).data == b"ok"
