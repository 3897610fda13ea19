"""A probe of the throughput profile: something longer to write, as a stream that is timed to its last token."""

import asyncio
import re

import orjson

from pool.clock import Clock
from pool.profiles.throughput import PROMPT
from proxy.answers.stream import StreamReader
from proxy.pace import Pace
from proxy.wire.connection import Connection
from proxy.wire.receiver import End

_STREAM_ID = re.compile(rb'"id": ?"([^"]{1,256})"')


class Paced:
    """Reads the stream of a probe of the throughput profile: when its first token came, and how fast the rest."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.tap = StreamReader(clock.mono_ms)
        self.pace = Pace(clock.mono_ms)
        self.ended_ms: float | None = None
        self.body_id: str | None = None
        self.over = asyncio.Event()

    def sink(self, data: bytes) -> None:
        """A piece of the entity."""
        self.tap.feed(data)
        self.pace.feed(data)
        if self.body_id is None and (found := _STREAM_ID.search(data)) is not None:
            self.body_id = found.group(1).decode("latin-1")[:128]

    def body(self, data: bytes) -> None:
        """Framing and all: nobody wants it."""

    def end(self, how: End) -> None:
        """Nothing more will come."""
        self.ended_ms = self._clock.mono_ms() if how is End.COMPLETE else None
        self.over.set()


def paced_body(model: str, max_tokens: int) -> bytes:
    """The request body of a probe of the throughput profile: something longer to write, as a stream with its usage."""
    messages = [{"role": "user", "content": PROMPT}]
    return orjson.dumps(
        {
            "model": model,
            "messages": messages,
            "max_tokens": max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    )


async def read_stream(connection: Connection, paced: Paced) -> None:
    """Read a stream to its end, as it comes."""
    _, how = connection.pour(paced, paced.sink)
    if how is not None:
        paced.end(how)
    await paced.over.wait()
