"""Right after a start: conversations of the run before are recognised, and who names himself waits for nothing."""

import json

import pytest

from tests.fakes.relay import Relays
from tests.fakes.upstream import ROUTED, sized

ANSWER = {"role": "assistant", "content": "It splits an empty list in the second step, which nobody expected."}
ASKED = [{"role": "user", "content": "Please look at the parser and find out why it fails on empty input."}]
GOES_ON = [*ASKED, ANSWER, {"role": "user", "content": "Then mend it, and write a test that fails without it."}]


def body(messages):
    return json.dumps({"model": "m", "messages": messages}).encode()


def answer():
    whole = {"object": "chat.completion", "choices": [{"index": 0, "message": ANSWER, "finish_reason": "stop"}]}
    return sized(json.dumps(whole).encode(), b"200 OK", b"Content-Type: application/json")


async def told(relay, **parts):
    reply = await relay.ask(relay.case(answer()).on(ROUTED), **parts)
    assert reply.status == 200
    return reply.one(b"x-ocpool-conversation")


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
async def test_the_first_request_after_a_restart_goes_on_where_the_last_one_ended(relays: Relays, tmp_path, loop):
    """It has no id, so it is told by what it says, for which it waits; a named one beside it does not."""
    path = tmp_path / "state.json"
    labels = []
    for messages in (ASKED, GOES_ON):
        relay = await relays.make(loop, state__path=path)
        relay.needs_daemon()
        labels.append(await told(relay, body=body(messages)))
        assert await told(relay, session=b"a-conversation-with-a-name") not in {None, labels[0]}
        await relay.daemon.stop()
    assert labels[0] is not None
    assert labels[0] == labels[1]
