"""Who gets a body, and how a body ends."""

from enum import Enum
from typing import Protocol


class End(Enum):
    """How a body ended, as far as its connection can tell."""

    COMPLETE = "complete"
    TRUNCATED = "truncated"


class Receiver(Protocol):
    """Who gets a body. Called from the event loop's callbacks: it must neither raise nor block."""

    def body(self, data: bytes) -> None:
        """Bytes of the body, framing included."""

    def end(self, how: End) -> None:
        """Nothing more will come."""
