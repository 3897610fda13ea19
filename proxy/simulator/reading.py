"""What the gateway reads out of a request: credential, session, and from the body what it needs."""

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from proxy.simulator.models import GOOGLE, MESSAGES
from proxy.simulator.paths import Route
from proxy.simulator.prompts import Prompt, prompt_of

Fields = Sequence[tuple[bytes, bytes]]

ACCEPTED_SESSION_FIELDS: Final = (
    "x-opencode-session",
    "x-session-affinity",
    "x-claude-code-session-id",
    "session_id",
    "x-deepseek-harness-session-id",
)
SEEN_SESSION_FIELDS: Final = frozenset(
    (*ACCEPTED_SESSION_FIELDS, "x-opencode-session-id", "x-session-id", "session-id", "x-client-request-id")
)
_CREDENTIALS: Final = ("authorization", "x-api-key", "x-goog-api-key")
NO_PROMPT: Final = Prompt(1, ())
_MODEL: Final = re.compile(rb'"model"\s*:\s*"([^"\\]*)"')


def value(fields: Fields, name: str) -> str | None:
    """The first value of a field that is not empty."""
    wanted = name.encode()
    for sent, content in fields:
        if sent.lower() == wanted and content.strip():
            return content.strip().decode("latin-1")
    return None


def sessions(fields: Fields) -> tuple[tuple[str, str], ...]:
    """Every field that is known to carry a session, in the order sent."""
    return tuple(
        (name.lower().decode("latin-1"), content.decode("latin-1"))
        for name, content in fields
        if name.lower().decode("latin-1") in SEEN_SESSION_FIELDS
    )


def session(fields: Fields, precedence: Sequence[str]) -> str | None:
    """The value that routes; an empty one counts as missing."""
    return next((found for name in precedence if (found := value(fields, name))), None)


def credential(fields: Fields, route: Route) -> str | None:
    """The key, from the field that this tree and protocol read it from."""
    names: Sequence[str] = _CREDENTIALS
    if route.tree == "zen":
        names = {MESSAGES: ("x-api-key",), GOOGLE: ("x-goog-api-key",)}.get(route.api, ("authorization",))
    for name in names:
        found = value(fields, name)
        if found and name == "authorization":
            found = found[7:].strip() if found[:7].lower() == "bearer " else None
        if found:
            return found
    return None


@dataclass(frozen=True, slots=True)
class Facts:
    """What a body says. ``model`` is None where it names none; ``valid`` is False where it is no JSON object."""

    model: str | None
    valid: bool = True
    stream: bool = False
    max_tokens: int | None = None
    tools: tuple[str, ...] = ()
    prompt: Prompt = NO_PROMPT
    lacks_reasoning: bool = False


def facts(body: bytes, encoding: str | None, route: Route) -> Facts:
    """Read a body; one that is no JSON object still has its model found, as the site does it by pattern."""
    plain = _plain(body, encoding)
    try:
        said: Any = orjson.loads(plain)
    except orjson.JSONDecodeError:
        said = None
    if not isinstance(said, dict):
        found = _MODEL.search(plain)
        return Facts(route.model or (found[1].decode() if found else None), valid=False)
    model = said.get("model")
    stream = route.stream if route.stream is not None else said.get("stream") is True
    return Facts(
        model=route.model or (model if isinstance(model, str) else None),
        stream=stream,
        max_tokens=_max_tokens(said),
        tools=_tools(said.get("tools")),
        prompt=prompt_of(_text(said)),
        lacks_reasoning=_lacks_reasoning(said.get("messages")),
    )


def _plain(body: bytes, encoding: str | None) -> bytes:
    if encoding not in {"gzip", "deflate"}:
        return body
    try:
        return zlib.decompress(body, 47)
    except zlib.error:
        return body


def _text(said: dict[str, Any]) -> bytes:
    """The prompt in the order an endpoint reads it: what changes least comes first."""
    parts = (said.get(name) for name in ("tools", "system", "instructions", "messages", "input", "contents"))
    return b"\n".join(orjson.dumps(part) for part in parts if part)


def _max_tokens(said: dict[str, Any]) -> int | None:
    config = said.get("generationConfig")
    if isinstance(config, dict) and isinstance(config.get("maxOutputTokens"), int):
        return int(config["maxOutputTokens"])
    for name in ("max_tokens", "max_completion_tokens", "max_output_tokens"):
        if isinstance(said.get(name), int):
            return int(said[name])
    return None


def _tools(said: Any) -> tuple[str, ...]:
    names = []
    for tool in said if isinstance(said, list) else ():
        inner = tool.get("function", tool) if isinstance(tool, dict) else {}
        if isinstance(inner, dict) and isinstance(inner.get("name"), str):
            names.append(inner["name"])
    return tuple(names)


def _lacks_reasoning(messages: Any) -> bool:
    return any(
        isinstance(message, dict) and message.get("tool_calls") and not message.get("reasoning_content")
        for message in (messages if isinstance(messages, list) else ())
    )
