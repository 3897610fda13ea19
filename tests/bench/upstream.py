"""A fast fixed upstream: a small JSON answer, or paced server-sent events when the body asks for a stream."""

import asyncio
import sys

JSON = (
    b'{"id":"bench","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"%s"},"finish_reason":"stop"}],"usage":{"prompt_tokens":17,"completion_tokens":56}}'
    % (b"x" * 400)
)
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nserver-timing: upstream;dur=900\r\nContent-Length: %d\r\n\r\n%b"
    % (len(JSON), JSON)
)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nserver-timing: upstream;dur=900\r\n\r\n"
DATA = b'data: {"id":"bench","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"some words here"},"finish_reason":null}]}\n\n'
EVENT = b"%x\r\n%b\r\n" % (len(DATA), DATA)


class Upstream(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport) -> None:
        self.transport = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self.buffer) < end + 4 + length:
                return
            body = self.buffer[end + 4 : end + 4 + length]
            self.buffer = self.buffer[end + 4 + length :]
            if b'"stream":true' in body:
                self.transport.write(HEAD)
                self._tick(300)
            else:
                self.transport.write(ANSWER)

    def _tick(self, left: int) -> None:
        if self.transport.is_closing():
            return
        if left:
            self.transport.write(EVENT)
            asyncio.get_running_loop().call_later(0.01, self._tick, left - 1)
        else:
            self.transport.write(b"0\r\n\r\n")


async def main(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(int(sys.argv[1])))
