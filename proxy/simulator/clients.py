"""Coding clients as they were seen on the wire: what they send, and how they retry."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ldexp
from typing import Final, Literal

from proxy.simulator.draw import Draw

Named = tuple[tuple[str, str], ...]
_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Refused:
    """How an attempt failed; ``status`` is None for a connection that died."""

    status: int | None
    retry_after_s: float | None = None
    message: str = ""


Wait = Callable[[int, Refused], float | None]


def _pi_wait(attempt: int, refused: Refused) -> float | None:
    """Three times, 2 s doubling up to 60 s, by what the message says; never for a limit of the account."""
    final = ("UsageLimitError", "Monthly usage limit reached", "available balance", "billing")
    hopeless = any(word in refused.message for word in final)
    passing = refused.status is None or refused.status == 429 or refused.status >= 500
    if attempt > 3 or hopeless or not passing:
        return None
    return min(ldexp(2_000.0, attempt - 1), 60_000.0)


def _opencode_wait(attempt: int, refused: Refused) -> float | None:
    """As long as it is told, without a bound; else 2 s doubling up to 30 s."""
    passing = refused.status is None or refused.status == 429 or refused.status >= 500
    if attempt > 10 or not passing:
        return None
    if refused.retry_after_s is not None:
        return refused.retry_after_s * 1000
    return min(ldexp(2_000.0, attempt - 1), 30_000.0)


def _sdk_wait(attempt: int, refused: Refused) -> float | None:
    """Twice; as told if that is at most a minute, else half a second doubling up to 8 s."""
    passing = refused.status is None or refused.status in {408, 409, 429} or refused.status >= 500
    if attempt > 2 or not passing:
        return None
    if refused.retry_after_s is not None and 0 < refused.retry_after_s <= 60:
        return refused.retry_after_s * 1000
    return min(ldexp(500.0, attempt - 1), 8_000.0)


@dataclass(frozen=True, slots=True)
class Client:
    """One of them.

    Attributes:
        ids: How it spells a session id; ``none``: it sends none.
        session_fields: Where it puts it.
        fixed: Fields it always sends.
        titles: It asks for a title beside the first turn, on the same session.
        warms: It keeps an idle conversation's cache warm with requests for one token.
        wait_ms: How long it waits before a retry; None: it gives up. Attempts count from 1.
    """

    name: str
    user_agent: str
    ids: Literal["uuid7", "ses", "none"]
    session_fields: tuple[str, ...]
    wait_ms: Wait
    fixed: Named = ()
    titles: bool = False
    warms: bool = False

    def session(self, draw: Draw, at_ms: float) -> str:
        """A new session's id; the same for the same draw and time."""
        if self.ids == "none":
            return ""
        if self.ids == "ses":
            stamp = ~(int(at_ms) * 4096 + 1) & (2**48 - 1)
            return f"ses_{stamp:012x}" + "".join(draw.one_of(f"base62 {place}", _BASE62) for place in range(14))
        digits = (
            f"{int(at_ms) & (2**48 - 1):012x}7{draw.hex('a', 3)}{draw.one_of('variant', '89ab')}{draw.hex('b', 15)}"
        )
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    def fields(self, session: str, key: str, message_id: str, parent: str = "") -> Named:
        """The head's fields, without the hop's own; ``parent`` is the session that started a sub-agent's."""
        sent = [("content-type", "application/json"), ("authorization", f"Bearer {key}"), *self.fixed]
        sent += [(name, session) for name in self.session_fields if session]
        if "x-opencode-session" in self.session_fields and self.ids == "ses":
            sent.append(("x-opencode-request", message_id))
        if parent and self.ids == "ses":
            sent.append(("x-parent-session-id", parent))
        sent.append(("user-agent", self.user_agent))
        return tuple(sent)


PI: Final = Client(
    "pi",
    "pi/1.6.0 (linux; node/v22.11.0; x64)",
    "uuid7",
    ("x-opencode-session",),
    _pi_wait,
    (("x-opencode-client", "pi"),),
    warms=True,
)
OPENCODE: Final = Client(
    "opencode",
    "opencode/1.18.33",
    "ses",
    ("x-opencode-session",),
    _opencode_wait,
    (("x-opencode-client", "cli"), ("x-opencode-project", "global")),
    titles=True,
)
OPENCODE_CUSTOM: Final = Client(
    "opencode-custom", "opencode/1.18.33", "ses", ("x-session-affinity", "x-session-id"), _opencode_wait, titles=True
)
SDK: Final = Client("sdk", "OpenAI/Python 3.57.0", "none", (), _sdk_wait, (("x-stainless-lang", "python"),))
CLIENTS: Final = (PI, OPENCODE, OPENCODE_CUSTOM, SDK)
