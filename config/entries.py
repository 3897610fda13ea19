"""What a source of settings hands over: values by path, each with where it came from, and what was wrong there."""

from dataclasses import dataclass, field
from typing import Any

Path = tuple[str, ...]
"""("pool", "size"), or ("models", "kimi-k3", "timeout_ms")."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One value from one source; not yet known to be in range."""

    path: Path
    value: Any
    origin: str  # "environment PI_OCPOOL_SIZE", "file /etc/ocpool.toml", "command line"


@dataclass(slots=True)
class Found:
    """Everything one source said. Problems are refusals, warnings are said and lived with."""

    entries: list[Entry] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
