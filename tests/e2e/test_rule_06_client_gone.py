"""Rule 6: when the client is gone the upstream is gone within 1.5 s, in every phase."""

import asyncio
import time

import pytest

from tests.fakes.client import JSON, Client, chunk, request
from tests.fakes.relay import ALL, CROSSED, Relay
from tests.fakes.upstream import PLAIN, ROUTED, SSE, UNROUTED, Case, sized

WAYS = ["fin", "rst"]
EVENT = chunk(b"data: 1\n\n")
PATHS = [ROUTED, UNROUTED, PLAIN]

PHASES = [
    pytest.param([], 0, id="waiting-for-the-head"),
    pytest.param([b"HTTP/1.1 200 OK\r\nContent-Ty"], 0, id="inside-the-head"),
    pytest.param([b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"], 0, id="after-an-interim-head"),
    pytest.param([SSE], 1, id="waiting-for-the-first-byte"),
    pytest.param([b"HTTP/1.1 429 Slow Down\r\nContent-Length: 90\r\n\r\n"], 1, id="waiting-for-a-refusals-body"),
    pytest.param([SSE, EVENT], len(EVENT), id="mid-stream"),
    pytest.param([b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nabc"], 3, id="mid-length"),
    pytest.param([b"HTTP/1.1 200 OK\r\n\r\nabc"], 3, id="mid-close-delimited"),
]


def leave(client: Client, way: str) -> float:
    """Close by FIN or by RST; returns when."""
    client.wire.fin() if way == "fin" else client.wire.rst()
    return time.perf_counter()


@pytest.mark.parametrize("relay", ALL, indirect=True, ids="-".join)
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("parts", "body"), PHASES)
async def test_upstream_sees_the_client_leave(relay: Relay, parts: list[bytes], body: int, way: str, path: bytes):
    case = relay.case(*parts, "hold")
    client = await relay.connect()
    await client.send(request(case.on(path)))
    seen = await case.seen()
    if body:
        await client.head()
        await client.wire.until(lambda: len(client.wire.data) - client.wire.at >= body - 1, 2, "the body so far")
    await asyncio.sleep(0.05)
    left = leave(client, way)
    assert await seen.wire.gone(1.6) - left < 1.5
    assert len(case.requests) == 1


@pytest.mark.parametrize("path", [UNROUTED, PLAIN])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("framing", ["head", "chunked"])
async def test_upstream_sees_a_client_leave_while_it_uploads(relay: Relay, framing: str, way: str, path: bytes):
    case = relay.case("hold")
    client = await relay.connect()
    if framing == "head":
        await client.send(request(case.on(path), b"x" * 1000, framing="head") + b"x" * 500)
    else:
        await client.send(request(case.on(path), framing="none", fields=[(b"Transfer-Encoding", b"chunked")]) + EVENT)
    seen = await case.seen()
    left = leave(client, way)
    assert await seen.wire.gone(1.6) - left < 1.5
    await case.until(lambda: seen.ended_at is not None, 2, "the end of the script")
    assert not seen.body.complete, "half an upload looked like a whole one"


@pytest.mark.parametrize("way", WAYS)
async def test_half_a_routed_upload_never_reaches_upstream_as_a_whole_one(relay: Relay, way: str):
    case = relay.case(sized(b"ok"))
    client = await relay.connect()
    await client.send(request(case.on(ROUTED), JSON, framing="head") + JSON[:20])
    await asyncio.sleep(0.1)
    leave(client, way)
    await asyncio.sleep(0.3)
    assert all(not seen.body.complete for seen in case.requests)


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
@pytest.mark.parametrize("path", [UNROUTED, PLAIN])
@pytest.mark.parametrize("way", WAYS)
async def test_a_client_leaves_while_its_upload_is_held_up_by_upstream(relay: Relay, way: str, path: bytes):
    relay.needs_daemon()
    case = relay.case("deaf", 30.0, read=False)
    client = await relay.connect()
    port = client.wire.transport.get_extra_info("sockname")[1]
    await client.send(request(case.on(path), b"x" * 900_000_000, framing="head"))
    seen = await case.seen()
    still = 0  # how often in a row the daemon was found not reading
    for _ in range(3000):
        if still == 0:
            await client.send(b"x" * 65536)
        await asyncio.sleep(0.002)
        still = still + 1 if relay.daemon.unread(port) else 0
        if still == 60:
            break
    assert still == 60, "the upload was never held up"
    files = relay.daemon.files()
    client.wire.rst() if way == "rst" else client.wire.cut()
    await asyncio.sleep(1.5)
    assert relay.daemon.files() <= files - 2
    seen.wire.read_on()
    await seen.wire.gone(3)
    seen.wire.rst()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("way", WAYS)
async def test_a_client_that_stopped_reading_leaves(relay: Relay, way: str, path: bytes):
    async def pump(exchange):
        await exchange.read()
        await exchange.send(SSE)
        while True:
            await exchange.send(chunk(b"x" * 65536))

    case = relay.case(pump)
    client = await relay.connect(small=True)
    await client.send(request(case.on(path)))
    seen = await case.seen()
    await client.head()
    client.wire.stop_reading()
    await asyncio.sleep(0.4)
    left = leave(client, way)
    assert await seen.wire.gone(1.6) - left < 1.5


@pytest.mark.parametrize("way", WAYS)
async def test_the_next_request_of_a_session_does_not_wait_for_one_that_was_abandoned(relay: Relay, way: str):
    abandoned, following = relay.case("hold"), relay.case(sized(b"ok"))
    client = await relay.connect()
    await client.send(request(abandoned.on(ROUTED), session=b"one-session"))
    await abandoned.seen()
    leave(client, way)
    started = time.perf_counter()
    reply = await relay.ask(following.on(ROUTED), session=b"one-session")
    assert reply.data == b"ok"
    assert following.requests[0].at - started < 0.5


@pytest.mark.parametrize("path", PATHS)
async def test_a_client_that_closes_its_sending_side_counts_as_gone(relay: Relay, path: bytes):
    """A known exception, stated in the README: a half-close after the request is taken for leaving."""
    relay.needs_daemon()
    case: Case = relay.case(SSE, EVENT, "hold")
    async with await relay.connect() as client:
        await client.send(request(case.on(path)))
        seen = await case.seen()
        await client.head()
        client.wire.half_close()
        await seen.wire.gone(1.6)


@pytest.mark.parametrize("path", PATHS)
async def test_a_pipelined_client_leaves_and_neither_of_its_requests_lives_on(relay: Relay, path: bytes):
    first, second = relay.case(SSE, EVENT, "hold"), relay.case("hold")
    client = await relay.connect()
    await client.send(request(first.on(path)) + request(second.on(path)))
    seen = await first.seen()
    await client.head()
    leave(client, "rst")
    await seen.wire.gone(1.6)
    await asyncio.sleep(0.1)
    assert second.requests == []
