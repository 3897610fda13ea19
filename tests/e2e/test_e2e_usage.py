"""What the gateway billed is what `ocpool usage` shows: every protocol, streamed and whole, coded, aborted, restarted."""

import json
from pathlib import Path
from typing import Any

import aiohttp
import brotli
import pytest

from pool.clock import Clock
from proxy.cli import stage
from proxy.insight.usage_report import report
from tests.fakes.client import END, chunk
from tests.fakes.house import GOOD, House, house
from tests.fakes.relay import Relays
from tests.fakes.upstream import ROUTED, SSE

ASKED = [{"role": "user", "content": "count to ten, " * 200}]  # long enough to be cached in part
CALLS = [
    ("/zen/go/v1/chat/completions", {"model": "kimi-k3", "stream": True, "stream_options": {"include_usage": True}}),
    ("/zen/go/v1/chat/completions", {"model": "glm-5.3"}),
    ("/zen/go/v1/messages", {"model": "qwen3.8-max", "stream": True}),
    ("/zen/go/v1/messages", {"model": "claude-haiku-5-5"}),
    ("/zen/go/v1/responses", {"model": "grok-4.7", "stream": True}),
    ("/zen/v1/responses", {"model": "gpt-6-luna"}),
    ("/inference/go/google/v1beta/models/gemini-4-argon:streamGenerateContent?alt=sse", {}),
]


async def ask(at: House, session: aiohttp.ClientSession, path: str, body: dict[str, Any], name: str) -> str | None:
    """One request; the label of its conversation."""
    fields = {"User-Agent": "tests/1.0", "x-opencode-session": name}
    fields |= {"x-api-key": "sk-one"} if "messages" in path else {"Authorization": "Bearer sk-one"}
    if "google" in path:
        body = {**body, "contents": [{"parts": [{"text": "count to ten"}]}]}
    else:
        body = {**body, "max_tokens": 30, ("input" if "responses" in path else "messages"): ASKED}
    async with session.post(at.url + path, json=body, headers=fields) as answer:
        assert answer.status == 200, await answer.text()
        await answer.read()
        return answer.headers.get("x-ocpool-conversation")


def billed(at: House) -> dict[str, tuple[int, int, int]]:
    """Input, cached and output tokens by model, as the gateway wrote them down; Google's bill is not in this comparison."""
    sums: dict[str, tuple[int, int, int]] = {}
    for record in at.live:
        before = sums.get(record.model or "", (0, 0, 0))
        now = (record.prompt_tokens, record.cached_tokens, record.completion_tokens)
        sums[record.model or ""] = tuple(a + b for a, b in zip(before, now, strict=True))  # type: ignore[assignment]
    return sums


async def test_what_was_billed_is_what_is_shown_over_a_restart_too(tmp_path: Path):
    async with stage.gateway(GOOD, 1, Clock(60)) as gateway:
        for run in range(2):
            async with house(gateway, tmp_path) as at, aiohttp.ClientSession() as session:
                labels = [await ask(at, session, path, body, f"conversation-{run}") for path, body in CALLS]
                again = await ask(at, session, *CALLS[0], f"conversation-{run}")
                assert again == labels[0]
                seen = await at.status()
                assert seen["problems"] == {}
            expected = billed(at)
    shown = {row["model"]: row for row in report(tmp_path / "usage.sqlite3", ("provider", "model"), None)["rows"]}
    assert {model: (row["input"], row["cached"], row["output"]) for model, row in shown.items()} == expected
    assert shown["kimi-k3"]["turns"] == 4
    assert shown["kimi-k3"]["cached"] > 0
    assert shown["kimi-k3"]["saved_usd"] > 0
    assert all(row["unknown"] == row["unpriced"] == 0 and row["cost_usd"] > 0 for row in shown.values())
    keys = report(tmp_path / "usage.sqlite3", ("key",), None)["rows"]
    assert len(keys) == 1
    assert len(keys[0]["key"]) == 8
    conversations = {row["conversation"] for row in report(tmp_path / "usage.sqlite3", ("conversation",), None)["rows"]}
    assert set(labels) - {None} <= conversations


