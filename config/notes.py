"""What the sources of settings leave behind beside values: where each came from, and what was wrong there."""

from dataclasses import dataclass, field

KeyPath = tuple[str, ...]
"""("pool", "size"), or ("models", "kimi-k3", "timeout_ms")."""


@dataclass(slots=True)
class Notes:
    """One for all sources. Problems are refusals, warnings are said and lived with."""

    origins: dict[KeyPath, str] = field(default_factory=dict)  # "environment PI_OCPOOL_SIZE", "command line"
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def came(self, path: KeyPath, origin: str) -> None:
        """A key has a value from there, unless a source of higher rank, which is read before, has one too."""
        self.origins.setdefault(path, origin)
