"""Rule 2: the client gets the entity the upstream sent, and its coding is nobody's business but theirs."""

import gzip
import random
import zlib

import pytest

from tests.fakes.client import END, chunk, request
from tests.fakes.relay import ALL, CROSSED, Relay
from tests.fakes.upstream import PLAIN, ROUTED, SSE, UNROUTED, sized
from tests.fakes.watched import best_of

NOISE = random.Random(2).randbytes(66_000)
GZIP = gzip.compress(b'{"choices":[]}' * 100)

CODED = [
    pytest.param(b"gzip", GZIP, id="gzip"),
    pytest.param(b"br", b"\x8b\x02\x80" + NOISE[:500], id="br"),
    pytest.param(b"zstd", b"\x28\xb5\x2f\xfd" + NOISE[:900], id="zstd"),
    pytest.param(b"gzip, gzip", gzip.compress(GZIP), id="gzip-twice"),
    pytest.param(b"deflate", zlib.compress(NOISE), id="deflate"),
    pytest.param(b"x-nonsense", NOISE, id="nonsense"),
    pytest.param(b"gzip", b"this is no gzip at all", id="a-lie"),
]


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize(("coding", "body"), CODED)
async def test_a_coded_body_and_its_header_arrive_as_sent(
    relay: Relay, coding: bytes, body: bytes, framing: str, path: bytes
):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: " + coding + b"\r\n"
    parts = {
        "length": [head + b"Content-Length: %d\r\n\r\n" % len(body), body],
        "chunked": [head + b"Transfer-Encoding: chunked\r\n\r\n", chunk(body[:10]), chunk(body[10:]), END],
        "close": [head + b"Connection: close\r\n\r\n", body, "fin"],
    }[framing]
    case = relay.case(*parts)
    reply = await relay.ask(case.on(path), fields=[(b"Accept-Encoding", b"gzip")])
    assert reply.complete
    assert reply.data == body
    assert reply.all(b"content-encoding") == [coding]
    assert reply.body.framing == framing


@pytest.mark.parametrize("asked", [None, b"identity", b"gzip;q=0.5, br", b""])
@pytest.mark.parametrize("path", [ROUTED, PLAIN])
async def test_what_the_client_accepts_is_what_upstream_is_told(relay: Relay, asked: bytes | None, path: bytes):
    case = relay.case(sized(b"ok"))
    await relay.ask(case.on(path), fields=[] if asked is None else [(b"accept-encoding", asked)])
    assert case.requests[0].head.all(b"accept-encoding") == ([] if asked is None else [asked])


@pytest.mark.parametrize("relay", ALL, indirect=True, ids="-".join)
@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
async def test_compressed_events_are_forwarded_at_each_flush(relay: Relay, path: bytes):
    packer = zlib.compressobj(wbits=31)
    flushes = [packer.compress(b"data: %d\n\n" % n) + packer.flush(zlib.Z_SYNC_FLUSH) for n in range(5)]
    flushes[-1] += packer.flush()
    head = SSE.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
    script: list[object] = [head]
    for flush in flushes:
        script += [chunk(flush), 0.1]
    case = relay.case(*script, END)
    reply = await relay.ask(case.on(path))
    assert reply.data == b"".join(flushes)
    assert zlib.decompress(reply.data, wbits=31) == b"".join(b"data: %d\n\n" % n for n in range(5))


@best_of(3)
@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
async def test_each_flush_of_a_compressed_stream_is_at_the_client_within_50_ms(relay: Relay, path: bytes):
    marks = [b"%032d" % n for n in range(5)]
    head = SSE.replace(b"\r\n\r\n", b"\r\nContent-Encoding: br\r\n\r\n")
    script: list[object] = [head]
    for mark in marks:
        script += [chunk(mark), 0.06]
    case = relay.case(*script, END)
    async with await relay.connect() as client:
        reply = await client.ask(request(case.on(path)))
        sent = case.requests[0]
        late = [client.wire.when(client.wire.data.find(mark)) - sent.when(mark) for mark in marks]
    assert reply.complete
    assert max(late) < 0.05


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
async def test_letters_split_over_chunks_arrive_unbroken(relay: Relay, path: bytes):
    text = "data: 北京🌤\n\n".encode()
    case = relay.case(SSE, *[chunk(text[at : at + 1]) for at in range(len(text))], END)
    reply = await relay.ask(case.on(path))
    assert reply.data == text


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
async def test_a_line_of_16_megabytes_passes(relay: Relay, path: bytes):
    line = b"data: " + b"x" * 16_000_000 + b"\n\n"
    case = relay.case(SSE, chunk(line), END)
    reply = await relay.ask(case.on(path))
    assert reply.data == line


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
@pytest.mark.parametrize("stream", [b"true", b"false"])
@pytest.mark.parametrize("kind", [b"application/json", b"text/event-stream; charset=utf-8", b"text/html", b""])
async def test_nothing_depends_on_the_content_type_or_the_stream_flag(
    relay: Relay, kind: bytes, stream: bytes, path: bytes
):
    fields = [b"Content-Type: " + kind] if kind else []
    body = b'{"choices":[{"message":{"content":"x"}}]}'
    case = relay.case(sized(body, b"200 OK", *fields))
    asked = b'{"model":"m","stream":' + stream + b',"messages":[]}'
    reply = await relay.ask(case.on(path), body=asked)
    assert (reply.data, reply.all(b"content-type")) == (body, [kind] if kind else [])


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
async def test_chunk_extensions_do_not_harm_the_entity_and_trailers_arrive(relay: Relay, path: bytes):
    raw = b'5;a=b\r\nhello\r\n6;c="d"\r\n world\r\n0\r\nX-Sum: 1\r\n\r\n'
    case = relay.case(SSE, raw)
    async with await relay.connect() as client:
        reply = await client.ask(request(case.on(path)))
        again = await client.ask(request(relay.case(sized(b"next")).on(path)))
    assert (reply.data, reply.body.trailers) == (b"hello world", [(b"X-Sum", b"1")])
    assert again.data == b"next"


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
async def test_twenty_megabytes_arrive_whole(relay: Relay, framing: str, path: bytes):
    body = NOISE * 300
    head = b"HTTP/1.1 200 OK\r\n"
    parts = {
        "length": [head + b"Content-Length: %d\r\n\r\n" % len(body), body],
        "chunked": [head + b"Transfer-Encoding: chunked\r\n\r\n", chunk(body[:1000]), chunk(body[1000:]), END],
        "close": [head + b"Connection: close\r\n\r\n", body, "fin"],
    }[framing]
    reply = await relay.ask(relay.case(*parts).on(path), within=60)
    assert reply.complete
    assert len(reply.data) == len(body)
    assert reply.data == body or pytest.fail("not the same bytes")
