"""Replies in the other formats, in a simple but valid form: Responses, Messages, Google's, embeddings."""

from collections.abc import Iterator
from typing import Any

import orjson

from proxy.simulator.prose import grouped, words
from proxy.simulator.replies import token_ms
from proxy.simulator.world import Plan

Events = Iterator[tuple[float, bytes]]


def _event(name: str, **said: Any) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + orjson.dumps({"type": name} | said)


def _text(plan: Plan) -> str:
    return "".join(words(plan.draw, plan.completion_tokens))


def response_json(plan: Plan, model: str, created: int, *, done: bool = True) -> dict[str, Any]:
    """A response; with ``done`` False as it is told when it begins."""
    told = {
        "input_tokens": plan.prompt_tokens,
        "input_tokens_details": {"cached_tokens": plan.cached_tokens},
        "output_tokens": plan.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": plan.prompt_tokens + plan.completion_tokens,
    }
    return {
        "id": f"resp_{plan.draw.hex('response', 32)}",
        "object": "response",
        "created_at": created,
        "status": "completed" if done else "in_progress",
        "model": model,
        "output": [_output_item(plan)] if done else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": told if done else None,
    }


def _output_item(plan: Plan, *, done: bool = True) -> dict[str, Any]:
    content = [{"type": "output_text", "text": _text(plan), "annotations": []}] if done else []
    return {
        "id": f"msg_{plan.draw.hex('item', 32)}",
        "type": "message",
        "role": "assistant",
        "status": "completed" if done else "in_progress",
        "content": content,
    }


def response_events(plan: Plan, model: str, created: int) -> Events:
    """A streamed response; it ends with ``response.completed`` and has no ``[DONE]``."""
    start, end = token_ms(plan, 1), token_ms(plan, plan.completion_tokens)
    item = _output_item(plan)
    place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    opened = {"output_index": 0, "item": _output_item(plan, done=False)}
    part = item["content"][0]
    told: list[tuple[float, str, dict[str, Any]]] = [
        (start, "response.created", {"response": response_json(plan, model, created, done=False)}),
        (start, "response.output_item.added", opened),
        (start, "response.content_part.added", place | {"part": part | {"text": ""}}),
    ]
    for said, text in grouped(words(plan.draw, plan.completion_tokens), plan.style.event_tokens):
        more = place | {"delta": text, "logprobs": []}
        told.append((token_ms(plan, said), "response.output_text.delta", more))
    told += [
        (end, "response.output_text.done", place | {"text": part["text"], "logprobs": []}),
        (end, "response.content_part.done", place | {"part": part}),
        (end, "response.output_item.done", {"output_index": 0, "item": item}),
        (end, "response.completed", {"response": response_json(plan, model, created)}),
    ]
    for number, (at, name, said_then) in enumerate(told):
        yield at, _event(name, sequence_number=number, **said_then)


def message_json(plan: Plan, model: str) -> dict[str, Any]:
    """A message; input tokens do not include the cached ones."""
    return {
        "id": f"msg_{plan.draw.hex('message', 24)}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": _text(plan)}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": plan.prompt_tokens - plan.cached_tokens,
            "cache_read_input_tokens": plan.cached_tokens,
            "cache_creation_input_tokens": 0,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
            "output_tokens": plan.completion_tokens,
        },
    }


def message_events(plan: Plan, model: str) -> Events:
    """A streamed message, with a ping."""
    start, end = token_ms(plan, 1), token_ms(plan, plan.completion_tokens)
    whole = message_json(plan, model)
    opened = whole | {"content": [], "stop_reason": None, "usage": whole["usage"] | {"output_tokens": 1}}
    yield start, _event("message_start", message=opened)
    yield start, _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    yield start, _event("ping")
    for said, text in grouped(words(plan.draw, plan.completion_tokens), plan.style.event_tokens):
        delta = {"type": "text_delta", "text": text}
        yield token_ms(plan, said), _event("content_block_delta", index=0, delta=delta)
    yield end, _event("content_block_stop", index=0)
    stop = {"stop_reason": "end_turn", "stop_sequence": None}
    yield end, _event("message_delta", delta=stop, usage={"output_tokens": plan.completion_tokens})
    yield end, _event("message_stop")


def google_json(plan: Plan, model: str, text: str | None = None, finish: str | None = "STOP") -> dict[str, Any]:
    """A whole reply, or with ``text`` a piece of one."""
    parts = [{"text": _text(plan) if text is None else text}]
    candidate = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": plan.prompt_tokens,
            "cachedContentTokenCount": plan.cached_tokens,
            "candidatesTokenCount": plan.completion_tokens,
            "totalTokenCount": plan.prompt_tokens + plan.completion_tokens,
        },
        "modelVersion": model,
    }


def google_events(plan: Plan, model: str) -> Events:
    """A streamed reply in Google's form."""
    for said, text in grouped(words(plan.draw, plan.completion_tokens), plan.style.event_tokens):
        finish = "STOP" if said == plan.completion_tokens else None
        yield token_ms(plan, said), b"data: " + orjson.dumps(google_json(plan, model, text, finish))


def minor_json(plan: Plan, model: str, api: str) -> dict[str, Any]:
    """A reply of an API of which little is known."""
    told = {"prompt_tokens": plan.prompt_tokens, "total_tokens": plan.prompt_tokens}
    if api == "embeddings":
        vector = [round(plan.draw.between(f"axis {axis}", -1, 1), 6) for axis in range(8)]
        data: list[dict[str, Any]] = [{"object": "embedding", "index": 0, "embedding": vector}]
        return {"object": "list", "data": data, "model": model, "usage": told}
    return {"id": plan.body_id, "object": api, "model": model, "output": _text(plan), "usage": told}
