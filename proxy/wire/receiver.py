"""Who is told of an answer's head, who gets its body, and how a body ends."""

from collections.abc import Callable
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


class Through(Protocol):
    """A receiver that need not be asked about each small chunk: it is written on at once, and told of it later.

    ``write`` gets the bytes, framing included; a RuntimeError of it says that it takes no more.
    """

    @property
    def write(self) -> Callable[[bytes], None]:
        """Where small chunks go."""

    @property
    def patient(self) -> bool:
        """May what comes next be told later? Asked after each piece that did not go through."""

    def passed(self, pieces: list[bytes], size: int) -> None:
        """What went through since the last time: the data of each chunk, and how much it was with its framing."""
