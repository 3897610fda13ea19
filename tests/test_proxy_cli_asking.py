"""The demo's client: it reads an answer to its end, and tells one that has none."""

import asyncio

import pytest

from pool.clock import Clock
from proxy.cli.asking import Client
from proxy.cli.stage import Place


async def served(raw: bytes, *, reset: bool = False):
    """A server that answers every request with these bytes."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(raw)
                await writer.drain()
                if reset:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", 0)


@pytest.mark.parametrize(
    ("raw", "status", "complete"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", 200, True),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 200, True),
        (b"HTTP/1.1 529 Overloaded\r\nX-Who: me\r\ncontent-length: 1\r\n\r\nx", 529, True),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n",
            200,
            True,
        ),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 200, True),
    ],
)
async def test_the_client_reads_an_answer_to_its_end_and_keeps_the_connection(raw, status, complete):
    """Sized and chunked, empty or not; the next answer begins where this one ended."""
    server = await served(raw)
    client = Client(Place(*server.sockets[0].getsockname()[:2]), Clock())
    for _ in range(2):
        answer = await client.ask("/", [("x-a", "b")], b"")
        assert (answer.status, answer.complete) == (status, complete)
        assert 0 <= answer.ttfb_ms <= answer.total_ms
    client.close()
    server.close()


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok", 200),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nok", 200),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nno size\r\n", 200),
        (b"HTTP/1.1 2", 0),
        (b"", 0),
    ],
)
async def test_an_answer_that_breaks_off_is_not_complete_and_the_next_request_gets_a_new_connection(raw, status):
    """What came of it is told; nothing is raised."""
    server = await served(raw, reset=True)
    client = Client(Place(*server.sockets[0].getsockname()[:2]), Clock())
    for _ in range(2):
        answer = await client.ask("/", [], b"")
        assert (answer.status, answer.complete) == (status, False)
    client.close()
    server.close()
