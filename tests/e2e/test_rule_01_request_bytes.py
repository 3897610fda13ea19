"""Rule 1: for any body, what the upstream reads is what the client sent, byte by byte."""

import asyncio
import gzip
import hashlib
import random

import pytest

from tests.fakes.client import END, chunk, request
from tests.fakes.relay import ALL, CROSSED, Relay
from tests.fakes.upstream import PLAIN, ROUTED, UNROUTED, sized

ODD = (
    b'{ "b":1.0,\t"a" : 1e5, "b": 2, "model":"m",\r\n "x":"\\u003c \\/ < \xf0\x9f\x8c\xa4 \\ud83c\\udf24", "n":-0.0,'
    b'"messages":[ ]}\n\n'
)
NOISE = random.Random(1).randbytes(66_000)

BODIES = [
    pytest.param(b"", b"", id="empty"),
    pytest.param(ODD, b"", id="odd-json"),
    pytest.param(b"not json {", b"", id="not-json"),
    pytest.param(b"\x28\xb5\x2f\xfd" + NOISE, b"zstd", id="zstd"),
    pytest.param(gzip.compress(ODD + NOISE[:200]), b"gzip", id="gzip-small"),
    pytest.param(gzip.compress(NOISE * 5), b"gzip", id="gzip-large"),
    pytest.param(NOISE, b"x-nonsense", id="nonsense"),
    pytest.param(b'{"model":"m","pad":"' + b"x" * 1_048_577 + b'"}', b"", id="past-1MiB"),
]


def same(a: bytes, b: bytes) -> bool:
    """Compare without a diff of megabytes."""
    return hashlib.sha256(a).digest() == hashlib.sha256(b).digest()


@pytest.mark.parametrize("path", [ROUTED, UNROUTED, PLAIN])
@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize(("body", "coding"), BODIES)
async def test_any_body_arrives_as_the_same_bytes(relay: Relay, body: bytes, coding: bytes, framing: str, path: bytes):
    case = relay.case(sized(b"ok"))
    fields = [(b"Content-Type", b"application/json")] + ([(b"Content-Encoding", coding)] if coding else [])
    reply = await relay.ask(case.on(path), body=body, fields=fields, framing=framing)
    (seen,) = case.requests
    assert (reply.status, reply.data) == (200, b"ok")
    assert same(seen.data, body)
    assert seen.head.all(b"content-encoding") == ([coding] if coding else [])
    if framing == "length":
        assert seen.head.one(b"content-length") == b"%d" % len(body)


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
@pytest.mark.parametrize(
    ("path", "size", "framing"),
    [
        (ROUTED, 100_000_000, "length"),
        (ROUTED, 20_000_000, "chunked"),
        (UNROUTED, 20_000_000, "length"),
        (UNROUTED, 100_000_000, "chunked"),
    ],
)
async def test_a_huge_body_arrives_whole(relay: Relay, path: bytes, size: int, framing: str):
    body = b'{"model":"m","stream":true,"pad":"' + NOISE.hex().encode() * (size // 132_000) + b'"}'
    case = relay.case(sized(b"ok"))
    async with await relay.connect() as client:
        head = request(case.on(path), body, framing="head")
        await client.send(head if framing == "length" else _chunked_head(case.on(path)))
        for at in range(0, len(body), 1_000_000):
            part = body[at : at + 1_000_000]
            await client.send(part if framing == "length" else chunk(part))
        if framing == "chunked":
            await client.send(END)
        reply = await client.reply(within=60)
    assert reply.status == 200
    assert same(bytes(case.requests[0].body.data), body)


def _chunked_head(target: bytes) -> bytes:
    return request(target, framing="none", fields=[(b"Transfer-Encoding", b"chunked")])


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
async def test_chunks_with_pauses_between_them_arrive_whole(relay: Relay, path: bytes):
    case = relay.case(sized(b"ok"))
    parts = [NOISE, ODD, NOISE[:50_000]]
    async with await relay.connect() as client:
        await client.send(_chunked_head(case.on(path)))
        for part in parts:
            await client.send(chunk(part))
            await asyncio.sleep(0.1)
        await client.send(END)
        assert (await client.reply()).status == 200
    assert same(case.requests[0].data, b"".join(parts))


async def test_an_upload_that_is_not_routed_starts_before_the_client_has_finished(relay: Relay):
    case = relay.case(sized(b"ok"))
    async with await relay.connect() as client:
        await client.send(_chunked_head(case.on(UNROUTED)))
        await client.send(chunk(NOISE))
        seen = await case.seen()
        await seen.wire.until(lambda: len(seen.wire.data) >= 66_000, 2, "the first chunk")
        await client.send(END)
        assert (await client.reply()).status == 200
    assert same(seen.data, NOISE)


@pytest.mark.parametrize("relay", ALL, indirect=True, ids="-".join)
async def test_many_requests_on_one_connection_keep_their_bodies_apart(relay: Relay):
    async def echo(exchange):
        await exchange.send(sized(await exchange.read()))

    case = relay.case(echo)
    numbers = random.Random(7)
    async with await relay.connect() as client:
        for index in range(40):
            body = numbers.randbytes(numbers.choice([0, 1, 100, 70_000]))
            path = (ROUTED, UNROUTED, PLAIN)[index % 3]
            reply = await client.ask(request(case.on(path), body, framing=("length", "chunked")[index % 2]))
            assert same(reply.data, body)
