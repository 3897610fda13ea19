"""Thousands of random exchanges: framing, sizes, splits, codings, statuses and fields, compared at both ends."""

import asyncio
import random
from dataclasses import dataclass, field

import pytest

from tests.fakes.client import END, Client, Reply, chunk
from tests.fakes.http1 import Fields
from tests.fakes.relay import ALL, DIRECT, Relay
from tests.fakes.upstream import PLAIN, ROUTED, UNROUTED, Exchange

COUNT, AT_ONCE = 640, 8  # for each of the four combinations of loop and scheme
SIZES = [0, 0, 1, 2, 15, 100, 1000, 4095, 4096, 4097, 16384, 65535, 65536, 65537, 131072, 400_000]
STATUSES = [
    b"200 OK",
    b"200 ",
    b"201 Created",
    b"202 Fine by me",
    b"204 No Content",
    b"206 Partial",
    b"304 Not Modified",
    b"301 Moved",
    b"400 Bad Request",
    b"401 Who",
    b"403 Forbidden",
    b"404 Nope",
    b"422 Un",
    b"429 Slow Down",
    b"500 Oops",
    b"503 Busy",
    b"529 Overloaded",
]
CODINGS = [b"", b"", b"gzip", b"br", b"zstd", b"x-nonsense", b"gzip, gzip"]
TOKEN = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~!#$%&'*+^`|"
VISIBLE = bytes(range(0x21, 0x7F)) + bytes(range(0x80, 0x100))


@dataclass
class Shape:
    """One exchange, drawn from a seed."""

    method: bytes
    path: bytes
    framing: str
    fields: Fields
    body: bytes
    status: bytes
    reply_framing: str
    reply_fields: Fields
    reply_body: bytes
    trailers: Fields = field(default_factory=list)


