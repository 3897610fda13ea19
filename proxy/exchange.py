"""What is known of one request while it passes: facts only, filled in by each step and read by ``settle``."""

from dataclasses import dataclass

from pool.model import Start
from proxy.answers.usage import Usage
from proxy.conversation.registry import Resolved
from proxy.errors import ProxyError
from proxy.gateway.paths import Target
from proxy.gateway.refusals import Refusal
from proxy.gateway.signals import Signals
from proxy.pace import Pace
from proxy.pour import Ended
from proxy.tap import Tap
from proxy.verdict import Verdict
from proxy.wire.head import ResponseHead


@dataclass(slots=True)
class Exchange:
    """One client request and all attempts made for it. ``_ms`` instants are monotonic, ``at`` is unix time.

    ``scope`` is who asks, ``model`` and ``stream`` what the body asks for.
    """

    id: int
    at: int
    began_ms: float
    method: bytes
    target: Target
    scope: str = ""
    model: str | None = None
    stream: bool = False
    resolved: Resolved | None = None
    start: Start | None = None
    rewrote: bool = False  # the session fields that left are not the client's own
    bypassed: bool = False  # the client's own fields are sent: the provider is bypassed, or this is the way-out replay
    attempts: int = 0
    replayed: bool = False
    bytes_in: int = 0
    sent_ms: float = 0.0
    head_ms: float | None = None
    status: int | None = None
    head: ResponseHead | None = None
    signals: Signals | None = None
    refusal: Refusal | None = None
    tap: Tap | None = None
    pace: Pace | None = None  # only where routes are chosen by speed
    used: Usage | None = None  # tokens, as far as the answer says
    bytes_out: int = 0
    ended: Ended | None = None
    error: ProxyError | None = None
    verdict: Verdict | None = None

    @property
    def sent_at(self) -> int:
        """When the last attempt left, unix ms."""
        return self.at + int(self.sent_ms - self.began_ms)

    @property
    def label(self) -> str | None:
        """The conversation's opaque label."""
        return self.resolved.conversation.label if self.resolved is not None else None

    @property
    def match(self) -> str | None:
        """The rule that told the conversation."""
        return self.resolved.match if self.resolved is not None else None
