"""When probes stay away: limit windows, refused credentials, Retry-After, an open circuit, a waking machine.

Live requests are never held up by any of this; a live answer is what ends most of it.
"""

from enum import StrEnum
from typing import NamedTuple

ANY = None  # any scope, or any model
LIMIT_MS = 60_000  # of a limit that names no window
DISTURBED_MS = 15_000
REJECTED_MS = 3_600_000


class Reason(StrEnum):
    """Why; a caller of ``pause`` may give words of its own."""

    LIMIT = "limit"
    UNAUTHORIZED = "unauthorized"  # a probe's 401 or 403
    CREDENTIAL = "credential refused"  # a live request's
    REJECTED = "rejected"
    RETRY_AFTER = "retry-after"
    FAULT = "gateway at fault"
    DISTURBED = "disturbed"
    CAPPED = "hourly cap"


class Area(NamedTuple):
    """What a pause covers; None covers any."""

    provider: str | None
    scope: str | None = ANY
    model: str | None = ANY

    def covers(self, provider: str, scope: str | None, model: str | None) -> bool:
        """Does it hold for that one; asking with None asks for a pause that holds for all."""
        return self.provider in {None, provider} and self.scope in {ANY, scope} and self.model in {ANY, model}


class Pause(NamedTuple):
    """``until`` None: until something ends it."""

    until: int | None
    reason: str


FAR = 2**53  # what "until something ends it" is as an instant


class Pauses:
    """The pauses in force, at most one a reason and area."""

    __slots__ = ("in_force",)

    def __init__(self) -> None:
        self.in_force: dict[tuple[Area, str], Pause] = {}

    def begin(self, area: Area, until: int | None, reason: str) -> bool:
        """Start or prolong; True when there was none of this kind."""
        known = self.in_force.get((area, reason))
        if known is not None and (known.until is None or (until is not None and until <= known.until)):
            return False
        self.in_force[area, reason] = Pause(until, reason)
        return known is None

    def end(self, reason: str, provider: str | None = None, scope: str | None = None) -> bool:
        """End those of a reason, of one provider and scope where given; were there any?"""
        gone = [
            key
            for key in self.in_force
            if key[1] == reason and provider in {None, key[0].provider} and scope in {None, key[0].scope}
        ]
        for key in gone:
            del self.in_force[key]
        return bool(gone)

    def credential_works(self, provider: str, scope: str) -> list[str]:
        """A live 2xx ends what stood against this credential, and what another's refused probe had stopped.

        A configured key (scope "") is not helped by somebody else's working: only a reload is.
        """
        if not self.in_force:
            return []
        ended = [r.value for r in (Reason.LIMIT, Reason.CREDENTIAL) if self.end(r, provider, scope)]
        others = {area.scope for area, reason in self.in_force if reason == Reason.UNAUTHORIZED}
        stopped = [self.end(Reason.UNAUTHORIZED, provider, other) for other in others - {scope, "", ANY}]
        if any(stopped):
            ended.append(Reason.UNAUTHORIZED.value)
        return ended

    def active(self, provider: str, scope: str | None, model: str | None, now: int) -> tuple[int, str] | None:
        """The pause that lasts longest, as (until, reason); None: go ahead."""
        self._expire(now)
        found = [p for (area, _), p in self.in_force.items() if area.covers(provider, scope, model)]
        if not found:
            return None
        longest = max(found, key=lambda pause: FAR if pause.until is None else pause.until)
        return (FAR if longest.until is None else longest.until, longest.reason)

    def view(self, now: int) -> list[dict[str, object]]:
        """All of them, for the status page."""
        self._expire(now)
        return [
            {"provider": area.provider, "model": area.model, "until": pause.until, "reason": pause.reason}
            for (area, _), pause in self.in_force.items()
        ]

    def clock_stepped(self, step_ms: int) -> None:
        """The clock was set; what is left of each pause stays the same."""
        for key, pause in self.in_force.items():
            if pause.until is not None:
                self.in_force[key] = pause._replace(until=pause.until + step_ms)

    def _expire(self, now: int) -> None:
        over = [key for key, pause in self.in_force.items() if pause.until is not None and pause.until <= now]
        for key in over:
            del self.in_force[key]
