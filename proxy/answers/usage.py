"""Token counts of an answer, whatever the provider calls them, with "not said" kept apart from zero.

Chat completions and Responses count cached tokens into the prompt; Messages counts what was read from and written to
the cache beside ``input_tokens``; Google counts thoughts beside the candidates. Here ``input`` is the whole prompt.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

_COUNTS = range(10**12 + 1)  # what is beyond is a mistake
_PROMPT = ("prompt_tokens_details", "input_tokens_details")
_COMPLETION = ("completion_tokens_details", "output_tokens_details")
_INPUT = ("prompt_tokens", "input_tokens", "promptTokenCount")
_OUTPUT = ("completion_tokens", "output_tokens", "candidatesTokenCount")
_CACHED = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens", "cachedContentTokenCount")
_WRITTEN = ("cache_creation_input_tokens",)
_OF_OTHERS = frozenset(
    (*_PROMPT[1:], *_COMPLETION[1:], *_INPUT[1:], *_OUTPUT[1:], *_CACHED, *_WRITTEN, "cache_creation")
)  # names that no plain chat completion has
_BESIDE = frozenset({"cache_read_input_tokens", "cache_creation_input_tokens"})  # counted beside the prompt, not in it


class Usage(NamedTuple):
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

    def told(self) -> dict[str, int]:
        """What the provider said, by kind."""
        return {kind: count for kind, count in zip(KINDS, self, strict=True) if count is not None}


KINDS = Usage._fields


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


def merged(known: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """What is known after another report: providers repeat, correct and complete themselves (message_start, _delta)."""
    return {**known, **{name: value for name, value in more.items() if value is not None}}


def normalised(raw: Mapping[str, Any] | None) -> Usage | None:
    """The counts of a usage object; None where it holds none."""
    if not raw:
        return None
    total, cached, written, output, reasoning = _chat(raw) if _OF_OTHERS.isdisjoint(raw) else _in_any_spelling(raw)
    if total is not None:
        if cached is not None and cached > total:
            cached = total
        if written is not None:
            written = min(written, total - (cached or 0))
    elif output is cached is written is reasoning is None:
        return None
    return Usage(total, cached, written, output, reasoning)


_Counts = tuple[int | None, int | None, int | None, int | None, int | None]  # in the order of ``Usage``


def _chat(raw: Mapping[str, Any]) -> _Counts:
    """The counts of a chat completion, where no other names are in use."""
    cached = written = reasoning = None
    details = raw.get("prompt_tokens_details")
    if isinstance(details, dict):
        cached, written = _count(details.get("cached_tokens")), _count(details.get("cache_write_tokens"))
    details = raw.get("completion_tokens_details")
    if isinstance(details, dict):
        reasoning = _count(details.get("reasoning_tokens"))
    return _count(raw.get("prompt_tokens")), cached, written, _count(raw.get("completion_tokens")), reasoning


def _in_any_spelling(raw: Mapping[str, Any]) -> _Counts:
    prompt, completion = _details(raw, _PROMPT), _details(raw, _COMPLETION)
    cached = _count(prompt.get("cached_tokens"))
    if cached is None:
        cached = _first_count(raw, _CACHED)
    written = _count(prompt.get("cache_write_tokens"))
    if written is None:
        written = _first_count(raw, _WRITTEN)
    if written is None and "cache_creation" in raw:
        written = _sum(raw["cache_creation"])
    total = _first_count(raw, _INPUT)
    if total is not None and "prompt_tokens" not in raw and not _BESIDE.isdisjoint(raw):
        total += (cached or 0) + (written or 0)
    reasoning = _count(completion.get("reasoning_tokens"))
    output = _first_count(raw, _OUTPUT)
    if "candidatesTokenCount" in raw:
        reasoning = _count(raw.get("thoughtsTokenCount"))
        output = output + (reasoning or 0) if output is not None else None
    return total, cached, written, output, reasoning


NOTHING = Usage()


def _details(raw: Mapping[str, Any], holders: tuple[str, ...]) -> Mapping[str, Any]:
    """What another count is made of."""
    for holder in holders:
        details = raw.get(holder)
        if isinstance(details, dict):
            return details
    return {}


def _first_count(raw: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        if name in raw and (count := _count(raw[name])) is not None:
            return count
    return None


def _count(value: object) -> int | None:
    """A number of tokens, or nothing of the kind."""
    return value if type(value) is int and value in _COUNTS else None


def _sum(parts: object) -> int | None:
    """Messages' ``cache_creation``: tokens by how long they are kept."""
    counts = [_count(value) for value in parts.values()] if isinstance(parts, dict) else []
    return sum(count or 0 for count in counts) if counts else None


def _first(items: object) -> object:
    return items[0] if isinstance(items, list) and items else None
