"""Replies in the chat format: the JSON body, and the stream's events with the time of each.

Times are milliseconds after the head. How an endpoint spells things is its `Style`.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson

from proxy.simulator.draw import Draw
from proxy.simulator.prose import grouped, words
from proxy.simulator.styles import Style
from proxy.simulator.world import Plan

Pieces = list[tuple[float, bytes]]  # ms after the head, bytes of the body

COST: Final = b'data: {"choices":[],"cost":"0"}'
KEEP_ALIVE: Final = b": keep-alive"
CALL_ARGUMENTS: Final = '{"path": "src/größe.py", "offset": 120, "limit": 40}'


def token_ms(plan: Plan, tokens: int) -> float:
    """When the answer has this many tokens."""
    return plan.first_token_ms + max(0, tokens - 1) / plan.tokens_per_s * 1000


def usage(plan: Plan) -> dict[str, Any]:
    """The usage block, in the endpoint's spelling. Prompt tokens include the cached ones."""
    block: dict[str, Any] = {
        "prompt_tokens": plan.prompt_tokens,
        "completion_tokens": plan.completion_tokens,
        "total_tokens": plan.prompt_tokens + plan.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": plan.cached_tokens, "cache_write_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": _reasoning_tokens(plan), "audio_tokens": 0},
    }
    if plan.style.cache_fields == "deepseek":
        block["prompt_cache_hit_tokens"] = plan.cached_tokens
        block["prompt_cache_miss_tokens"] = plan.prompt_tokens - plan.cached_tokens
    if plan.style.cache_fields == "moonshot":
        del block["prompt_tokens_details"]
        block["cached_tokens"] = plan.cached_tokens
    return block


def _reasoning_tokens(plan: Plan) -> int:
    return plan.completion_tokens // 3 if plan.style.reasoning else 0


def chat_json(plan: Plan, model: str, tools: Sequence[str], created: int) -> dict[str, Any]:
    """The body of a reply that is not streamed."""
    thinking = _reasoning_tokens(plan)
    message: dict[str, Any] = {"role": "assistant", "content": "".join(words(plan.draw, plan.completion_tokens))}
    if thinking:
        message[plan.style.reasoning] = "".join(words(plan.draw, thinking))
    if plan.tool_call:
        message |= {"content": None, "tool_calls": [_call(plan.draw, tools[0])]}
    choice = {"index": 0, "message": message, "finish_reason": _finish(plan)}
    return {
        "id": plan.body_id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [choice],
        "usage": usage(plan),
    }


def chat_events(plan: Plan, model: str, tools: Sequence[str], created: int) -> Iterator[tuple[float, bytes]]:
    """The events of a streamed reply, without what ends an event. Bare bytes: the caller adds the line ends."""
    style = plan.style
    head = {"id": plan.body_id, "object": "chat.completion.chunk", "created": created, "model": model}
    null = {"usage": None} if style.usage == "null" else {}

    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return b"data: " + orjson.dumps(head | {"choices": [choice]} | null | more)

    yield token_ms(plan, 1), chunk({"role": "assistant", "content": ""})
    for at, delta in _deltas(plan, tools):
        yield at, chunk(delta)
    end = token_ms(plan, plan.completion_tokens)
    told = usage(plan)
    yield end, chunk({}, _finish(plan), **({"usage": told} if style.usage == "twice" else {}))
    if style.usage != "absent":
        yield end, b"data: " + orjson.dumps(head | {"choices": [], "usage": told})
    yield from ((end, tail) for tail in _tail(style))


def _tail(style: Style) -> tuple[bytes, ...]:
    return {"present": (b"data: [DONE]",), "absent": (), "cost": (b"data: [DONE]", COST)}[style.done]


def _finish(plan: Plan) -> str:
    return "tool_calls" if plan.tool_call else "stop"


def _deltas(plan: Plan, tools: Sequence[str]) -> Iterator[tuple[float, dict[str, Any]]]:
    thinking, size = _reasoning_tokens(plan), plan.style.event_tokens
    for said, text in grouped(words(plan.draw, thinking), size):
        yield token_ms(plan, said), {plan.style.reasoning: text}
    if plan.tool_call:
        yield from _call_deltas(plan, tools[0], thinking)
        return
    for said, text in grouped(words(plan.draw, plan.completion_tokens - thinking), size):
        yield token_ms(plan, thinking + said), {"content": text}


def _call(draw: Draw, name: str) -> dict[str, Any]:
    return {
        "id": f"call_{draw.hex('call', 24)}",
        "type": "function",
        "function": {"name": name, "arguments": CALL_ARGUMENTS},
    }


def _call_deltas(plan: Plan, name: str, said: int) -> Iterator[tuple[float, dict[str, Any]]]:
    call = _call(plan.draw, name)
    opening = call | {"index": 0, "function": {"name": name, "arguments": ""}}
    yield token_ms(plan, said + 1), {"tool_calls": [opening]}
    for start in range(0, len(CALL_ARGUMENTS), 7):
        part = {"index": 0, "function": {"arguments": CALL_ARGUMENTS[start : start + 7]}}
        at = token_ms(plan, min(plan.completion_tokens, said + start // 4 + 2))
        yield at, {"tool_calls": [part]}
