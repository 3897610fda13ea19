"""Rule 7: no request of a client ever becomes two at the upstream."""

import asyncio

import pytest

from tests.fakes.client import chunk, request
from tests.fakes.relay import CROSSED, Relay, Relays
from tests.fakes.upstream import PLAIN, ROUTED, SSE, UNROUTED, sized

FAULT = b'{"error":{"type":"server_error","message":"Upstream request failed"}}'
DEATHS = [
    pytest.param([0.1, "fin"], id="fin"),
    pytest.param([0.1, "rst"], id="rst"),
    pytest.param(["rst"], id="rst-at-once"),
    pytest.param([b"HTTP/1.1 200 OK\r\nContent-", 0.05, "fin"], id="half-a-head"),
    pytest.param([b"SSH-2.0-OpenSSH_9.6\r\n", "fin"], id="not-http"),
]
ANSWERS = [
    b"500 Oops",
    b"502 Bad Gateway",
    b"503 Unavailable",
    b"504 Timeout",
    b"429 Slow Down",
    b"529 Overloaded",
    b"400 Bad",
    b"408 Late",
]


@pytest.mark.parametrize("path", [ROUTED, UNROUTED, PLAIN])
@pytest.mark.parametrize("reused", [False, True], ids=["fresh", "reused"])
@pytest.mark.parametrize("death", DEATHS)
async def test_a_post_whose_upstream_dies_after_reading_it_is_not_sent_again(
    relay: Relay, death: list[object], reused: bool, path: bytes
):
    relay.needs_daemon()
    case = relay.case(*death)
    async with await relay.connect() as client:
        if reused:
            assert (await client.ask(request(relay.case(sized(b"warm")).on(path)))).status == 200
        reply = await client.ask(request(case.on(path)))
    assert reply.status in (502, 504)
    assert reply.one(b"content-type") == b"application/json"
    await asyncio.sleep(0.15)
    assert len(case.requests) == 1


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
@pytest.mark.parametrize("status", ANSWERS)
async def test_an_answer_of_any_kind_is_the_answer(relay: Relay, status: bytes, path: bytes):
    case = relay.case(sized(FAULT, status, b"Content-Type: application/json"))
    reply = await relay.ask(case.on(path))
    assert (reply.status, reply.data) == (int(status[:3]), FAULT)
    assert len(case.requests) == 1


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_other_methods_are_not_sent_again_either(relay: Relay, method: str):
    relay.needs_daemon()
    case = relay.case(0.05, "fin")
    async with await relay.connect() as client:
        await client.ask(request(relay.case(sized(b"warm")).on(PLAIN)))
        reply = await client.ask(request(case.on(PLAIN), method=method.encode()), method)
    assert reply.status in (502, 504)
    assert len(case.requests) == 1


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
@pytest.mark.parametrize("way", ["fin", "rst"])
async def test_a_stream_that_breaks_is_not_asked_for_again(relay: Relay, way: str, path: bytes):
    case = relay.case(SSE, chunk(b"data: 1\n\n"), 0.1, way)
    async with await relay.connect() as client:
        await client.send(request(case.on(path)))
        assert not (await client.rest(await client.head())).complete
    await asyncio.sleep(0.15)
    assert len(case.requests) == 1


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
async def test_a_hundred_dying_at_once_are_a_hundred_at_the_upstream(relay: Relay):
    relay.needs_daemon()
    case = relay.case(0.1, "rst")
    replies = await asyncio.gather(*[relay.ask(case.on(ROUTED), session=b"s%d" % n) for n in range(100)])
    assert {reply.status for reply in replies} <= {502, 504}
    await asyncio.sleep(0.2)
    assert len(case.requests) == 100


async def test_a_connection_that_could_not_be_made_is_tried_once_the_upstream_is_back(relays: Relays):
    relay = await relays.make()
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    port = relay.upstream.port
    await relay.upstream.stop()
    reply = await relay.ask(case.on(ROUTED))
    assert reply.status == 502
    await relay.upstream.start(port=port)
    assert (await relay.ask(case.on(ROUTED))).data == b"ok"
    assert len(case.requests) == 1