async def test_what_probes_cost_is_shown_beside_what_was_asked_for(tmp_path: Path):
    """As the gateway wrote it down; nobody's turns, tokens or hit rate have any of it."""
    async with stage.gateway(GOOD, 1, Clock(60)) as gateway:
        async with house(gateway, tmp_path) as at:
            async with aiohttp.ClientSession() as session:
                await ask(at, session, *CALLS[0], "conversation")
            await at.stocked()
        sent = at.probes
        live = billed(at)["kimi-k3"]
    row = report(tmp_path / "usage.sqlite3", ("provider", "model"), None)["rows"][0]
    assert (row["turns"], row["input"], row["output"]) == (1, live[0], live[2])
    assert row["probes"] == len(sent) > 0
    assert row["probe_tokens"] == sum(record.prompt_tokens + record.completion_tokens for record in sent) > 0
    costs = sum(record.prompt_tokens * 3 + record.completion_tokens * 15 for record in sent) / 1e6
    assert row["probe_cost_usd"] == pytest.approx(costs)
    whose = report(tmp_path / "usage.sqlite3", ("key", "conversation"), None)["rows"]
    assert len({row["key"] for row in whose}) == 1, "the caller's key pays for its probes"
    assert [row["probes"] for row in whose if row["conversation"]] == [0]


USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 2,
    "prompt_tokens_details": {"cached_tokens": 400, "cache_write_tokens": 100},
    "completion_tokens_details": {"reasoning_tokens": 1},
}
EVENTS = b"".join(
    b"data: " + json.dumps(event).encode() + b"\n\n"
    for event in (
        {"choices": [{"index": 0, "delta": {"content": "hi"}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": USAGE},
    )
)
BODY = b'{"model":"kimi-k3","stream":true,"messages":[{"role":"user","content":"x"}]}'


async def test_coded_broken_and_unreadable_answers_are_counted_for_what_they_are(relays: Relays, tmp_path: Path):
    path = tmp_path / "usage.sqlite3"
    relay = await relays.make("uvloop", "http", state__usage_path=path)

    async def answer(*script: bytes | str, coding: bytes = b"") -> None:
        head = SSE if not coding else SSE.replace(b"\r\n\r\n", b"\r\nContent-Encoding: %b\r\n\r\n" % coding)
        await relay.ask(relay.case(head, *script).on(ROUTED), body=BODY)

    await answer(chunk(EVENTS), END)
    await answer(chunk(brotli.compress(EVENTS)), END, coding=b"br")
    await answer(chunk(brotli.compress(EVENTS)), END, coding=b"gzip")  # a lie
    await answer(chunk(EVENTS[:50]), "cut")
    metrics = (await relay.ask(b"/-/metrics", "GET", framing="none")).data.decode()
    assert 'ocpool_answers_unread_total{provider="opencode-go",reason="coding"} 1.0' in metrics
    for kind, count in (("input", 2000), ("cached", 800), ("written", 200), ("output", 4), ("reasoning", 2)):
        series = f'ocpool_tokens_total{{model="kimi-k3",provider="opencode-go",type="{kind}"}}'
        assert f"{series} {count}.0" in metrics
    await relays.stop_private()
    total = report(path, ("model",), None)["total"]
    assert (total["turns"], total["unknown"], total["partial"]) == (4, 2, 1)
    assert (total["input"], total["cached"], total["output"], total["hit_rate"]) == (2000, 800, 4, 0.4)
    assert total["cost_usd"] == pytest.approx(2 * (600 * 3 + 400 * 0.3 + 2 * 15) / 1e6)


@pytest.mark.parametrize("place", ["/dev/full", "/proc/nothing", "/dev/null/usage"])
async def test_a_place_that_takes_no_file_fails_no_request(relays: Relays, place: str):
    relay = await relays.make("asyncio", "http", state__usage_path=place)
    for _ in range(3):
        reply = await relay.ask(relay.case(SSE, chunk(EVENTS), END).on(ROUTED), body=BODY)
        assert reply.data == EVENTS
    seen = json.loads((await relay.ask(b"/-/status", "GET", framing="none")).data)
    assert seen["usage"]["path"] == place
