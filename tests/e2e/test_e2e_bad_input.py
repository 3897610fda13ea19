"""Bad input and bad luck: what a client or an upstream gets wrong is passed on, judged and logged, never made worse."""

import asyncio
import gzip
import json

import pytest

from tests.fakes.client import JSON, request
from tests.fakes.relay import CROSSED, Relay, Relays
from tests.fakes.upstream import ROUTED, sized

H = b"x-opencode-session"

BODIES = [
    pytest.param(b"", id="empty"),
    pytest.param(b"not json", id="no-json"),
    pytest.param(b"[]", id="a-list"),
    pytest.param(b"null", id="null"),
    pytest.param(b'"model"', id="a-string"),
    pytest.param(b'{"messages":[]}', id="no-model"),
    pytest.param(b'{"model":7,"stream":"yes"}', id="model-no-string"),
    pytest.param(b'{"model":"","messages":"x"}', id="empty-model"),
    pytest.param(b'{"model":"m","messages":[null,7,{"role":[]}],"metadata":[],"tools":7}', id="wrong-types"),
    pytest.param(b'{"model":"m"', id="cut-off"),
    pytest.param(b'{"model":"\xff\xfe"}', id="no-utf8"),
    pytest.param(b'{"model":"\\ud800"}', id="lone-surrogate"),
    pytest.param(b"\xef\xbb\xbf" + JSON, id="bom"),
    pytest.param(b"[" * 100_000, id="deep"),
    pytest.param(b'{"model":"m","x":' + b"[" * 5000 + b"]" * 5000 + b"}", id="deep-but-whole"),
    pytest.param(b'{"model":"m","n":' + b"9" * 10_000 + b"}", id="huge-number"),
    pytest.param(b'{"model":"' + b"m" * 100_000 + b'"}', id="long-model"),
    pytest.param(b'{"model":"m\\u0000\\r\\nX: y"}', id="control-characters-in-model"),
    pytest.param(b"x" * 5_000_000, id="over-4-MiB"),
    pytest.param(b'{"model":"m","pad":"' + b"x" * 5_000_000 + b'"}', id="json-over-4-MiB"),
    pytest.param(b"\x00" * 1000, id="zeros"),
]
IDS = [
    pytest.param(b"with\ttab", id="tab"),
    pytest.param(b"v" * 257, id="257"),
    pytest.param(b"v" * 60_000, id="60000"),
    pytest.param(b"caf\xe9\x80\xff", id="not-ascii"),
    pytest.param(b"", id="empty"),
    pytest.param(b" ", id="blank"),
    pytest.param(b"../../etc/passwd", id="a-path"),
    pytest.param(b"a::b::c", id="colons"),
    pytest.param(b'{"a":1}', id="json"),
    pytest.param(b"__proto__", id="proto"),
]


@pytest.mark.parametrize("body", BODIES)
async def test_a_body_that_cannot_be_read_is_passed_on_untouched_on_one_natural_id(relay: Relay, body: bytes):
    case = relay.case(sized(b"ok"))
    session = b"bad-body-session-value"
    assert (await relay.ask(case.on(ROUTED), body=body, session=session)).data == b"ok"
    assert case.requests[0].data == body or pytest.fail("not the same bytes")
    assert case.requests[0].head.all(H) == [session]


@pytest.mark.parametrize("coding", [b"gzip", b"zstd", b"nonsense"])
async def test_a_compressed_body_goes_on_the_natural_id(relay: Relay, coding: bytes):
    case = relay.case(sized(b"ok"))
    body = gzip.compress(JSON)
    fields = [(b"Content-Encoding", coding)]
    reply = await relay.ask(case.on(ROUTED), body=body, fields=fields, session=b"compressed-session")
    assert reply.data == b"ok"
    assert case.requests[0].data == body
    assert case.requests[0].head.all(H) == [b"compressed-session"]


