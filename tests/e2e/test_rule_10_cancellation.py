"""Rule 10: an abort poisons nothing: the next request gets its own answer, and files are closed."""

import asyncio
import random

import pytest

from tests.fakes.client import END, chunk, request
from tests.fakes.relay import ALL, CROSSED, Relay, Relays
from tests.fakes.upstream import PLAIN, ROUTED, SSE, UNROUTED, Exchange, sized


async def _echo_long(exchange: Exchange) -> None:
    """A stream that carries its request's id in every event."""
    body = await exchange.read()
    await exchange.send(SSE)
    for _ in range(12):
        await exchange.send(chunk(b"data: " + body + b" " + b"x" * 400 + b"\n\n"))
        await asyncio.sleep(0.0015)
    await exchange.send(END)


async def _echo(exchange: Exchange) -> None:
    await exchange.send(sized(await exchange.read()))


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
async def test_after_two_hundred_aborts_every_reply_is_its_own(relay: Relay, path: bytes):
    long, short = relay.case(_echo_long), relay.case(_echo)
    numbers = random.Random(10)
    for round_number in range(200):
        client = await relay.connect()
        await client.send(request(long.on(path), b"aborted-%d" % round_number))
        want = numbers.choice([0, 1, 50, 200, 700, 2500])
        if want:
            await client.wire.until(lambda want=want, wire=client.wire: len(wire.data) >= want, 5, "some bytes")
        client.wire.rst() if round_number % 2 else client.wire.cut()
        own = b"own-%d" % round_number
        assert (await relay.ask(short.on(path), body=own)).data == own


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
async def test_open_files_return_to_where_they_were(relay: Relay):
    relay.needs_daemon()
    case = relay.case(SSE, chunk(b"data: 1\n\n"), "hold")
    await relay.ask(relay.case(sized(b"ok")).on(ROUTED))
    await asyncio.sleep(0.5)
    before = relay.daemon.files()

    async def vanish(number: int) -> None:
        client = await relay.connect()
        await client.send(request(case.on((ROUTED, UNROUTED, PLAIN)[number % 3]), session=b"gone-%d" % number))
        await client.head()
        client.wire.rst() if number % 2 else client.wire.cut()

    for _ in range(3):
        await asyncio.gather(*[vanish(number) for number in range(80)])
    await asyncio.sleep(2)
    assert abs(relay.daemon.files() - before) <= 5
    assert (await relay.ask(relay.case(sized(b"ok")).on(ROUTED))).data == b"ok"


@pytest.mark.parametrize("relay", ALL, indirect=True, ids="-".join)
@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
async def test_bytes_past_the_end_of_a_reply_never_reach_anybody(relay: Relay, path: bytes):
    relay.needs_daemon()
    smuggled = sized(b"smuggled")
    for first in (
        relay.case(sized(b"first") + smuggled),
        relay.case(SSE, chunk(b"first") + END + smuggled),
        relay.case(sized(b"first"), 0.02, smuggled),
        relay.case(sized(b"first") + b"\r\n"),
        relay.case(b"HTTP/1.1 204 No Content\r\n\r\n" + smuggled),
    ):
        async with await relay.connect() as client:
            reply = await client.ask(request(first.on(path)))
            assert reply.data in (b"first", b"")
            await asyncio.sleep(0.05)
            assert (await client.ask(request(relay.case(sized(b"own")).on(path)))).data == b"own"
            assert b"smuggled" not in client.wire.data


async def test_an_idle_limit_does_not_shoot_the_next_user_of_a_connection(relays: Relays):
    relay = await relays.make(stall__idle_timeout_ms=1000)
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    async with await relay.connect() as client:
        for pause in (0.0, 1.3, 1.3):
            await asyncio.sleep(pause)
            assert (await client.ask(request(case.on(ROUTED)))).data == b"ok"


async def test_a_client_leaving_while_others_wait_takes_only_its_own_request_along(relay: Relay):
    waiting = relay.case(0.4, sized(b"ok"))
    leaving = relay.case("hold")
    clients = [await relay.connect() for _ in range(10)]
    for number, client in enumerate(clients):
        await client.send(request(leaving.on(ROUTED), session=b"leaving-%d" % number))
    others = [asyncio.ensure_future(relay.ask(waiting.on(ROUTED), session=b"w-%d" % n)) for n in range(10)]
    await leaving.seen(10)
    for client in clients:
        client.wire.rst()
    assert [reply.data for reply in await asyncio.gather(*others)] == [b"ok"] * 10


def test_the_installed_aiohttp_is_not_the_one_that_reused_half_read_connections():
    import aiohttp

    assert tuple(int(part) for part in aiohttp.__version__.split(".")[:3]) >= (3, 14, 1)
