"""A fast fixed upstream: a small JSON answer, or paced server-sent events when the body asks for a stream.

    python upstream.py PORT [CERTIFICATE]

Each event says when it was written, in nanoseconds of the monotonic clock that all processes of the machine share.
"""

import asyncio
import re
import ssl
import sys
import time

_JSON = (
    b'{"id":"bench","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"%s"},"finish_reason":"stop"}],"usage":{"prompt_tokens":17,"completion_tokens":56}}'
    % (b"x" * 400)
)
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nserver-timing: upstream;dur=900\r\nContent-Length: %d\r\n\r\n%b"
    % (len(_JSON), _JSON)
)
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nserver-timing: upstream;dur=900\r\n\r\n"
_DATA = b'data: {"id":"bench","object":"chat.completion.chunk","t":"%018d","choices":[{"index":0,"delta":{"content":"some words here"},"finish_reason":null}]}\n\n'
_EVENT = b"%x\r\n%b\r\n" % (len(_DATA % 0), _DATA)
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_PACE = re.compile(rb'"every_ms":(\d+)')
_READ_BYTES = 65_536  # a longer body is not looked into


class Upstream(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self) -> None:
        self._held = b""
        self._left = 0

    def connection_made(self, transport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._left:  # of a large body
            self._left -= len(data)
            if self._left <= 0:
                self._left = 0
                self._transport.write(ANSWER)
            return
        self._held = held = self._held + data if self._held else data
        end = held.find(b"\r\n\r\n")
        if end < 0:
            return
        found = _LENGTH.search(held, 0, end)
        whole = end + 4 + (int(found[1]) if found is not None else 0)
        if len(held) >= whole:
            self._held = b""
            self._answer(held[end + 4 : whole])
        elif whole > _READ_BYTES:
            self._held, self._left = b"", whole - len(held)

    def _answer(self, body: bytes) -> None:
        pace = _PACE.search(body)
        if pace is None:
            self._transport.write(ANSWER)
            return
        self._transport.write(_HEAD)
        self._tick(int(pace[1]) / 1000)

    def _tick(self, every_s: float) -> None:
        if not self._transport.is_closing():
            self._transport.write(_EVENT % time.monotonic_ns())
            asyncio.get_running_loop().call_later(every_s, self._tick, every_s)


async def main(port: int, certificate: str | None) -> None:
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", port, backlog=1024, ssl=context)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None))
