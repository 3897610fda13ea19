"""What the gateway writes down about each request it was sent."""

import hashlib
from dataclasses import dataclass, field


def digest(value: str) -> str:
    """The first 8 hex digits of a value's SHA-256, which stand for it wherever it is shown."""
    return hashlib.sha256(value.encode()).hexdigest()[:8]


@dataclass(slots=True)
class Record:
    """One request and what became of it. Instants are unix ms and durations ms, of the gateway's clock.

    Attributes:
        session: The value the gateway routed by, as sent.
        session_fields: Every field that is known to carry a session, name in lower case, in order.
        fields: The whole head as received.
        key_digest: Digest of the credential.
        probe: One token asked for by ``ocpool/...``.
        endpoint: Who served it; None when no endpoint was reached.
        bad: The endpoint is one to stay away from.
        error: Class of a refusal, as ``GoUsageLimitError``.
        fault: How the reply was broken, when it was.
        head_ms: From the request's arrival (its head read) to the reply's head on the socket.
        ttfb_ms: The same, to the first byte of the reply's body.
        ended: Nothing more happens to it.
        aborted: The client left before the end.
    """

    number: int
    at: int
    method: str
    path: str
    fields: tuple[tuple[bytes, bytes], ...] = ()
    user_agent: str = ""
    provider: str = ""
    api: str = ""
    session: str | None = None
    session_fields: tuple[tuple[str, str], ...] = ()
    model: str | None = None
    stream: bool = False
    max_tokens: int | None = None
    probe: bool = False
    key_digest: str | None = None
    body_sha256: str = ""
    body_bytes: int = 0
    endpoint: str | None = None
    bad: bool = False
    status: int | None = None
    error: str | None = None
    fault: str | None = None
    log_id: str = ""
    upstream_ms: float | None = None
    head_ms: float | None = None
    ttfb_ms: float | None = None
    ended_ms: float | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    sent_bytes: int = 0
    ended: bool = False
    aborted: bool = False
    body: bytes = field(default=b"", repr=False)

    def facts(self) -> dict[str, object]:
        """The record as plain facts that may be printed: ids as digests, no fields, no body."""
        hidden = {"session", "session_fields", "fields", "body", "ended"}
        shown = {name: getattr(self, name) for name in self.__slots__ if name not in hidden}
        shown["session"] = digest(self.session) if self.session else None
        return shown
