"""Policies to compare with: none at all, and the two that were published, each written from its own documents.

They share nothing with the product. Where a document leaves something open, the choice that serves it best is taken
and said so.
"""

from dataclasses import dataclass, field
from typing import Final

from proxy.simulator.draw import Draw
from proxy.simulator.policies import Answer, Asked, Probe

HOUR_MS: Final = 3_600_000.0
MINUTE_MS: Final = 60_000.0


def new_id(draw: Draw, number: int) -> str:
    """A new id; the same for the same draw and number."""
    digits = draw.hex(f"id {number}", 32)
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


@dataclass(slots=True)
class Off:
    """Every conversation goes out on its client's own id."""

    model: str

    def before(self, asked: Asked, now: float) -> Probe | None:  # noqa: ARG002  (a policy's calls, here and below)
        return None

    def session(self, asked: Asked, now: float) -> str:  # noqa: ARG002
        return asked.session

    def again(self, asked: Asked, session: str, answer: Answer, now: float) -> str | None:  # noqa: ARG002
        return None

    def headed(self, asked: Asked, session: str, answer: Answer, now: float) -> None:
        """Nothing is learnt."""

    def ended(self, asked: Asked, session: str, answer: Answer, now: float) -> None:
        """Nor at the end."""

    def probe(self, now: float) -> Probe | None:  # noqa: ARG002
        return None

    def probed(self, probe: Probe, answer: Answer, now: float) -> None:
        """There are no probes."""


@dataclass(slots=True)
class _Spare:
    session: str
    upstream_ms: float
    verified_at: float


@dataclass(slots=True)
class _Owned:
    session: str
    last_seen_at: float
    failures: int = 0


@dataclass(slots=True)
class Extension(Off):
    """pi-opencode-session-pool 0.1.4 at its defaults, as its README and its design document say.

    Verified spares in a pool, one taken by each conversation, all probing in the background. A 429 or 8 s retire an
    id at once, and so does the second of two turns of 6 s. It reads ``server-timing`` of live answers and has no other
    clock for them.
    """

    seed: int = 1
    size: Final[int] = 3
    ttl_ms: Final[float] = 30 * MINUTE_MS
    max_upstream_ms: Final[float] = 2_500.0
    timeout_ms: Final[float] = 10_000.0
    refresh_ms: Final[float] = 5 * MINUTE_MS
    refill_delay_ms: Final[float] = 15_000.0
    degrade_ms: Final[float] = 6_000.0
    quarantine_ms: Final[float] = 8_000.0
    lease_ms: Final[float] = 8 * HOUR_MS
    max_bindings: Final[int] = 256
    _spares: dict[str, _Spare] = field(default_factory=dict)
    _owned: dict[str, _Owned] = field(default_factory=dict)
    _refresh_at: float | None = None
    _refill_at: float | None = None
    _cycle_left: int = 0
    _quiet_until: float = 0.0
    _stopped: bool = False
    _made: int = 0

    def session(self, asked: Asked, now: float) -> str:
        """Its own id, else the best fresh spare, else the client's."""
        if self._refresh_at is None:
            self._refresh_at = now + self.refresh_ms
        if asked.turn == 0:
            self._hurry(now)
        owned = self._owned.get(asked.session)
        if owned is not None and now - owned.last_seen_at <= self.lease_ms:
            owned.last_seen_at = now
            return owned.session
        fresh = [spare for spare in self._spares.values() if now - spare.verified_at <= self.ttl_ms]
        if not fresh:
            self._owned.pop(asked.session, None)
            return asked.session
        best = min(fresh, key=lambda spare: (spare.upstream_ms, spare.session))
        del self._spares[best.session]
        self._owned[asked.session] = _Owned(best.session, now)
        self._drop_oldest()
        self._hurry(now)
        return best.session

    def headed(self, asked: Asked, session: str, answer: Answer, now: float) -> None:
        """Every real response is looked at when its head is there."""
        owned = self._owned.get(asked.session)
        if owned is None or owned.session != session or answer.status is None:
            return
        owned.last_seen_at = now
        took = answer.upstream_ms
        if answer.status == 429 or (took is not None and took >= self.quarantine_ms):
            del self._owned[asked.session]
        elif took is not None and took >= self.degrade_ms:
            owned.failures += 1
            if owned.failures >= 2:
                del self._owned[asked.session]
        elif took is not None:
            owned.failures = 0

    def probe(self, now: float) -> Probe | None:
        """Stale spares are verified first, then new ids are tried, at most twice ``size`` in a cycle."""
        due = any(at is not None and now >= at for at in (self._refresh_at, self._refill_at))
        if due and not self._cycle_left:
            self._cycle_left = 2 * self.size
            self._refresh_at, self._refill_at = now + self.refresh_ms, None
        if not self._cycle_left or self._stopped or now < self._quiet_until:
            return None
        stale = [spare for spare in self._spares.values() if now - spare.verified_at > self.ttl_ms]
        if not stale and len(self._spares) >= self.size:
            self._cycle_left = 0
            return None
        self._cycle_left -= 1
        if stale:
            return Probe(stale[0].session, 1, stream=False, timeout_ms=self.timeout_ms, again=True)
        self._made += 1
        new = new_id(Draw.about("extension", self.seed), self._made)
        return Probe(new, 1, stream=False, timeout_ms=self.timeout_ms)

    def probed(self, probe: Probe, answer: Answer, now: float) -> None:
        """A fast one is a spare, with what it was measured at; a slow one is none (any more)."""
        self._spares.pop(probe.session, None)
        if answer.status == 200 and answer.complete:
            took = answer.took_ms if answer.upstream_ms is None else answer.upstream_ms
            if took <= self.max_upstream_ms:
                self._spares[probe.session] = _Spare(probe.session, took, now)
        elif answer.status in {400, 401, 403}:
            self._stopped = True
        elif answer.status == 429:
            self._quiet_until = now + (answer.retry_after_ms or 0.0)

    def _hurry(self, now: float) -> None:
        if self._refill_at is None:
            self._refill_at = now + self.refill_delay_ms

    def _drop_oldest(self) -> None:
        while len(self._owned) > self.max_bindings:
            del self._owned[min(self._owned, key=lambda key: self._owned[key].last_seen_at)]
