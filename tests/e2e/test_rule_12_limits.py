"""Rule 12: limits belong to the gateway; past our own, generous ones the answer is 413 or 431 in JSON."""

import json

import pytest

from tests.fakes.client import END, chunk, request
from tests.fakes.relay import CROSSED, Relay, Relays
from tests.fakes.upstream import PLAIN, ROUTED, UNROUTED, sized

CANARY = b"canary-5f2c"
PATHS = [ROUTED, UNROUTED, PLAIN]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("size", [9_000, 60_000, 64_000])
async def test_a_long_request_field_passes(relay: Relay, size: int, path: bytes):
    case = relay.case(sized(b"ok"))
    reply = await relay.ask(case.on(path), fields=[(b"X-Long", b"v" * size)])
    assert reply.status == 200
    assert case.requests[0].head.one(b"x-long") == b"v" * size


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("size", [9_000, 60_000, 64_000])
async def test_a_long_target_passes(relay: Relay, size: int, path: bytes):
    case = relay.case(sized(b"ok"))
    target = case.on(path) + b"&q=" + b"v" * (size - 100)
    assert (await relay.ask(target)).status == 200
    assert case.requests[0].target == target


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("count", [150, 490])
async def test_many_request_fields_pass(relay: Relay, count: int, path: bytes):
    case = relay.case(sized(b"ok"))
    fields = [(b"X-%d" % n, b"%d" % n) for n in range(count)]
    assert (await relay.ask(case.on(path), fields=fields)).status == 200
    assert [field for field in case.requests[0].head.fields if field in fields] == fields


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("name", "size"), [(b"X-Long", 9_000), (b"X-Long", 64_000), (b"Server-Timing", 12_000)])
async def test_a_long_response_field_passes(relay: Relay, name: bytes, size: int, path: bytes):
    value = b'upstream;dur=12;desc="' + b"v" * (size - 30) + b'"'
    case = relay.case(sized(b"ok", b"200 OK", name + b": " + value))
    reply = await relay.ask(case.on(path))
    assert (reply.data, reply.one(name)) == (b"ok", value)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("count", [150, 500])
async def test_many_response_fields_pass(relay: Relay, count: int, path: bytes):
    lines = [b"X-%d: %d" % (n, n) for n in range(count)]
    reply = await relay.ask(relay.case(sized(b"ok", b"200 OK", *lines)).on(path))
    assert [
        b": ".join(field)
        for field in reply.head.fields
        if field[0].lower().startswith(b"x-") and b"ocpool" not in field[0]
    ] == lines


async def _refused(relay: Relay, raw: bytes, *statuses: int) -> None:
    before = relay.upstream.opened
    async with await relay.connect() as client:
        await client.send(raw)
        reply = await client.reply()
    assert reply.status in statuses
    assert reply.one(b"content-type") == b"application/json"
    error = json.loads(reply.data)["error"]
    assert error["message"]
    assert error["code"]
    assert CANARY not in reply.data
    assert CANARY.decode() not in relay.daemon.log()
    assert relay.upstream.opened == before


@pytest.mark.parametrize("path", PATHS)
async def test_a_field_past_our_limit_is_431_in_json_and_is_echoed_nowhere(relay: Relay, path: bytes):
    relay.needs_daemon()
    fields = [(b"Authorization", b"Bearer " + CANARY + b"k" * 200_000)]
    await _refused(relay, request(path, fields=fields), 431)


@pytest.mark.parametrize("path", PATHS)
async def test_too_many_fields_are_431_in_json(relay: Relay, path: bytes):
    relay.needs_daemon()
    await _refused(relay, request(path, fields=[(b"X-%d" % n, CANARY) for n in range(3000)]), 431)


@pytest.mark.parametrize("path", PATHS)
async def test_a_target_past_our_limit_is_refused_in_json(relay: Relay, path: bytes):
    relay.needs_daemon()
    await _refused(relay, request(path + b"?api_key=" + CANARY + b"k" * 200_000), 414, 431)


async def test_a_routed_body_past_our_limit_is_413_in_json_before_it_is_sent(relay: Relay):
    relay.needs_daemon()
    head = request(ROUTED, framing="none", fields=[(b"Content-Length", b"134217729")])
    await _refused(relay, head, 413)


@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_the_limit_of_a_routed_body_is_a_setting(relays: Relays, framing: str, relay: Relay):
    private = await relays.make(relay.loop, listen__max_body_bytes=1_048_576)
    private.needs_daemon()
    case = private.case(sized(b"ok"))
    assert (await private.ask(case.on(ROUTED), body=b"x" * 1_048_576, framing=framing)).status == 200
    async with await private.connect() as client:
        await client.send(request(case.on(ROUTED), b"x" * 1_048_577, framing=framing))
        reply = await client.reply()
    assert (reply.status, reply.one(b"content-type")) == (413, b"application/json")
    assert json.loads(reply.data)["error"]["code"]
    assert len(case.requests) == 1
    assert (await private.ask(case.on(UNROUTED), body=b"x" * 3_000_000, framing=framing)).status == 200


test_the_limit_of_a_routed_body_is_a_setting = pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)(
    test_the_limit_of_a_routed_body_is_a_setting
)


@pytest.mark.parametrize("path", PATHS)
async def test_a_response_head_past_our_limit_is_a_502_in_json(relay: Relay, path: bytes):
    relay.needs_daemon()
    case = relay.case(sized(b"ok", b"200 OK", *[b"X-%d: " % n + b"v" * 10_000 for n in range(60)]))
    reply = await relay.ask(case.on(path))
    assert (reply.status, reply.one(b"content-type")) == (502, b"application/json")
    assert (await relay.ask(relay.case(sized(b"next")).on(path))).data == b"next"


@pytest.mark.parametrize("path", PATHS)
async def test_a_head_that_comes_in_tiny_pieces_is_read(relay: Relay, path: bytes):
    raw = sized(b"ok", b"200 OK", b"X-A: 1")
    case = relay.case(*[raw[at : at + 1] for at in range(len(raw))])
    assert (await relay.ask(case.on(path))).data == b"ok"
    case = relay.case(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", *[chunk(b"ab")[i : i + 1] for i in range(7)], END
    )
    assert (await relay.ask(case.on(path))).data == b"ab"
