"""A simulated gateway for one test, and a plain client that reads what it sends to the last byte."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import orjson

from pool.clock import Clock
from proxy.simulator.knobs import Knobs
from proxy.simulator.server import Gateway
from tests.fakes.http1 import Head, parse_head

GO = "/zen/go/v1/chat/completions"
MODEL = "deepseek-v4.1-flash"


@asynccontextmanager
async def gateway(
    scenario: str = "sticky", *, seed: int = 1, scale: float = 100, **more: object
) -> AsyncIterator[Gateway]:
    """One that listens, on a clock that runs ``scale`` times as fast."""
    made = Gateway(scenario, seed, Clock(scale), **more)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


@dataclass
class Got:
    """What a connection brought before it ended: ``end`` is complete, eof or reset."""

    head: Head | None
    body: bytes
    end: str
    raw: bytes

    @property
    def status(self) -> int:
        return int(self.head.start[1])

    def json(self) -> dict:
        return orjson.loads(self.body)


def chat(
    path: str = GO,
    *,
    session: str | None = "s-1",
    model: str = MODEL,
    key: str | None = "sk-test",
    agent: str | None = "test-client/1",
    fields: tuple[tuple[str, str], ...] = (),
    body: bytes | None = None,
    method: str = "POST",
    version: str = "1.1",
    text: str = "hello",
    **more: object,
) -> bytes:
    """A request as bytes."""
    if body is None:
        body = orjson.dumps({"model": model, "messages": [{"role": "user", "content": text}]} | more)
    lines = [f"{method} {path} HTTP/{version}", "Host: opencode.ai", f"Content-Length: {len(body)}"]
    lines += [f"Authorization: Bearer {key}"] * (key is not None)
    lines += [f"User-Agent: {agent}"] * (agent is not None)
    lines += [f"x-opencode-session: {session}"] * (session is not None)
    lines += [f"{name}: {value}" for name, value in fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def ask(made: Gateway, request: bytes) -> Got:
    """Send it on a connection of its own and read until the reply or the connection ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
    try:
        writer.write(request)
        return await _read(reader)
    finally:
        writer.close()


async def _read(reader: asyncio.StreamReader) -> Got:
    raw = b""
    head, body = None, b""
    while True:
        if head is None and b"\r\n\r\n" in raw:
            head = parse_head(raw[: raw.index(b"\r\n\r\n") + 4])
        if head is not None:
            body, complete = _body(head, raw[len(head.raw) :])
            if complete:
                return Got(head, body, "complete", raw)
        try:
            more = await reader.read(65_536)
        except ConnectionResetError:
            return Got(head, body, "reset", raw)
        if not more:
            return Got(head, body, "eof", raw)
        raw += more


def _body(head: Head, rest: bytes) -> tuple[bytes, bool]:
    length = head.one(b"content-length")
    if length is not None:
        return rest, len(rest) >= int(length)
    if head.one(b"transfer-encoding") is None:
        return rest, False
    body = b""
    while (end := rest.find(b"\r\n")) >= 0:
        size = int(rest[:end], 16)
        if size == 0 and rest[end + 2 :].startswith(b"\r\n"):
            return body, True
        if len(rest) < end + 2 + size + 2:
            return body + rest[end + 2 : end + 2 + size], False
        body += rest[end + 2 : end + 2 + size]
        rest = rest[end + 4 + size :]
    return body, False


def quick(**more: object) -> Knobs:
    """Knobs that keep the world's choices and take away its waits."""
    from proxy.simulator.faults import Behaviour

    fast = {"gateway_ms": 1.0, "upstream_ms": 5.0, "first_token_ms": 1.0, "tokens": 20, "tokens_per_s": 1e6}
    return Knobs(every=Behaviour(**(fast | more)))
