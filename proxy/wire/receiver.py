"""Who is told of an answer's head, who gets its body, and how a body ends."""

from enum import Enum
from typing import Protocol

from proxy.errors import ProxyError
from proxy.wire.head import ResponseHead


class End(Enum):
    """How a body ended, as far as its connection can tell."""

    COMPLETE = "complete"
    TRUNCATED = "truncated"


class Asker(Protocol):
    """Who asked for an answer. Called once, from the event loop's callbacks: it must neither raise nor block."""

    def answered(self, head: ResponseHead) -> None:
        """The head is here, and perhaps a piece of the body."""

    def failed(self, error: ProxyError) -> None:
        """There will be no head."""


class Receiver(Protocol):
    """Who gets a body. Called from the event loop's callbacks: it must neither raise nor block."""

    def body(self, data: bytes) -> None:
        """Bytes of the body, framing included."""

    def end(self, how: End) -> None:
        """Nothing more will come."""
