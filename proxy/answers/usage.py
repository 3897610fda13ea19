"""Token counts of an answer, whatever the provider calls them, with "not said" kept apart from zero.

Chat completions and Responses count cached tokens into the prompt; Messages counts what was read from and written to
the cache beside ``input_tokens``; Google counts thoughts beside the candidates. Here ``input`` is the whole prompt.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MOST = 10**12  # a count beyond this is a mistake


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer; None where the provider did not say.

    ``input`` is the whole prompt, of which ``cached`` was read from a cache and ``written`` put into one, so that
    ``cached + written <= input``. ``output`` holds ``reasoning``.
    """

    input: int | None = None
    cached: int | None = None
    written: int | None = None
    output: int | None = None
    reasoning: int | None = None

    @property
    def uncached(self) -> int | None:
        """What the provider had to read anew and did not keep; None where the prompt's size is unknown."""
        return None if self.input is None else self.input - (self.cached or 0) - (self.written or 0)


def found(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """The usage object of an event or answer, wherever its protocol puts it. Raises nothing."""
    usage = event.get("usage")
    if isinstance(usage, dict):
        return usage
    usage = event.get("usageMetadata")
    if isinstance(usage, dict):
        return usage
    for holder in (event.get("response"), event.get("message"), _first(event.get("choices"))):
        if isinstance(holder, dict) and isinstance(holder.get("usage"), dict):
            return holder["usage"]  # type: ignore[no-any-return]
    return None


def merged(known: dict[str, Any] | None, more: dict[str, Any]) -> dict[str, Any]:
    """What is known after another report: providers repeat, correct and complete themselves (message_start, _delta)."""
    if known is None:
        return more
    return {**known, **{name: value for name, value in more.items() if value is not None}}


def normalised(raw: Mapping[str, Any] | None) -> Usage | None:
    """The counts of a usage object; None where it holds none."""
    if not raw:
        return None
    details = raw.get("prompt_tokens_details") or raw.get("input_tokens_details") or {}
    thoughts = raw.get("completion_tokens_details") or raw.get("output_tokens_details") or {}
    details = details if isinstance(details, dict) else {}
    thoughts = thoughts if isinstance(thoughts, dict) else {}
    cached = _count(
        details.get("cached_tokens"),
        raw.get("cached_tokens"),
        raw.get("prompt_cache_hit_tokens"),
        raw.get("cache_read_input_tokens"),
        raw.get("cachedContentTokenCount"),
    )
    written = _count(
        details.get("cache_write_tokens"), raw.get("cache_creation_input_tokens"), _sum(raw.get("cache_creation"))
    )
    total = _count(raw.get("prompt_tokens"), raw.get("input_tokens"), raw.get("promptTokenCount"))
    if total is not None and _beside(raw):
        total += (cached or 0) + (written or 0)
    reasoning = _count(thoughts.get("reasoning_tokens"), raw.get("thoughtsTokenCount"))
    output = _count(raw.get("completion_tokens"), raw.get("output_tokens"), raw.get("candidatesTokenCount"))
    if output is not None and "candidatesTokenCount" in raw:
        output += reasoning or 0
    usage = Usage(total, *_within(total, cached, written), output, reasoning)
    return usage if usage != _NOTHING else None


_NOTHING = Usage()


def _beside(raw: Mapping[str, Any]) -> bool:
    """Does the prompt's count leave out what the cache gave? Messages' does."""
    return "prompt_tokens" not in raw and ("cache_read_input_tokens" in raw or "cache_creation_input_tokens" in raw)


def _within(total: int | None, cached: int | None, written: int | None) -> tuple[int | None, int | None]:
    """Cache counts that fit into the prompt."""
    if total is None:
        return cached, written
    cached = min(cached, total) if cached is not None else None
    return cached, min(written, total - (cached or 0)) if written is not None else None


def _count(*candidates: object) -> int | None:
    """The first that is a number of tokens."""
    for candidate in candidates:
        if type(candidate) is int and 0 <= candidate <= _MOST:
            return candidate
    return None


def _sum(parts: object) -> int | None:
    """Messages' ``cache_creation``: tokens by how long they are kept."""
    counts = [_count(value) for value in parts.values()] if isinstance(parts, dict) else []
    return sum(count or 0 for count in counts) if counts else None


def _first(items: object) -> object:
    return items[0] if isinstance(items, list) and items else None
