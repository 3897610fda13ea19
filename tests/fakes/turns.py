"""Streamed turns of conversations, sent to a house as a client sends them."""

from __future__ import annotations

import json

from proxy.cli.asking import Client
from tests.fakes.house import GO, House

FIELDS = [("authorization", "Bearer sk-test"), ("content-type", "application/json"), ("user-agent", "test-client/1")]


async def turn(at: House, session: str, number: int, *, usage: bool = True) -> None:
    """One streamed turn of a conversation."""
    body = {
        "model": "deepseek-v4.1-flash",
        "stream": True,
        "max_tokens": 120,
        "messages": [{"role": "user", "content": f"turn {number}"}],
    }
    if usage:
        body["stream_options"] = {"include_usage": True}
    client = Client(at.place, at.clock)
    try:
        fields = [*FIELDS, ("x-opencode-session", session)]
        answer = await client.ask(f"{GO}/chat/completions", fields, json.dumps(body).encode())
    finally:
        client.close()
    assert answer.status == 200
    assert answer.complete
    await at.until(lambda: len(at.decisions("request")) == len(at.live))
