"""One upstream connection against raw sockets: phases, ends, reuse and flow control."""

import asyncio
import contextlib
import socket
import struct

import pytest

from pool.clock import Clock
from proxy.errors import BadResponse, ClosedEarly, ConnectFailed, NameNotResolved
from proxy.wire.connection import GATHER_BYTES
from proxy.wire.pool import Upstream
from proxy.wire.receiver import End

SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Collected:
    """A receiver that keeps what it is given."""

    def __init__(self) -> None:
        self.data = b""
        self.how: End | None = None
        self.over = asyncio.Event()

    def body(self, data: bytes) -> None:
        self.data += data

    def end(self, how: End) -> None:
        assert self.how is None, "an end comes once"
        self.how = how
        self.over.set()


@contextlib.asynccontextmanager
async def peer(script):
    """A raw server that runs ``script(reader, writer)`` for each connection; yields an Upstream that points at it."""
    count = 0

    async def serve(reader, writer):
        nonlocal count
        count += 1
        try:
            await script(reader, writer, count)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    upstream = Upstream(f"http://127.0.0.1:{port}", clock=Clock())
    try:
        yield upstream
    finally:
        upstream.close()
        server.close()
        await asyncio.sleep(0)


async def ask(upstream):
    connection = await upstream.acquire()
    connection.send(b"POST", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n", (b"{}",))
    return connection


async def read_request(reader):
    await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(2)


async def test_a_whole_answer_is_gathered_poured_and_the_connection_reused():
    async def script(reader, writer, _):
        while True:
            await read_request(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

    async with peer(script) as upstream:
        for _ in range(3):
            connection = await ask(upstream)
            head = await connection.head()
            receiver = Collected()
            gathered, end = connection.pour(receiver, None)
            if end is None:
                await receiver.over.wait()
            assert head.status == 200
            assert gathered + receiver.data == b"hello"
            upstream.release(connection)
        assert upstream.open == 1
        assert connection.uses == 3


async def test_interim_answers_are_dropped_in_any_split():
    async def script(reader, writer, _):
        await read_request(reader)
        wire = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: 0\r\n\r\n"
        for index in range(len(wire)):
            writer.write(wire[index : index + 1])
            await writer.drain()
            await asyncio.sleep(0)

    async with peer(script) as upstream:
        connection = await ask(upstream)
        assert (await connection.head()).status == 201
        upstream.release(connection)


@pytest.mark.parametrize("reset", [False, True])
async def test_an_end_before_the_framing_says_so_is_a_truncation(reset):
    async def script(reader, writer, _):
        await read_request(reader)
        writer.write(SSE + b"5\r\nhello\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)
        if reset:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async with peer(script) as upstream:
        connection = await ask(upstream)
        await connection.head()
        receiver = Collected()
        gathered, _ = connection.pour(receiver, None)
        await asyncio.wait_for(receiver.over.wait(), 5)
        assert gathered + receiver.data == b"5\r\nhello\r\n"
        assert receiver.how is End.TRUNCATED
        upstream.release(connection)
        assert upstream.idle == 0


async def test_a_body_without_framing_ends_with_the_connection():
    async def script(reader, writer, _):
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")

    async with peer(script) as upstream:
        connection = await ask(upstream)
        await connection.head()
        receiver = Collected()
        gathered, end = connection.pour(receiver, None)
        if end is None:
            await asyncio.wait_for(receiver.over.wait(), 5)
        assert gathered + receiver.data == b"until the end"
        assert (end or receiver.how) is End.COMPLETE
        assert not connection.reusable


@pytest.mark.parametrize(
    ("wire", "error"),
    [
        (b"", ClosedEarly),
        (b"HTTP/1.1 200 OK\r\nContent-Le", ClosedEarly),
        (b"HTTP/1.1 200 OK\n\nbare line feeds", BadResponse),
        (b"<html>not http</html>\r\n\r\n", BadResponse),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 300_000, BadResponse),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", BadResponse),
    ],
)
async def test_what_is_no_answer_raises_and_is_never_reused(wire, error):
    async def script(reader, writer, _):
        await read_request(reader)
        writer.write(wire)
        await writer.drain()
        if b"OK\r\nX" in wire or b"\n\n" in wire:
            await asyncio.sleep(1)

    async with peer(script) as upstream:
        connection = await ask(upstream)
        with pytest.raises(error) as raised:
            await asyncio.wait_for(connection.head(), 5)
        assert raised.value.written
        upstream.release(connection)
        assert upstream.open == 0


async def test_bytes_past_the_end_are_never_poured_and_spoil_the_connection():
    async def script(reader, writer, _):
        await read_request(reader)
        writer.write(SSE + b"2\r\nhi\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        await asyncio.sleep(1)

    async with peer(script) as upstream:
        connection = await ask(upstream)
        await connection.head()
        receiver = Collected()
        gathered, end = connection.pour(receiver, None)
        if end is None:
            await asyncio.wait_for(receiver.over.wait(), 5)
        assert gathered + receiver.data == b"2\r\nhi\r\n0\r\n\r\n"
        assert not connection.reusable
        upstream.release(connection)
        assert upstream.open == 0


async def test_an_idle_connection_that_its_peer_closed_is_not_taken():
    async def script(reader, writer, _):
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    async with peer(script) as upstream:
        for _ in range(20):
            connection = await ask(upstream)
            assert (await connection.head()).status == 200
            upstream.release(connection)
            await asyncio.sleep(0.01)
        assert upstream.open <= 1


async def test_an_idle_connection_older_than_its_keepalive_is_dropped():
    async def script(reader, writer, _):
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await asyncio.sleep(5)

    async with peer(script) as upstream:
        connection = await ask(upstream)
        await connection.head()
        upstream.release(connection)
        connection.idle_since -= 15_001
        upstream.expire()
        assert upstream.idle == 0
        assert upstream.take_idle(connection.idle_since) is None


async def test_gathering_stops_reading_until_the_pour():
    total = 4_000_000

    async def script(reader, writer, _):
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % total)
        writer.write(b"x" * total)
        await writer.drain()
        await asyncio.sleep(2)

    async with peer(script) as upstream:
        connection = await ask(upstream)
        await connection.head()
        await asyncio.sleep(0.2)
        body = await connection.gathered(0.01)
        assert GATHER_BYTES <= len(body) < total / 4
        receiver = Collected()
        gathered, _ = connection.pour(receiver, None)
        await asyncio.wait_for(receiver.over.wait(), 5)
        assert len(gathered + receiver.data) == total


async def test_a_refusal_is_gathered_without_chunk_framing_within_its_bound():
    async def script(reader, writer, _):
        await read_request(reader)
        writer.write(b"HTTP/1.1 429 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        await asyncio.sleep(5)

    async with peer(script) as upstream:
        connection = await ask(upstream)
        await connection.head()
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert await connection.gathered(0.08) == b"abc"
        assert loop.time() - began < 1
        connection.abort()


async def test_names_and_ports_that_lead_nowhere_have_errors_of_their_own():
    clock = Clock()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ConnectFailed) as refused:
        await Upstream(f"http://127.0.0.1:{port}", clock=clock).acquire()
    assert not refused.value.written
    with pytest.raises(NameNotResolved):
        await Upstream("http://no-such-host.invalid", clock=clock).acquire()


async def test_fetch_reads_a_small_answer_whole():
    async def script(reader, writer, _):
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"POST /p HTTP/1.1\r\nHost: 127.0.0.1" in head
        await reader.readexactly(2)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(5):
            writer.write(b"2\r\nok\r\n")
            await writer.drain()
            await asyncio.sleep(0.01)
        writer.write(b"0\r\n\r\n")
        await asyncio.sleep(1)

    async with peer(script) as upstream:
        reply = await upstream.fetch(b"POST", b"/p", [(b"content-length", b"2")], b"{}")
        assert (reply.status, reply.body) == (200, b"ok" * 5)
        assert upstream.idle == 1
