"""Rule 3: what ended by anything but its own framing never looks finished to the client."""

import asyncio

import pytest

from tests.fakes.client import END, chunk, request
from tests.fakes.daemon import Daemon
from tests.fakes.relay import Relay, Relays
from tests.fakes.upstream import ROUTED, SSE, UNROUTED, sized

EVENT = b'data: {"x":1}\n\n'
ROLE = b'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n'

BREAKS = [
    pytest.param([SSE, chunk(EVENT)], EVENT, id="after-an-event"),
    pytest.param([SSE, chunk(ROLE)], ROLE, id="after-the-role"),
    pytest.param([SSE], b"", id="after-the-head"),
    pytest.param([SSE, chunk(EVENT), b"20\r\ndata: half"], EVENT + b"data: half", id="inside-a-chunk"),
    pytest.param([SSE, chunk(EVENT), b"2"], EVENT, id="inside-a-size"),
    pytest.param([SSE, chunk(EVENT), b"0\r\n"], EVENT, id="inside-the-end"),
    pytest.param([b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", EVENT], EVENT, id="short-of-its-length"),
    pytest.param(
        [b"HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\n", EVENT], EVENT, id="an-error-short-of-its-length"
    ),
    pytest.param(
        [b"HTTP/1.1 429 Slow\r\nContent-Length: 100\r\n\r\n", EVENT], EVENT, id="a-refusal-short-of-its-length"
    ),
]


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
@pytest.mark.parametrize(
    ("relay", "way"),
    [
        (("uvloop", "http"), "rst"),
        (("uvloop", "https"), "fin"),
        (("uvloop", "https"), "cut"),
        (("uvloop", "https"), "rst"),
    ]
    + [(("asyncio", "http"), "fin"), (("asyncio", "http"), "rst"), (("asyncio", "https"), "cut")],
    indirect=["relay"],
    ids=str,
)
@pytest.mark.parametrize(("parts", "entity"), BREAKS)
async def test_a_broken_stream_stays_broken_and_ends_within_a_second(
    relay: Relay, parts: list[bytes], entity: bytes, way: str, path: bytes
):
    case = relay.case(*parts, 0.15, way)
    async with await relay.connect() as client:
        await client.send(request(case.on(path)))
        reply = await client.rest(await client.head())
        assert not reply.complete
        assert reply.data == entity
        assert END not in reply.raw
        broken = case.requests[0].ended_at
        assert broken is not None
        assert reply.ended_at - broken < 1
    assert len(case.requests) == 1


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
async def test_a_body_without_framing_that_breaks_ends_by_reset(relay: Relay, path: bytes):
    case = relay.case(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", EVENT, 0.15, "rst")
    async with await relay.connect() as client:
        await client.send(request(case.on(path)))
        reply = await client.rest(await client.head())
    assert reply.data == EVENT
    assert reply.reset, "an orderly close would look complete"


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
async def test_a_body_without_framing_that_ends_in_order_is_complete(relay: Relay, path: bytes):
    case = relay.case(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", EVENT, 0.1, EVENT, "fin")
    reply = await relay.ask(case.on(path))
    assert (reply.data, reply.body.framing, reply.complete) == (EVENT * 2, "close", True)


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
@pytest.mark.parametrize("way", ["fin", "rst"])
async def test_a_broken_stream_to_an_http_1_0_client_ends_by_reset(relay: Relay, way: str, path: bytes):
    relay.needs_daemon()
    case = relay.case(SSE, chunk(EVENT), 0.15, way)
    async with await relay.connect() as client:
        await client.send(request(case.on(path), version=b"HTTP/1.0"))
        reply = await client.rest(await client.head())
    assert reply.data == EVENT
    assert reply.body.framing == "close"
    assert reply.reset


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
async def test_an_http_1_0_client_gets_a_chunked_body_without_its_chunks(relay: Relay, path: bytes):
    relay.needs_daemon()
    case = relay.case(SSE, chunk(EVENT), 0.05, chunk(EVENT * 3), END)
    async with await relay.connect() as client:
        await client.send(request(case.on(path), version=b"HTTP/1.0"))
        reply = await client.rest(await client.head())
    assert (reply.data, reply.complete, reply.body.framing) == (EVENT * 4, True, "close")
    assert reply.all(b"transfer-encoding") == []


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
async def test_an_end_with_the_connection_left_open_is_an_end_at_once(relay: Relay, path: bytes):
    case = relay.case(SSE, chunk(EVENT), END)
    async with await relay.connect() as client:
        reply = await client.ask(request(case.on(path)))
        assert reply.complete
        assert reply.ended_at - case.requests[0].when(END) < 0.5
        assert (await client.ask(request(relay.case(sized(b"next")).on(path)))).data == b"next"


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
async def test_bytes_that_came_with_the_break_are_not_lost(relay: Relay, path: bytes):
    events = [b"data: %06d\n\n" % n for n in range(3000)]
    case = relay.case(SSE, b"".join(map(chunk, events)), "cut")
    async with await relay.connect() as client:
        await client.send(request(case.on(path)))
        reply = await client.rest(await client.head())
    assert reply.data == b"".join(events)
    assert not reply.complete


async def test_the_event_log_tells_complete_from_broken_from_left(relays: Relays):
    relay = await relays.make()
    relay.needs_daemon()
    seen = []
    for parts in ([SSE, chunk(EVENT), END], [SSE, chunk(EVENT), 0.05, "rst"], [SSE, 0.05, "fin"]):
        reply = await relay.ask(relay.case(*parts).on(ROUTED))
        assert reply.status == 200
        seen.append(reply)
    async with await relay.connect() as client:
        case = relay.case(SSE, chunk(EVENT), "hold")
        await client.send(request(case.on(ROUTED)))
        await client.head()
    daemon = relay.daemon
    ends = await _ends(daemon, 4)
    assert ends[0] == "complete"
    assert ends[1] == ends[2] == "truncated"
    assert ends[3] == "client_gone"


async def _ends(daemon: Daemon, count: int) -> list[str]:
    for _ in range(100):
        ends = [str(event["ended"]) for event in daemon.events() if "ended" in event]
        if len(ends) >= count:
            return ends
        await asyncio.sleep(0.05)
    raise AssertionError(daemon.events())
