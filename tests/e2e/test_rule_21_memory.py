"""Rule 21: memory is bounded: for slow readers, slow uploads, compression bombs and many sessions."""

import asyncio
import hashlib

import pytest

from tests.fakes.client import END, chunk, request
from tests.fakes.relay import CROSSED, Relay, Relays
from tests.fakes.upstream import PLAIN, ROUTED, SSE, UNROUTED, Exchange, sized

MIB = 1024 * 1024
PIECE = bytes(range(256)) * 256

pytestmark = pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)


async def _peak(relay: Relay, seconds: float) -> int:
    peak = 0
    for _ in range(int(seconds / 0.1)):
        peak = max(peak, relay.daemon.rss())
        await asyncio.sleep(0.1)
    return peak


@pytest.mark.parametrize("path", [ROUTED, PLAIN])
async def test_a_reader_that_stalls_holds_up_the_upstream_and_gets_all_of_it_later(relay: Relay, path: bytes):
    relay.needs_daemon()
    pumped = 0

    async def pump(exchange: Exchange) -> None:
        nonlocal pumped
        await exchange.read()
        await exchange.send(SSE)
        for _ in range(3200):
            await exchange.send(chunk(PIECE))
            pumped += len(PIECE)
        await exchange.send(END)

    case = relay.case(pump)
    client = await relay.connect(small=True)
    await client.send(request(case.on(path)))
    reply = await client.head()
    client.wire.stop_reading()
    before = relay.daemon.rss()
    assert await _peak(relay, 2.5) - before < 50 * MIB
    assert pumped < 100 * MIB, "the upstream was not held up"
    client.wire.read_on()
    size, digest = 0, hashlib.sha256()
    while not reply.complete:
        await client.wire.until(lambda: client.wire.at < len(client.wire.data) or client.wire.gone_at is not None, 20)
        client.wire.at = reply.body.feed(client.wire.data, client.wire.at)
        client.wire.forget()
        size += len(reply.body.data)
        digest.update(reply.body.data)
        reply.body.data.clear()
    client.wire.cut()
    assert size == 3200 * len(PIECE)
    assert digest.digest() == hashlib.sha256(PIECE * 3200).digest()
    assert relay.daemon.rss() - before < 60 * MIB


async def test_slow_uploads_that_stream_hold_little(relay: Relay):
    relay.needs_daemon()

    async def sip(exchange: Exchange) -> None:
        for _ in range(10):
            exchange.wire.stop_reading()
            await asyncio.sleep(0.15)
            exchange.wire.read_on()
            await asyncio.sleep(0.005)
        await exchange.read()
        await exchange.send(sized(b"ok"))

    case = relay.case(sip)
    before = relay.daemon.rss()
    body = PIECE * 480

    async def upload(number: int) -> int:
        return (await relay.ask(case.on(UNROUTED), body=body, session=b"up-%d" % number, within=60)).status

    peak, *statuses = await asyncio.gather(_peak(relay, 2), *[upload(number) for number in range(5)])
    assert statuses == [200] * 5
    assert peak - before < 60 * MIB
    assert all(len(seen.body.data) == len(body) for seen in case.requests)


async def test_bodies_that_are_held_stay_under_their_bound_and_all_arrive(relays: Relays, relay: Relay):
    private = await relays.make(relay.loop, listen__max_buffered_bytes=20 * MIB)
    private.needs_daemon()
    case = private.case(0.5, sized(b"ok"))
    body = b'{"model":"m","pad":"' + b"x" * (12 * MIB) + b'"}'
    before = private.daemon.rss()

    async def upload(number: int) -> int:
        framing = ("length", "chunked")[number % 2]
        return (
            await private.ask(case.on(ROUTED), body=body, framing=framing, session=b"held-%d" % number, within=60)
        ).status

    peak, *statuses = await asyncio.gather(_peak(private, 2.5), *[upload(number) for number in range(8)])
    assert statuses == [200] * 8
    assert all(seen.data == body for seen in case.requests)
    assert len(case.requests) == 8
    assert peak - before < 90 * MIB, "20 MiB held, the rest in transit"


async def test_a_body_that_would_unpack_to_half_a_gigabyte_stays_packed(relay: Relay):
    relay.needs_daemon()
    import zlib

    packer = zlib.compressobj(9, wbits=31)
    zeros = bytes(MIB)
    bomb = b"".join(packer.compress(zeros) for _ in range(512)) + packer.flush()
    case = relay.case(sized(bomb, b"200 OK", b"Content-Encoding: gzip"))
    await relay.ask(case.on(ROUTED), body=b"warm")
    before = relay.daemon.rss()
    for path in (ROUTED, UNROUTED):
        peak, reply = await asyncio.gather(
            _peak(relay, 0.8), relay.ask(case.on(path), body=bomb, fields=[(b"Content-Encoding", b"gzip")])
        )
        assert reply.data == bomb
        assert case.requests[-1].data == bomb
        assert peak - before < 20 * MIB


async def _churn(relay: Relay, sessions: int) -> None:
    case = relay.case(sized(b"ok"))
    numbers = iter(range(sessions))

    async def one_connection() -> None:
        async with await relay.connect() as client:
            for number in numbers:
                reply = await client.ask(request(case.on(ROUTED), session=b"one-shot-session-%06d" % number))
                assert reply.status == 200
                case.requests.clear()

    await asyncio.gather(*[one_connection() for _ in range(8)])


async def test_sessions_that_come_once_are_forgotten_and_one_that_stays_is_not(relays: Relays, relay: Relay):
    private = await relays.make(relay.loop, conversation__max_count=200)
    private.needs_daemon()
    case = private.case(sized(b"ok"))
    label = (await private.ask(case.on(ROUTED), session=b"the-one-that-stays")).one(b"x-ocpool-conversation")
    await _churn(private, 600)
    await asyncio.sleep(2)  # what is loaded after the start is there by then
    before = private.daemon.rss()
    for _ in range(3):
        assert (await private.ask(case.on(ROUTED), session=b"the-one-that-stays")).one(
            b"x-ocpool-conversation"
        ) == label
        await _churn(private, 600)
    assert private.daemon.rss() - before < 12 * MIB


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_hundred_thousand_sessions_leave_memory_where_it_was(relays: Relays, relay: Relay):
    private = await relays.make(relay.loop)
    private.needs_daemon()
    await _churn(private, 5000)
    before = private.daemon.rss()
    await _churn(private, 95_000)
    assert private.daemon.rss() - before < 40 * MIB
