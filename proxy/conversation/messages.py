"""The messages of a request, in whatever shape: roles, texts, tool calls, tool results. Nothing is refused.

Chat completions, the Responses API's items and the Messages API's content blocks are read; what has an unknown shape
contributes nothing.
"""

from collections.abc import Iterator
from typing import Any, Final

SYSTEM: Final = ("system", "developer")
_TOOL: Final = ("tool", "function")
_UNSAID: Final = ("thinking", "redacted_thinking", "reasoning", "tool_use", "tool_result")
_CALL_ITEMS: Final = ("function_call", "custom_tool_call")
_RESULT_ITEMS: Final = ("function_call_output", "custom_tool_call_output")
_SILENT_ITEMS: Final = ("reasoning", "item_reference")

Call = tuple[str, str, object]  # id, name, arguments


def text_of(content: object) -> str:
    """The text of a message's content; its text parts joined, its reasoning and its pictures left out."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and part.get("type") not in _UNSAID:
            text = part.get("text")
            if isinstance(text, str):
                texts.append(text)
    return "\n".join(texts)


def is_answer(message: dict[str, Any]) -> bool:
    """Is this something the model said?"""
    return message.get("role") == "assistant" or is_call(message)


def is_call(message: dict[str, Any]) -> bool:
    """Is this item a tool call by itself?"""
    return message.get("type") in _CALL_ITEMS


def is_result(message: dict[str, Any]) -> bool:
    """Is this nothing but a tool's result?"""
    return message.get("role") in _TOOL or message.get("type") in _RESULT_ITEMS


def is_silent(message: dict[str, Any]) -> bool:
    """Does this item say nothing of its own, such as the model's reasoning?"""
    return message.get("role") is None and message.get("type") in _SILENT_ITEMS


def result_id(message: dict[str, Any]) -> str:
    """The id of the call that this is the result of, "" without one."""
    value = message.get("tool_call_id") or message.get("call_id") or message.get("name")
    return value if isinstance(value, str) else ""


def block_results(message: dict[str, Any]) -> list[str]:
    """The ids of the results that a message carries as content blocks."""
    content = message.get("content")
    if not isinstance(content, list):
        return []
    found = []
    for part in content:
        if isinstance(part, dict) and part.get("type") == "tool_result":
            value = part.get("tool_use_id")
            found.append(value if isinstance(value, str) else "")
    return found


def calls_of(message: dict[str, Any]) -> list[Call]:
    """The tool calls of an answer, in their order."""
    return list(_calls(message))


def _calls(message: dict[str, Any]) -> Iterator[Call]:
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        for call in calls:
            if isinstance(call, dict):
                yield _call(call.get("id"), call.get("function") or call.get("custom"))
    if "function_call" in message:
        yield _call(None, message["function_call"])
    if message.get("type") in _CALL_ITEMS:
        yield _call(message.get("call_id"), message)
    content = message.get("content")
    if isinstance(content, list):
        for part in content:
            if isinstance(part, dict) and part.get("type") == "tool_use":
                yield _call(part.get("id"), part)


def _call(identity: object, function: object) -> Call:
    if not isinstance(function, dict):
        function = {}
    name = function.get("name")
    arguments = function.get("arguments", function.get("input"))
    return identity if isinstance(identity, str) else "", name if isinstance(name, str) else "", arguments
