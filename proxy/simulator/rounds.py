"""The other published policy to compare with: rounds of candidates before a session's first call.

Written from the README of dsh-plugin-opencode-route, with its defaults. What it leaves open is chosen in its favour:
an admissible natural id ends the round at once, and candidates that a round left over are leased before new ones are
tried.
"""

from dataclasses import dataclass, field
from typing import Final

from proxy.simulator.baselines import HOUR_MS, MINUTE_MS, Off, new_id
from proxy.simulator.draw import Draw
from proxy.simulator.policies import Answer, Asked, Probe


@dataclass(slots=True)
class _Session:
    """What is known of one session. ``pinned`` None: its natural id."""

    tried: list[str] = field(default_factory=list)
    found: list[tuple[float, str]] = field(default_factory=list)
    decided: bool = False
    pinned: str | None = None
    promised_tps: float | None = None
    corrected: bool = False
    strikes: int = 0
    turns: int = 0
    tokens: int = 0


@dataclass(slots=True)
class Plugin(Off):
    """Probes the natural id first, keeps it if it is admissible, else leases the best candidate and pins it.

    A pin is never moved but for a 429, a timeout, one correction after the first real turn, or strikes before its cache
    is locked.
    """

    seed: int = 1
    candidates: Final[int] = 4
    max_tokens: Final[int] = 96
    timeout_ms: Final[float] = 25_000.0
    ttfb_max_ms: Final[float] = 5_000.0
    total_max_ms: Final[float] = 15_000.0
    target_tps: Final[float] = 150.0
    degrade_tps: Final[float] = 70.0
    strikes_to_evict: Final[int] = 2
    degrade_ttfb_ms: Final[float] = 20_000.0
    size: Final[int] = 4
    ttl_ms: Final[float] = 5 * MINUTE_MS
    negative_ttl_ms: Final[float] = MINUTE_MS
    max_probes_per_hour: Final[int] = 40
    lock_turns: Final[int] = 2
    lock_tokens: Final[int] = 20_000
    _sessions: dict[str, _Session] = field(default_factory=dict)
    _pool: list[tuple[float, float, str]] = field(default_factory=list)  # found at, tokens per second, id
    _asked_at: list[float] = field(default_factory=list)
    _quiet_until: float = 0.0
    _deciding: str = ""
    _made: int = 0

    def before(self, asked: Asked, now: float) -> Probe | None:
        """The next candidate of a session's round; None: it is decided."""
        known = self._sessions.setdefault(asked.session, _Session())
        if known.decided:
            return None
        self._asked_at = [at for at in self._asked_at if now - at < HOUR_MS]
        spent = len(self._asked_at) >= self.max_probes_per_hour
        if self._round_over(asked, known, now) or spent or now < self._quiet_until:
            self._decide(known, now)
            return None
        session = asked.session if not known.tried else self._new()
        known.tried.append(session)
        self._asked_at.append(now)
        self._deciding = asked.session
        return Probe(session, self.max_tokens, stream=True, timeout_ms=self.timeout_ms)

    def probed(self, probe: Probe, answer: Answer, now: float) -> None:  # noqa: ARG002
        """Admissible: alive, a first token in 5 s, done in 15 s, and of the fast shape or fast enough."""
        known = self._sessions[self._deciding]
        alive = answer.status == 200 and answer.complete and answer.first_ms is not None
        in_time = (answer.first_ms or 0.0) <= self.ttfb_max_ms and answer.took_ms <= self.total_max_ms
        speed = answer.tokens_per_s or 0.0
        if alive and in_time and (answer.plan.body_id.startswith("gw-") or speed >= self.degrade_tps):
            known.found.append((speed, probe.session))

    def session(self, asked: Asked, now: float) -> str:  # noqa: ARG002
        known = self._sessions[asked.session]
        return known.pinned or asked.session

    def ended(self, asked: Asked, session: str, answer: Answer, now: float) -> None:  # noqa: ARG002
        """A 429 and a timeout evict at any time; a bad estimate is corrected once, strikes count until the lock."""
        known = self._sessions[asked.session]
        if answer.status == 429 or answer.status is None:
            self._evict(known)
            return
        speed = answer.tokens_per_s
        if answer.status != 200 or speed is None:
            return
        locked = known.turns >= self.lock_turns or known.tokens >= self.lock_tokens
        known.turns += 1
        known.tokens = max(known.tokens, answer.plan.prompt_tokens)
        if known.turns == 1 and known.promised_tps and speed < 0.6 * known.promised_tps and not known.corrected:
            known.corrected = True
            self._evict(known)
        elif not locked and (speed < self.degrade_tps or (answer.first_ms or 0.0) > self.degrade_ttfb_ms):
            known.strikes += 1
            if known.strikes >= self.strikes_to_evict:
                self._evict(known)

    def _round_over(self, asked: Asked, known: _Session, now: float) -> bool:
        if not known.tried:
            return False
        admissible = {session for _, session in known.found}
        leftover = any(now - at <= self.ttl_ms for at, _, _ in self._pool)
        reached = any(speed >= self.target_tps for speed, _ in known.found)
        return asked.session in admissible or leftover or reached or len(known.tried) >= self.candidates

    def _decide(self, known: _Session, now: float) -> None:
        """Keep the natural id if it was found admissible, else lease the best there is."""
        known.decided = True
        natural = known.tried[0] if known.tried else None
        kept = next((speed for speed, session in known.found if session == natural), None)
        if kept is not None:
            known.pinned, known.promised_tps = None, kept
            return
        fresh = [(speed, session) for at, speed, session in self._pool if now - at <= self.ttl_ms]
        best = max([*fresh, *known.found], default=None)
        if best is None:
            known.pinned, known.promised_tps = None, None
            if known.tried:
                self._quiet_until = now + self.negative_ttl_ms
            return
        known.promised_tps, known.pinned = best
        left = [(now, *one) for one in known.found] + [one for one in self._pool if now - one[0] <= self.ttl_ms]
        self._pool = sorted((one for one in left if one[2] != best[1]), key=lambda one: -one[1])[: self.size]

    def _evict(self, known: _Session) -> None:
        known.decided, known.pinned, known.promised_tps = False, None, None
        known.tried, known.found, known.strikes = [], [], 0

    def _new(self) -> str:
        self._made += 1
        return new_id(Draw.about("plugin", self.seed), self._made)
