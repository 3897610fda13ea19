"""Rule 15: exactly one session field upstream, with the value decided for this conversation, at any concurrency."""

import asyncio
import json
import random

import pytest

from tests.fakes.relay import CROSSED, Relay, Relays
from tests.fakes.upstream import ROUTED, Exchange, sized

H = b"x-opencode-session"
SPELLINGS = [
    b"x-opencode-session",
    b"X-OpenCode-Session",
    b"X-OPENCODE-SESSION",
    b"x-opencode-session-id",
    b"x-session-affinity",
    b"X-Session-Id",
    b"session_id",
    b"session-id",
    b"x-claude-code-session-id",
    b"x-deepseek-harness-session-id",
]
KNOWN = {name.lower() for name in SPELLINGS}


def sessions(exchange: Exchange) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in exchange.head.fields if name.lower() in KNOWN]


@pytest.mark.parametrize("name", SPELLINGS)
async def test_any_spelling_becomes_the_one_field(relay: Relay, name: bytes):
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    value = b"value-of-" + name.lower() + b"-" + relay.loop.encode() + relay.upstream.scheme.encode()
    await relay.ask(case.on(ROUTED), fields=[(name, value)])
    assert [(key.lower(), sent) for key, sent in sessions(case.requests[0])] == [(H, value)]


@pytest.mark.parametrize("order", range(6))
async def test_of_many_session_fields_one_is_left_and_the_values_of_the_others_are_gone(relay: Relay, order: int):
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    fields = [(name, b"0123456789-abcdef-%d-%d" % (order, n)) for n, name in enumerate(SPELLINGS)]
    random.Random(order).shuffle(fields)
    echoes = [(b"X-Client-Request-Id", value) for _, value in fields[:4]]
    await relay.ask(case.on(ROUTED), fields=[*fields, *echoes, (b"X-End", b"keep")])
    ((name, value),) = sessions(case.requests[0])
    assert name.lower() == H
    raw = case.requests[0].head.raw
    assert raw.count(value) <= 2
    assert not [other for _, other in fields if other != value and other in raw]
    assert case.requests[0].head.all(b"x-end") == [b"keep"]


@pytest.mark.parametrize("name", [b"Authorization", b"Content-Type", b"X-Api-Key"])
async def test_credentials_and_framing_are_never_removed_for_their_value(relay: Relay, name: bytes):
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    value = b"the-same-value-in-two-fields"
    await relay.ask(
        case.on(ROUTED), fields=[(b"session_id", value), (b"x-opencode-session", b"another-value-xyz"), (name, value)]
    )
    assert case.requests[0].head.all(name) == [value]


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
async def test_three_hundred_requests_of_a_hundred_sessions_keep_their_own(relay: Relay):
    numbers = random.Random(15)

    async def echo(exchange: Exchange) -> None:
        await exchange.read()
        await asyncio.sleep(numbers.uniform(0, 0.05))
        await exchange.send(sized(b"|".join(exchange.head.all(H))))

    case = relay.case(echo)
    names = [b"session-%03d-of-a-hundred" % (n % 100) for n in range(300)]
    numbers.shuffle(names)
    replies = await asyncio.gather(*[relay.ask(case.on(ROUTED), session=name) for name in names])
    assert [reply.data for reply in replies] == names
    labels = {}
    for name, reply in zip(names, replies, strict=True):
        labels.setdefault(name, set()).add(reply.one(b"x-ocpool-conversation"))
    assert all(len(label) == 1 for label in labels.values())
    if relay._daemon is not None:
        assert len({label for value in labels.values() for label in value}) == 100


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
async def test_ten_first_requests_of_one_conversation_at_once_go_on_one_id(relay: Relay):
    relay.needs_daemon()
    case = relay.case(0.05, sized(b"ok"))
    fields = [(b"x-ocpool-conversation", b"one talk")]
    await asyncio.gather(*[relay.ask(case.on(ROUTED), fields=fields) for _ in range(10)])
    assert len({seen.head.one(H) for seen in case.requests}) == 1


async def _answer_probes(exchange: Exchange) -> None:
    await exchange.read()
    body = json.dumps({"id": "x", "choices": [{"message": {"content": "OK"}}], "usage": {"total_tokens": 2}}).encode()
    await exchange.send(sized(body, b"200 OK", b"Content-Type: application/json", b"Server-Timing: upstream;dur=90"))


async def test_on_a_spare_nothing_of_the_clients_value_is_left(relays: Relays):
    relay = await relays.make(
        probe__enabled=True, probe__min_interval_ms=0, pool__refill_delay_ms=50, pool__refresh_interval_ms=1000
    )
    relay.needs_daemon()
    relay.upstream.stray_script = _answer_probes
    ok = sized(b'{"choices":[]}', b"200 OK", b"Server-Timing: upstream;dur=80", b"Content-Type: application/json")
    key = [(b"Authorization", b"Bearer sk-one")]
    taken: dict[bytes, bytes] = {}
    for number in range(40):
        case = relay.case(ok)
        own = b"the-clients-own-value-%03d" % number
        fields = [*key, (b"session_id", own), (b"X-Client-Request-Id", own), (b"X-Trace", b"mine")]
        reply = await relay.ask(case.on(ROUTED), fields=fields, session=own)
        (session,) = sessions(case.requests[0])
        assert session[0].lower() == H
        if reply.one(b"x-ocpool-route") == b"spare":
            assert own not in case.requests[0].head.raw
            assert case.requests[0].head.all(b"x-trace") == [b"mine"]
            assert session[1] not in taken.values()
            taken[own] = session[1]
            if len(taken) == 3:
                break
        await asyncio.sleep(0.2)
    assert taken, "no spare was ever used"
    for own, routed in taken.items():
        case = relay.case(ok)
        await relay.ask(case.on(ROUTED), fields=key, session=own)
        assert case.requests[0].head.all(H) == [routed], "a conversation keeps its id"
    assert {seen.head.one(H) for seen in relay.upstream.strays}.isdisjoint({b"", None})
