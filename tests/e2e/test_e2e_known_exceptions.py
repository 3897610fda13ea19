"""What the server library refuses before ocpool sees it, beyond the exceptions that stand beside their rules."""

import json

import pytest

from tests.fakes.client import request
from tests.fakes.relay import CROSSED, Relay
from tests.fakes.upstream import UNROUTED, sized

ONCE = [b"User-Agent", b"Content-Type", b"Content-Location", b"Content-Range", b"ETag", b"Max-Forwards", b"Server"]


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
@pytest.mark.parametrize("name", ONCE)
async def test_a_field_that_may_come_once_is_refused_when_it_comes_twice(relay: Relay, name: bytes):
    """With a 400 in JSON; nothing goes upstream. Once, the same field passes."""
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    assert (await relay.ask(case.on(UNROUTED), fields=[(name, b"1")])).status == 200
    async with await relay.connect() as client:
        await client.send(request(case.on(UNROUTED), fields=[(name, b"1"), (name, b"2")]))
        reply = await client.reply()
    assert (reply.status, json.loads(reply.data)["error"]["code"]) == (400, "bad_request")
    assert len(case.requests) == 1
