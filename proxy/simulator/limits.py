"""Limits of an account and trouble of the whole service, each for a window of time.

A limit is the key's: every session id of the key is refused alike, and rotating ids does not help.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal

from proxy.simulator.refusals import Refusal, overloaded, unavailable

WORKSPACE: Final = "wrk_01SIMULATED0000000000000000"


def _go_limit(window: str) -> Refusal:
    return Refusal(
        429,
        "GoUsageLimitError",
        f"You have reached your {window} usage limit for OpenCode Go.",
        by="site",
        metadata={"workspace": WORKSPACE, "limitName": window},
    )


LIMITS: Final[dict[str, Refusal]] = {
    "GoUsageLimitError": _go_limit("5 hour"),
    "GoUsageLimitError:weekly": _go_limit("weekly"),
    "GoUsageLimitError:monthly": _go_limit("monthly"),
    "RateLimitError": Refusal(
        429, "RateLimitError", "Rate limit exceeded. Please try again later.", by="site", metadata={}
    ),
    "FreeUsageLimitError": Refusal(
        429, "FreeUsageLimitError", "Rate limit exceeded. Please try again later.", by="site"
    ),
    "BlackUsageLimitError": Refusal(
        429, "BlackUsageLimitError", "You have reached your usage limit.", by="site", metadata={}
    ),
    "rate_limit_exceeded": Refusal(
        429,
        "rate_limit_exceeded",
        "Upstream request failed: [rate_limit_exceeded] Rate limit exceeded. Please retry after a brief wait.",
        envelope="service",
        type="rate_limit_error",
        code="rate_limit_exceeded",
        took_ms=150.0,
    ),
    "insufficient_funds": Refusal(
        402,
        "server_error",
        "Upstream request failed: Insufficient account funds",
        envelope="service",
        type="server_error",
    ),
    "MonthlyLimitError": Refusal(
        401, "MonthlyLimitError", "Your workspace has reached its monthly spending limit.", by="site"
    ),
    "CreditsError": Refusal(401, "CreditsError", "Insufficient balance.", by="site"),
    "overloaded": overloaded(529, 300.0),
    "unavailable": unavailable(),
}


@dataclass(frozen=True, slots=True)
class Window:
    """When something refuses.

    Attributes:
        name: A key of `LIMITS`.
        from_ms, for_ms: Since the world's beginning, and how long.
        every_ms: It comes back this often; 0: once.
        provider, model, endpoint: Only this one; None: all.
        retry_after: Seconds to tell, ``rest`` for what is left of the window, or None to tell nothing.
        status: In place of the usual one.
    """

    name: str
    from_ms: float
    for_ms: float
    every_ms: float = 0.0
    provider: str | None = None
    model: str | None = None
    endpoint: str | None = None
    retry_after: int | Literal["rest"] | None = None
    status: int | None = None

    def left_ms(self, at_ms: float) -> float:
        """What is left of it at a time since the world's beginning; 0 or less outside."""
        since = at_ms - self.from_ms
        if since < 0:
            return 0.0
        if self.every_ms:
            since %= self.every_ms
        return self.for_ms - since

    def refusal(self, provider: str, model: str, endpoint: str | None, at_ms: float) -> Refusal | None:
        """The refusal of a request on ``endpoint`` (None: none chosen yet), if it falls in here."""
        left = self.left_ms(at_ms)
        elsewhere = self.model not in {None, model} or self.provider not in {None, provider}
        if left <= 0 or elsewhere or self.endpoint != endpoint:
            return None
        base = LIMITS[self.name]
        seconds = int(left / 1000) + 1 if self.retry_after == "rest" else self.retry_after
        told = int(seconds) if seconds is not None else None
        return replace(base, status=self.status or base.status, retry_after_s=told)
