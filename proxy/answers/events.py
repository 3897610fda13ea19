"""One event of a stream, or one whole answer: does it carry output, or an error, and whose is it?"""

from typing import Any

_ENDS = frozenset({"response.completed", "response.incomplete"})
_LONGEST_MODEL = 128


def semantic(event: dict[str, Any]) -> bool:
    """Does this event carry model output, its end, or usage? Roles, pings and openings do not count."""
    kind = event.get("type")
    if isinstance(kind, str):
        return kind.endswith(".delta") or kind.startswith(("content_block_delta", "message_delta")) or kind in _ENDS
    choices = event.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        choice = choices[0]
        if choice.get("finish_reason"):
            return True
        delta = choice.get("delta") or choice.get("message")
        return isinstance(delta, dict) and any(value for key, value in delta.items() if key != "role")
    return isinstance(event.get("usage"), dict) or bool(event.get("candidates"))


def failed(event: dict[str, Any]) -> bool:
    """Is this event without choices an error where an answer was due? What it says is read elsewhere."""
    return bool(event.get("error")) or str(event.get("type")).endswith(("error", "failed"))


def model_of(event: dict[str, Any]) -> str | None:
    """What an event calls the model."""
    name = event.get("model")
    if isinstance(name, str) and 0 < len(name) <= _LONGEST_MODEL:
        return name
    for holder in (event, event.get("message"), event.get("response")):
        name = holder.get("model") or holder.get("modelVersion") if isinstance(holder, dict) else None
        if isinstance(name, str) and 0 < len(name) <= _LONGEST_MODEL:
            return name
    return None