def noise(numbers: random.Random, size: int) -> bytes:
    """Random bytes, among them such as look like framing."""
    kind = numbers.randrange(4)
    if kind == 0:
        return (b"0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" * (size // 40 + 1))[:size]
    if kind == 1:
        return ('data: {"x":"北京🌤"}\r\n\r\n: ping\n\n'.encode() * (size // 30 + 1))[:size]
    return numbers.randbytes(size)


def draw_fields(numbers: random.Random, prefix: bytes) -> Fields:
    fields: Fields = []
    for _ in range(numbers.choice([0, 1, 3, 8, 40])):
        name = prefix + bytes(numbers.choices(TOKEN, k=numbers.randrange(1, 20)))
        value = bytes(numbers.choices(VISIBLE + b" \t", k=numbers.choice([0, 1, 10, 60, 3000]))).strip(b" \t")
        fields += [(name, value)] * numbers.choice([1, 1, 1, 2])
    for known in ((b"Accept", b"*/*"), (b"User-Agent", b"x/1"), (b"cookie", b"a=b"), (b"Authorization", b"Bearer k")):
        if numbers.random() < 0.4 and prefix == b"x-":
            fields.insert(numbers.randrange(len(fields) + 1), known)
    for known in (
        (b"Server", b"s"),
        (b"Date", b"d"),
        (b"Set-Cookie", b"a=b"),
        (b"Set-Cookie", b"c=d"),
        (b"ETag", b'"e"'),
    ):
        if numbers.random() < 0.4 and prefix == b"y-":
            fields.insert(numbers.randrange(len(fields) + 1), known)
    coding = numbers.choice(CODINGS)
    return fields + ([(b"Content-Encoding", coding)] if coding else [])


def draw(numbers: random.Random, index: int) -> Shape:
    method = numbers.choices([b"POST", b"GET", b"HEAD", b"PUT", b"DELETE"], [12, 2, 1, 1, 1])[0]
    path = numbers.choice([ROUTED, ROUTED, UNROUTED, PLAIN])
    framing = numbers.choice(["length", "chunked"]) if method in (b"POST", b"PUT") else "none"
    body = noise(numbers, numbers.choice(SIZES)) if framing != "none" else b""
    if numbers.random() < 0.3 and framing != "none":
        body = b'{"model":"m%d","stream":true,"messages":[{"role":"user","content":"x"}]}' % (
            index % 3
        ) + b" " * numbers.randrange(9)
    status = numbers.choice(STATUSES)
    bodyless = method == b"HEAD" or status[:3] in (b"204", b"304")
    reply_framing = "none" if bodyless else numbers.choice(["length", "length", "chunked", "chunked", "close"])
    reply_body = b"" if bodyless else noise(numbers, numbers.choice(SIZES))
    trailers = draw_fields(numbers, b"z-")[:2] if reply_framing == "chunked" and numbers.random() < 0.1 else []
    return Shape(
        method, path + b"?%d" % index, framing, draw_fields(numbers, b"x-"), body,
        status, reply_framing, draw_fields(numbers, b"y-"), reply_body, trailers,
    )  # fmt: skip


def lines(fields: Fields) -> bytes:
    return b"".join(name + b": " + value + b"\r\n" for name, value in fields)


def cut(numbers: random.Random, body: bytes) -> list[bytes]:
    """A body in pieces of random sizes."""
    pieces = []
    while body:
        size = numbers.choice([1, 2, 7, 100, 5000, 70_000, len(body)])
        pieces.append(body[:size])
        body = body[size:]
        if len(pieces) > 12:
            size = len(body)
            pieces += [body] if body else []
            break
    return pieces


def framed(numbers: random.Random, head: bytes, fields: Fields, framing: str, body: bytes, trailers: Fields) -> bytes:
    """A message, its framing field at a random place among the others."""
    frame = {"length": [(b"Content-Length", b"%d" % len(body))], "chunked": [(b"Transfer-Encoding", b"chunked")]}
    where = numbers.randrange(len(fields) + 1)
    raw = head + b"\r\n" + lines(fields[:where] + frame.get(framing, []) + fields[where:]) + b"\r\n"
    if framing != "chunked":
        return raw + body
    end = b"0\r\n" + lines(trailers) + b"\r\n" if trailers else END
    return raw + b"".join(map(chunk, cut(numbers, body))) + end


async def write(numbers: random.Random, send, raw: bytes) -> None:
    """In one go or in pieces, some with a pause between them."""
    if numbers.random() < 0.4:
        await send(raw)
        return
    for piece in cut(numbers, raw):
        await send(piece)
        if numbers.random() < 0.3:
            await asyncio.sleep(numbers.choice([0, 0.0005, 0.003]))


def end_to_end(fields: Fields) -> Fields:
    own = (
        b"host",
        b"content-length",
        b"transfer-encoding",
        b"connection",
        b"keep-alive",
        b"x-opencode-session",
        b"x-case",
    )
    return [
        (name, value) for name, value in fields if name.lower() not in own and not name.lower().startswith(b"x-ocpool-")
    ]


def differences(shape: Shape, seen: list[Exchange], reply: Reply) -> list[str]:
    """What did not arrive as it was sent, at either end."""
    if len(seen) != 1:
        return [f"{len(seen)} requests at the upstream"]
    head, frame = seen[0].head, {"none": "none"}.get(shape.framing, shape.framing)
    pairs = {
        "method": (shape.method, head.start[0]),
        "target": (shape.path, head.start[1]),
        "fields up": (shape.fields, end_to_end(head.fields)),
        "framing up": (frame if shape.body or frame != "length" else "length", seen[0].body.framing),
        "body up": (shape.body, seen[0].data),
        "status": (shape.status, b"%d %b" % (reply.status, reply.reason)),
        "fields down": (shape.reply_fields, end_to_end(reply.head.fields)),
        "framing down": (shape.reply_framing, reply.body.framing),
        "body down": (shape.reply_body, reply.data),
        "complete": (True, reply.complete),
        "trailers": (shape.trailers, reply.body.trailers),
    }
    return [f"{name}: {str(want)[:300]} became {str(got)[:300]}" for name, (want, got) in pairs.items() if want != got]


async def one(relay: Relay, client: Client, numbers: random.Random, shape: Shape, reused: bool) -> bool:
    """Play one exchange; returns whether the connection goes on."""

    async def script(exchange: Exchange) -> None:
        await exchange.read()
        head = b"HTTP/1.1 " + shape.status
        raw = framed(numbers, head, shape.reply_fields, shape.reply_framing, shape.reply_body, shape.trailers)
        await write(numbers, exchange.send, raw)
        if shape.reply_framing == "close":
            exchange.wire.fin()

    case = relay.case(script)
    start = shape.method + b" " + shape.path + b" HTTP/1.1\r\nHost: localhost\r\nx-case: " + case.key
    session = numbers.choice([b"", b"\r\nx-opencode-session: random-session-%04d" % numbers.randrange(200)])
    await write(numbers, client.send, framed(numbers, start + session, shape.fields, shape.framing, shape.body, []))
    reply = await client.reply(shape.method.decode())
    wrong = differences(shape, case.requests, reply)
    assert not wrong, (wrong, reused)
    relay.upstream.cases.pop(case.key)
    return reply.body.framing != "close" and b"close" not in b"".join(reply.all(b"connection")).lower()


@pytest.mark.parametrize("relay", ALL, indirect=True, ids="-".join)
@pytest.mark.parametrize("seed", [1, 2] if not DIRECT else [1])
async def test_what_is_sent_is_what_arrives_both_ways(relay: Relay, seed: int):
    async def stream(number: int) -> None:
        numbers = random.Random(f"{seed}-{number}-{relay.loop}-{relay.upstream.scheme}")
        client, reused = await relay.connect(), False
        for index in range(COUNT // 2 // AT_ONCE):
            shape = draw(numbers, number * 1000 + index)
            goes_on = await one(relay, client, numbers, shape, reused)
            reused = goes_on and numbers.random() < 0.8
            if not reused:
                client.wire.cut()
                client = await relay.connect()
        client.wire.cut()

    async with asyncio.TaskGroup() as group:
        for number in range(AT_ONCE):
            group.create_task(stream(number))
