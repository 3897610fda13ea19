"""Instants and durations as people write and read them. Inside, both are milliseconds."""

import re
from datetime import UTC, datetime

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DURATION = re.compile(r"(\d{1,12})(ms|[smhdw])")


def parse_since(text: str, now: int) -> int:
    """A moment as unix ms.

    It may be a duration back from now (90s, 15m, 2h, 7d), an ISO time (local where it names no zone), or unix ms.

    Raises:
        ValueError: it is none of them.
    """
    text = text.strip()
    if found := _DURATION.fullmatch(text):
        return now - int(found[1]) * _UNITS_MS[found[2]]
    if text.isascii() and text.isdecimal() and len(text) == 13:
        return int(text)
    try:
        return int(datetime.fromisoformat(text).astimezone(UTC).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise ValueError("say how long ago (90s, 15m, 2h, 7d) or when (2026-11-30T14:00)") from None


def clock_time(at: object) -> str:
    """An instant in local time, to the millisecond."""
    if not isinstance(at, int | float) or isinstance(at, bool):
        return "-"
    try:
        local = datetime.fromtimestamp(at / 1000, UTC).astimezone()
    except (ValueError, OverflowError, OSError):
        return "-"
    return local.isoformat(sep=" ", timespec="milliseconds")[:23]


def duration(ms: float) -> str:
    """A duration in its largest sensible unit."""
    seconds = ms / 1000
    for limit, unit, name in ((90, 1, "s"), (5400, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds / 86_400:.0f} d"