@pytest.mark.parametrize("value", IDS)
async def test_an_odd_session_id_never_stops_a_request(relay: Relay, value: bytes):
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    for _ in range(2):
        reply = await relay.ask(case.on(ROUTED), fields=[(b"x-opencode-session", value)])
        assert reply.data == b"ok"
    sent = [seen.head.all(H) for seen in case.requests]
    assert all(len(values) == 1 and len(values[0]) >= 1 for values in sent)


@pytest.mark.parametrize("name", [b"%20", b"a%2Fb", b"%ff%00", b"x" * 5000, "北京".encode(), b"..", b"."])
async def test_an_odd_name_of_a_conversation_never_stops_a_request(relay: Relay, name: bytes):
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    reply = await relay.ask(b"/s/" + name + case.on(ROUTED))
    if reply.status == 400 and max(name) > 127:
        return
    assert (reply.status, case.requests[0].target) == (200, case.on(ROUTED))


GARBAGE = [
    b"\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 80,
    b"SSH-2.0-OpenSSH\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: abc\r\n\r\n",
    b"POST /x HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",
    b"POST /x HTTP/1.1\r\nHost: localhost\r\n folded: x\r\n\r\n",
    b"POST /x HTTP/1.1\r\nHost: localhost\r\nX-\x00: y\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"G\x00T / HTTP/1.1\r\n\r\n",
]


@pytest.mark.parametrize("raw", GARBAGE, ids=range(len(GARBAGE)))
async def test_garbage_at_the_door_is_answered_in_json_or_closed(relay: Relay, raw: bytes):
    relay.needs_daemon()
    opened = relay.upstream.opened
    async with await relay.connect() as client:
        await client.send(raw)
        client.wire.half_close()
        await client.wire.gone(2)
        if client.wire.data:
            reply = await client.reply()
            assert 400 <= reply.status < 500
            assert reply.one(b"content-type") == b"application/json"
            assert json.loads(reply.data)["error"]["code"]
    assert relay.upstream.opened == opened
    assert (await relay.ask(relay.case(sized(b"ok")).on(ROUTED))).data == b"ok"


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
async def test_clients_that_connect_and_say_nothing_or_half_a_head_cost_nothing(relay: Relay):
    relay.needs_daemon()
    clients = [await relay.connect() for _ in range(60)]
    for client in clients[::2]:
        await client.send(b"POST /zen/go/v1/chat/completions HTTP/1.1\r\nHost: loc")
    assert (await relay.ask(relay.case(sized(b"ok")).on(ROUTED))).data == b"ok"
    for number, client in enumerate(clients):
        client.wire.rst() if number % 3 else client.wire.cut()
    await asyncio.sleep(0.1)


async def test_without_a_credential_there_are_no_probes_and_status_says_why(relays: Relays):
    relay = await relays.make(
        probe__enabled=True, probe__min_interval_ms=0, pool__refresh_interval_ms=300, pool__refill_delay_ms=50
    )
    relay.needs_daemon()
    for number in range(4):
        reply = await relay.ask(relay.case(sized(b"ok")).on(ROUTED), session=b"no-credential-%d" % number)
        assert reply.one(b"x-ocpool-route") == b"natural"
    await asyncio.sleep(1)
    assert relay.upstream.strays == []
    status = (await relay.ask(b"/-/status", "GET", framing="none")).data.lower()
    assert b"credential" in status or b"key" in status


async def test_a_200_with_an_error_inside_is_relayed_as_it_is_and_logged(relays: Relays):
    relay = await relays.make()
    relay.needs_daemon()
    body = b'{"error":{"type":"server_error","message":"[502] Upstream error from Nvidia"}}'
    async with await relay.connect() as client:
        case = relay.case(sized(body, b"200 OK", b"Content-Type: application/json"))
        reply = await client.ask(request(case.on(ROUTED), session=b"error-inside-a-200"))
    assert (reply.status, reply.data) == (200, body)
    event = await relay.daemon.event("request")
    assert event["status"] == 200
