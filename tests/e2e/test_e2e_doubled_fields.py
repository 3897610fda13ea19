"""Fields that may come once and come twice: they are the gateway's to judge, but for the host."""

import json

import pytest

from tests.fakes.client import request
from tests.fakes.relay import CROSSED, Relay
from tests.fakes.upstream import UNROUTED, sized

ONCE = [b"User-Agent", b"Content-Type", b"Content-Location", b"Content-Range", b"ETag", b"Max-Forwards", b"Server"]


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
@pytest.mark.parametrize("name", ONCE)
async def test_a_field_that_comes_twice_is_passed_on_twice(relay: Relay, name: bytes):
    """Both values, in their order."""
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    assert (await relay.ask(case.on(UNROUTED), fields=[(name, b"1"), (name, b"2")])).status == 200
    assert case.requests[0].head.all(name.lower())[-2:] == [b"1", b"2"]


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
async def test_two_hosts_are_refused(relay: Relay):
    """With a 400 in JSON; nothing goes upstream (RFC 9112, section 3.2)."""
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    async with await relay.connect() as client:
        await client.send(request(case.on(UNROUTED), fields=[(b"Host", b"127.0.0.1")]))
        reply = await client.reply()
    assert (reply.status, json.loads(reply.data)["error"]["code"]) == (400, "bad_request")
    assert not case.requests
