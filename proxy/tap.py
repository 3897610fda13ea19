"""What an answer says about itself while it passes: first semantic event, usage, an error inside a 200.

The tap sees copies of the entity's bytes and changes nothing. It never raises, never waits, and holds a bounded amount.
Compressed answers are counted as unread. Until the first semantic event each event is parsed; afterwards a line is
only looked at when it may carry usage or an error, so that an event costs a search or two.
"""

from collections.abc import Callable
from typing import Any

import orjson

from proxy.wire.head import ResponseHead

FIELDS = frozenset((b"content-type", b"content-encoding"))  # what of a head says how to read its body

_MAX_LINE = 262_144  # a longer line is not read: it is relayed all the same
_MAX_JSON = 1_048_576
_PROLOGUE_EVENTS = 64  # events parsed in search of a semantic one, then the next data counts as semantic


class Tap:
    """Reads one answer. ``stream`` chooses between server-sent events and a JSON body."""

    __slots__ = (
        "_carry",
        "_json",
        "_looked",
        "_mono_ms",
        "_skipping",
        "bytes",
        "error",
        "events",
        "first_semantic_ms",
        "last_event_ms",
        "stream",
        "unread",
        "usage",
    )

    def __init__(self, mono_ms: Callable[[], float], *, stream: bool) -> None:
        self._mono_ms = mono_ms
        self.stream = stream
        self.bytes = 0
        self.events = 0
        self.first_semantic_ms: float | None = None
        self.last_event_ms: float | None = None
        self.usage: dict[str, Any] | None = None
        self.error: bytes | None = None
        self.unread = False
        self._carry = b""
        self._skipping = False
        self._looked = 0
        self._json: list[bytes] | None = None if stream else []

    def feed(self, data: bytes) -> None:
        """A piece of the entity."""
        self.bytes += len(data)
        try:
            if self._json is not None:
                self._keep(data)
            elif not self._carry and data.startswith(b"data: ") and data.find(b"\n") == len(data) - 2:
                # The usual shape: one whole event a piece, its line and the blank one behind it.
                self._line(data[6:-2])
            else:
                self._lines(data)
        except (ValueError, TypeError, AttributeError):
            self.unread = True

    def _keep(self, data: bytes) -> None:
        if self.first_semantic_ms is None:
            self.first_semantic_ms = self._mono_ms()
        assert self._json is not None
        if self.bytes <= _MAX_JSON:
            self._json.append(data)
        else:
            self._json.clear()
            self.unread = True

    def _lines(self, data: bytes) -> None:
        if self._carry:
            data = self._carry + data
            self._carry = b""
        *lines, rest = data.replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            if self._skipping:
                self._skipping = False
            elif line.startswith(b"data:"):
                self._line(line[5:])
        if self._skipping:
            return
        if len(rest) > _MAX_LINE:
            self._skipping = True
            self.unread = True
        else:
            self._carry = rest

    def _line(self, payload: bytes) -> None:
        """One data line of an event."""
        self.events += 1
        if self.first_semantic_ms is None:
            self._search(payload)
        elif b'"usage"' in payload or b'"error"' in payload or b"failed" in payload:
            self._read(payload)

    def _search(self, payload: bytes) -> None:
        self._looked += 1
        event = self._read(payload)
        if self._looked >= _PROLOGUE_EVENTS or (event is not None and semantic(event)):
            self.first_semantic_ms = self._mono_ms()

    def _read(self, payload: bytes) -> dict[str, Any] | None:
        text = payload.strip()
        if not text.startswith(b"{"):
            return None
        event = orjson.loads(text)
        usage = usage_of(event)
        if usage is not None:
            self.usage = usage
        if not event.get("choices") and (event.get("error") or str(event.get("type")).endswith(("error", "failed"))):
            self.error = text
        return event  # type: ignore[no-any-return]

    @property
    def body(self) -> bytes:
        """What was kept of an answer that is no stream."""
        return b"".join(self._json or ())

    def close(self) -> None:
        """The answer is over: read what could only be read whole."""
        body = self.body
        if not body:
            return
        self._json = []
        try:
            self._read(body)
        except (ValueError, TypeError, AttributeError):
            self.unread = True


def semantic(event: dict[str, Any]) -> bool:
    """Does this event carry model output, its end, or usage? Roles, pings and openings do not count."""
    kind = event.get("type")
    if isinstance(kind, str):
        return (
            kind.endswith(".delta")
            or kind.startswith(("content_block_delta", "message_delta"))
            or kind in {"response.completed", "response.incomplete"}
        )
    choices = event.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        choice = choices[0]
        if choice.get("finish_reason"):
            return True
        delta = choice.get("delta") or choice.get("message") or {}
        return any(value for key, value in delta.items() if key != "role")
    return isinstance(event.get("usage"), dict)


def usage_of(event: dict[str, Any]) -> dict[str, Any] | None:
    """The usage object of an event or answer, wherever its protocol puts it."""
    usage = event.get("usage")
    if isinstance(usage, dict):
        return usage
    for holder in (event.get("response"), event.get("message")):
        if isinstance(holder, dict) and isinstance(holder.get("usage"), dict):
            return holder["usage"]  # type: ignore[no-any-return]
    return None


def tokens(usage: dict[str, Any] | None) -> dict[str, int]:
    """Input, cached and output tokens of a usage object, in any of the spellings providers use."""
    if usage is None:
        return {}
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    cached = _first_int(
        details.get("cached_tokens") if isinstance(details, dict) else None,
        usage.get("cached_tokens"),
        usage.get("prompt_cache_hit_tokens"),
        usage.get("cache_read_input_tokens"),
    )
    found = {
        "input": _first_int(usage.get("prompt_tokens"), usage.get("input_tokens")),
        "cached": cached,
        "output": _first_int(usage.get("completion_tokens"), usage.get("output_tokens")),
    }
    return {name: count for name, count in found.items() if count is not None}


def _first_int(*candidates: object) -> int | None:
    for candidate in candidates:
        if isinstance(candidate, int) and not isinstance(candidate, bool):
            return candidate
    return None


def tap_for(head: ResponseHead, mono_ms: Callable[[], float]) -> Tap | None:
    """A tap for what can be read as it passes: not for compressed answers, which are counted as unread.

    An error is kept whatever it is, because somebody is to blame for it.
    """
    if head.status >= 400:
        return Tap(mono_ms, stream=False)
    coding = head.get(b"content-encoding")
    if coding is not None and coding.strip().lower() not in {b"", b"identity"}:
        return None
    kind = (head.get(b"content-type") or b"").lower()
    if b"event-stream" in kind:
        return Tap(mono_ms, stream=True)
    return Tap(mono_ms, stream=False) if b"json" in kind else None
