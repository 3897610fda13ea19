"""What the gateway says about an answer in its header fields: how long it took, who served it, when to come back.

All of it may be absent, doubled, reordered or nonsense; nothing here raises. ``Server-Timing`` is read after the
W3C grammar, leniently; ``Retry-After`` after RFC 9110, 10.2.3, a date relative to the answer's own ``Date``.
"""

import re
from collections.abc import Iterable, Mapping
from email.utils import mktime_tz, parsedate_tz
from math import isfinite
from typing import NamedTuple

# A month: the longest limit window the gateway has. Anything above is a mistake or a joke.
RETRY_AFTER_CEILING_MS = 31 * 86_400_000.0
# A day: no answer took longer; such a number is not a latency.
DURATION_CEILING_MS = 86_400_000.0

_LONGEST_NAME = 128

# The line as the gateway writes it. Seven digits are under the ceiling.
_USUAL = re.compile(
    rb"gateway;dur=(\d{1,7}(?:\.\d{1,9})?), ?upstream;dur=(\d{1,7}(?:\.\d{1,9})?), ?total;dur=(\d{1,7}(?:\.\d{1,9})?)"
)
_MEMBER = re.compile(rb'(?:[^,"]+|"(?:[^"\\]|\\.)*"?)+', re.DOTALL)
_PART = re.compile(rb'(?:[^;"]+|"(?:[^"\\]|\\.)*"?)+', re.DOTALL)
_NUMBER = re.compile(rb"(?:\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})(?:[eE][+-]?\d{1,3})?")
_SIGNED = re.compile(rb"-?(?:\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})(?:[eE][+-]?\d{1,3})?")

_NAMES = frozenset({b"x-opencode-endpoint-id", b"x-opencode-upstream-model-id", b"x-zen-model", b"x-opencode-log-id"})
_WAITS = frozenset({b"retry-after", b"retry-after-ms"})
_TOLD = _NAMES | _WAITS

FIELDS = frozenset({b"server-timing", b"date"}) | _TOLD


class Signals(NamedTuple):
    """What an answer's fields said; None where they said nothing."""

    gateway_ms: float | None = None
    upstream_ms: float | None = None  # to the provider's own head: not the first token
    total_ms: float | None = None
    endpoint: str | None = None
    upstream_model: str | None = None
    zen_model: str | None = None
    log_id: str | None = None
    retry_after_ms: float | None = None


NOTHING = Signals()


def read(fields: Iterable[tuple[bytes, bytes]], now_wall_ms: float | None = None) -> Signals:
    """Read an answer's fields. ``now_wall_ms`` stands in for ``Date`` where the answer has none."""
    noted: dict[bytes, bytes] = {}
    for name, value in fields:
        lower = name.lower()
        if lower not in noted:
            if lower in FIELDS:
                noted[lower] = value
        elif lower == b"server-timing":  # a list: its lines are one (RFC 9110, section 5.3)
            noted[lower] += b", " + value
    return read_noted(noted, now_wall_ms)


def read_noted(noted: Mapping[bytes, bytes], now_wall_ms: float | None = None) -> Signals:
    """Read an answer's fields, each of ``FIELDS`` with its first value, ``server-timing`` with all of them."""
    gateway = upstream = total = None
    line = noted.get(b"server-timing")
    if line is not None:
        usual = _USUAL.fullmatch(line)
        if usual is not None:
            gateway, upstream, total = map(float, usual.groups())
        else:
            timing = server_timing(line)
            gateway, upstream, total = timing.get(b"gateway"), timing.get(b"upstream"), timing.get(b"total")
    if _TOLD.isdisjoint(noted):
        return NOTHING if line is None else Signals(gateway, upstream, total)
    return Signals(
        gateway,
        upstream,
        total,
        _name(noted, b"x-opencode-endpoint-id"),
        _name(noted, b"x-opencode-upstream-model-id"),
        _name(noted, b"x-zen-model"),
        _name(noted, b"x-opencode-log-id"),
        None if _WAITS.isdisjoint(noted) else _wait(noted, now_wall_ms),
    )


def server_timing(value: bytes) -> dict[bytes, float]:
    """The durations in one ``Server-Timing`` line, ms by lower-cased metric name; the first of a name counts."""
    durations: dict[bytes, float] = {}
    quoted = b'"' in value
    for member in _MEMBER.findall(value) if quoted else value.split(b","):
        name, *params = (_PART.findall(member) if quoted else member.split(b";")) or [b""]
        for param in params:
            key, equals, raw = param.partition(b"=")
            if equals and key.strip().lower() == b"dur":
                duration = _number(raw.strip().strip(b'"').strip())
                if duration is not None and duration <= DURATION_CEILING_MS:
                    durations.setdefault(name.strip().lower(), duration)
                break
    return durations


def retry_after_ms(fields: Iterable[tuple[bytes, bytes]], now_wall_ms: float | None = None) -> float | None:
    """How long the answer asks to stay away, ms in [0, a month]; None when it does not say or says nonsense."""
    return read(fields, now_wall_ms).retry_after_ms


def _wait(noted: Mapping[bytes, bytes], now_wall_ms: float | None) -> float | None:
    exact = _number(_first(noted, b"retry-after-ms"), _SIGNED)
    if exact is not None:
        return _clamp(exact)
    after = _first(noted, b"retry-after")
    seconds = _number(after, _SIGNED)
    if seconds is not None:
        return _clamp(seconds * 1000.0)
    until = _date_ms(after)
    if until is None:
        return None
    # The two dates come from one clock, so ours may be as wrong as it likes.
    since = _date_ms(_first(noted, b"date"))
    since = now_wall_ms if since is None else since
    return None if since is None else _clamp(until - since)


def _name(noted: Mapping[bytes, bytes], field: bytes) -> str | None:
    """What a field calls something, if it does."""
    return (_text(noted[field]) or None) if field in noted else None


def _first(noted: Mapping[bytes, bytes], name: bytes) -> bytes:
    return noted[name].strip() if name in noted else b""


def _clamp(wait_ms: float) -> float:
    return min(max(wait_ms, 0.0), RETRY_AFTER_CEILING_MS)


def _number(raw: bytes, form: re.Pattern[bytes] = _NUMBER) -> float | None:
    """A finite number in plain notation; ``float`` alone would take "inf", "nan" and "1_000"."""
    if not form.fullmatch(raw):
        return None
    number = float(raw)
    return number if isfinite(number) else None


def _date_ms(raw: bytes) -> float | None:
    if not raw:
        return None
    try:
        parts = parsedate_tz(raw.decode("ascii"))
        return None if parts is None else mktime_tz(parts) * 1000.0
    except (ValueError, TypeError, OverflowError, IndexError):  # odd dates break the standard library's parser
        return None


def _text(value: bytes) -> str:
    text = value.strip()[:_LONGEST_NAME].decode("utf-8", "replace")
    return text if text.isprintable() else "".join(mark for mark in text if mark.isprintable())
