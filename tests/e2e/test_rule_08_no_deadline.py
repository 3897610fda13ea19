"""Rule 8: the proxy has no deadline of its own; one that the user set ends in an abort or a 504, never in an end."""

import asyncio

import pytest

from tests.fakes.client import END, chunk, request
from tests.fakes.relay import ALL, CROSSED, Relay, Relays
from tests.fakes.upstream import ROUTED, SSE, UNROUTED, Exchange, sized

EVENT = chunk(b"data: 1\n\n")


async def _silent(relay: Relay, path: bytes, *script: object, complete: bytes) -> None:
    reply = await relay.ask(relay.case(*script).on(path), within=90, session=b"silent")
    assert (reply.complete, reply.data) == (True, complete)


async def _deaf(relay: Relay) -> None:
    """The upstream reads nothing of an upload for over a minute, which is its right."""
    relay.needs_daemon()
    case = relay.case("deaf", 66.0, _read_on, read=False)
    body = b"x" * 30_000_000
    reply = await relay.ask(case.on(UNROUTED), body=body, within=90)
    assert (reply.status, len(case.requests[0].data)) == (200, len(body))


async def _read_on(exchange: Exchange) -> None:
    exchange.wire.read_on()
    await exchange.read()
    await exchange.send(sized(b"ok"))


async def test_a_minute_of_silence_in_any_phase_is_none_of_our_business(all_relays: Relays):
    async with asyncio.TaskGroup() as group:
        for combination in ALL:
            relay = await all_relays.get(*combination)
            for path in (ROUTED, UNROUTED):
                group.create_task(_silent(relay, path, 60.0, sized(b"late"), complete=b"late"))
                group.create_task(_silent(relay, path, SSE, 60.0, EVENT, END, complete=b"data: 1\n\n"))
                group.create_task(_silent(relay, path, SSE, EVENT, 60.0, END, complete=b"data: 1\n\n"))


async def test_a_client_may_take_its_time_to_send_its_request(all_relays: Relays):
    async def slow(relay: Relay, path: bytes) -> None:
        case = relay.case(sized(b"ok"))
        async with await relay.connect() as client:
            raw = request(case.on(path), b"x" * 40)
            for at in range(0, len(raw), len(raw) // 4 + 1):
                await client.send(raw[at : at + len(raw) // 4 + 1])
                await asyncio.sleep(2.5)
            assert (await client.reply()).data == b"ok"

    async with asyncio.TaskGroup() as group:
        for combination in CROSSED:
            relay = await all_relays.get(*combination)
            for path in (ROUTED, UNROUTED):
                group.create_task(slow(relay, path))


@pytest.mark.slow
@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
async def test_an_upstream_may_read_nothing_of_an_upload_for_over_a_minute(relay: Relay):
    await _deaf(relay)


@pytest.mark.slow
@pytest.mark.timeout(4000)
async def test_a_byte_every_five_minutes_for_an_hour_completes(all_relays: Relays):
    async with asyncio.TaskGroup() as group:
        for combination in ALL:
            relay = await all_relays.get(*combination)
            script: list[object] = [SSE]
            for _ in range(12):
                script += [300.0, chunk(b"x")]
            case = relay.case(*script, END)
            group.create_task(_whole(relay, case.on(ROUTED), b"x" * 12))


async def _whole(relay: Relay, target: bytes, body: bytes) -> None:
    reply = await relay.ask(target, within=3900)
    assert (reply.complete, reply.data) == (True, body)


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_an_event_each_20_seconds_for_320_seconds_completes(all_relays: Relays):
    async with asyncio.TaskGroup() as group:
        for combination in ALL:
            relay = await all_relays.get(*combination)
            script: list[object] = [SSE]
            for _ in range(16):
                script += [20.0, EVENT]
            case = relay.case(*script, END)
            group.create_task(_silent(relay, ROUTED, *script, END, complete=b"data: 1\n\n" * 16))
            assert case


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
async def test_an_idle_limit_that_the_user_set_aborts_a_stream_without_an_end(relays: Relays, path: bytes):
    relay = await relays.make(stall__idle_timeout_ms=1000)
    relay.needs_daemon()
    case = relay.case(SSE, EVENT, 0.6, EVENT, "hold")
    async with await relay.connect() as client:
        await client.send(request(case.on(path)))
        reply = await client.rest(await client.head(), within=5)
    assert (reply.complete, reply.raw) == (False, EVENT * 2)
    await case.requests[0].wire.gone(1)


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
async def test_an_idle_limit_before_the_head_is_a_504_in_json(relays: Relays, path: bytes):
    relay = await relays.make(stall__idle_timeout_ms=1000)
    relay.needs_daemon()
    case = relay.case("hold")
    reply = await relay.ask(case.on(path), within=5)
    assert (reply.status, reply.one(b"content-type")) == (504, b"application/json")
    await case.requests[0].wire.gone(1)
    assert len(case.requests) == 1


async def test_a_total_limit_that_the_user_set_aborts_a_busy_stream(relays: Relays):
    relay = await relays.make(stall__total_timeout_ms=1500)
    relay.needs_daemon()
    script: list[object] = [SSE]
    for _ in range(40):
        script += [EVENT, 0.1]
    async with await relay.connect() as client:
        await client.send(request(relay.case(*script, END).on(ROUTED)))
        reply = await client.rest(await client.head(), within=5)
    assert not reply.complete
    assert 8 <= reply.raw.count(EVENT) <= 20
