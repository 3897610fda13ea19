"""Rule 9: a pooled connection that died does not cost a turn."""

import asyncio
import time

import pytest

from tests.fakes.client import request
from tests.fakes.relay import CROSSED, Relay, Relays
from tests.fakes.upstream import PLAIN, ROUTED, UNROUTED, Exchange, sized


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
async def test_an_upstream_that_closes_idle_connections_costs_nothing(relay: Relay, path: bytes):
    relay.needs_daemon()
    closings: list[float] = []

    async def close_later(exchange: Exchange) -> None:
        await exchange.read()
        await exchange.send(sized(b"ok"))

        def close() -> None:
            closings.append(time.perf_counter())
            exchange.wire.fin()

        asyncio.get_running_loop().call_later(0.05, close)

    case = relay.case(close_later)
    failed: list[tuple[float, float]] = []
    async with await relay.connect() as client:
        for number in range(80):
            await asyncio.sleep((0.0, 0.02, 0.047, 0.05, 0.053, 0.06)[number % 6])
            started = time.perf_counter()
            reply = await client.ask(request(case.on(path) + b"&n=%d" % number))
            ended = time.perf_counter()
            assert ended - started < 2
            assert reply.status in (200, 502, 503)
            if reply.status != 200:
                failed.append((started, ended))
    numbers = [seen.target for seen in case.requests]
    assert len(numbers) == len(set(numbers)), "the same request was sent twice"
    for started, ended in failed:
        assert any(started - 0.01 < closing < ended for closing in closings), "it failed without a race"
    assert len(failed) <= 12


@pytest.mark.parametrize("way", ["fin", "cut", "rst"])
@pytest.mark.parametrize("path", [ROUTED, PLAIN])
async def test_a_connection_that_ended_while_idle_is_not_used(relay: Relay, way: str, path: bytes):
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    async with await relay.connect() as client:
        for _ in range(4):
            assert (await client.ask(request(case.on(path)))).status == 200
            getattr(case.requests[-1].wire, way)()
            await asyncio.sleep(0.03)


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
async def test_what_an_idle_connection_says_unasked_is_no_answer_to_the_next_request(relay: Relay, path: bytes):
    relay.needs_daemon()
    unasked = sized(b"", b"408 Request Timeout", b"Connection: close")
    first = relay.case(sized(b"first"), 0.05, unasked)
    async with await relay.connect() as client:
        assert (await client.ask(request(first.on(path)))).data == b"first"
        await asyncio.sleep(0.12)
        assert (await client.ask(request(relay.case(sized(b"second")).on(path)))).data == b"second"


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
@pytest.mark.parametrize("announcement", [b"Connection: close", b"Connection: x-y, Close"])
async def test_a_connection_that_upstream_said_it_would_close_is_not_used(
    relay: Relay, announcement: bytes, path: bytes
):
    relay.needs_daemon()
    first = relay.case(sized(b"first", b"200 OK", announcement))
    second = relay.case(sized(b"second"))
    async with await relay.connect() as client:
        assert (await client.ask(request(first.on(path)))).data == b"first"
        assert (await client.ask(request(second.on(path)))).data == b"second"
    assert second.requests[0].connection != first.requests[0].connection


async def test_idle_connections_are_reused_and_dropped_after_their_time(relays: Relays):
    relay = await relays.make(upstream__keepalive_ms=1000)
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    async with await relay.connect() as client:
        for pause in (0.0, 0.1, 1.3):
            await asyncio.sleep(pause)
            await client.ask(request(case.on(ROUTED)))
    first, second, third = (seen.connection for seen in case.requests)
    assert first == second != third


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
async def test_a_connection_that_fell_silent_is_bounded_by_the_idle_limit_and_then_left(relays: Relays, path: bytes):
    relay = await relays.make(stall__idle_timeout_ms=1500)
    relay.needs_daemon()
    first = relay.case(sized(b"first"), "deaf", 60.0)
    case = relay.case(sized(b"ok"))
    async with await relay.connect() as client:
        assert (await client.ask(request(first.on(path)))).data == b"first"
        await asyncio.sleep(0.1)
        reply = await client.ask(request(case.on(path)))
        assert (reply.status, reply.one(b"content-type")) == (504, b"application/json")
        assert (await client.ask(request(case.on(path)))).data == b"ok"


async def test_our_own_listener_keeps_an_idle_client_connection(all_relays: Relays):
    async def idle(relay: Relay, gap: float) -> None:
        case = relay.case(sized(b"ok"))
        async with await relay.connect() as client:
            assert (await client.ask(request(case.on(ROUTED)))).status == 200
            await asyncio.sleep(gap)
            if client.wire.gone_at is None:
                assert (await client.ask(request(case.on(ROUTED)))).status == 200
            else:
                assert not client.wire.was_reset

    async with asyncio.TaskGroup() as group:
        for combination in CROSSED:
            relay = await all_relays.get(*combination)
            for gap in (4.0, 5.0, 11.0):
                group.create_task(idle(relay, gap))


@pytest.mark.slow
async def test_our_own_listener_and_clients_that_idle_for_over_a_minute(all_relays: Relays):
    relay = await all_relays.get("uvloop", "https")
    case = relay.case(sized(b"ok"))

    async def idle(gap: float) -> None:
        async with await relay.connect() as client:
            assert (await client.ask(request(case.on(ROUTED)))).status == 200
            await asyncio.sleep(gap)
            if client.wire.gone_at is None:
                assert (await client.ask(request(case.on(ROUTED)))).status == 200
            else:
                assert not client.wire.was_reset

    await asyncio.gather(*[idle(gap) for gap in (15.0, 30.0, 58.0, 60.0, 65.0, 70.0, 75.0, 76.0)])
