"""The budgeted acquisition: how a request that may wait looks for a fast id before it is sent.

Off by default (budgets of 0). The order is that of pi-opencode-session-pool: a fresh spare, else the best stale
one verified, else new ids one after the other, each probe within what is left of the budget. A sync state
machine; the caller probes and feeds::

    while isinstance(step := search.next(now), ProbeThis):
        await sleep(step.wait_ms); search.feed(await probe(step.id, step.timeout_ms), now)
    # step is Found(start) or GiveUp(reason): send on what it names
"""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from config.settings import Settings
from pool.ids import new_id
from pool.model import ProbeKind, ProbeResult, Spare, Start, Stock

LEAST_BUDGET_MS: Final = 1_500  # a healthy route needs up to 2 s; less would discard a good id
STOPS: Final = frozenset({ProbeKind.UNAUTHORIZED, ProbeKind.REJECTED, ProbeKind.LIMIT, ProbeKind.TRANSPORT})


class ProbeThis(NamedTuple):
    """Probe this id: wait ``wait_ms`` first, and abort after ``timeout_ms``."""

    id: str
    stock: Stock
    timeout_ms: float
    wait_ms: float


class Found(NamedTuple):
    """The conversation is bound: send on this."""

    start: Start


class GiveUp(NamedTuple):
    """Nothing fast within the budget: send on the start that was there."""

    start: Start
    reason: str


class Ground(Protocol):
    """What a search needs of the pool it works for."""

    def take_fresh(self, start: Start, now: int) -> Start | None: ...
    def take_stale(self, start: Start, now: int) -> Spare | None: ...
    def put_back(self, spare: Spare) -> None: ...
    def bind_found(self, start: Start, spare: Spare, now: int) -> Start: ...
    def told(self, start: Start, stock: Stock, result: ProbeResult, *, again: bool) -> None: ...
    def learn(self, stock: Stock, result: ProbeResult, now: int) -> None: ...
    def probe_ready_at(self, stock: Stock, now: int) -> int | None: ...
    def search_over(self, start: Start, found: bool, now: int) -> None: ...


class Search:
    """One acquisition with a budget, from ``now`` on."""

    __slots__ = ("_asked", "_deadline", "_ground", "_left", "_over", "_settings", "_stock", "start")

    def __init__(self, ground: Ground, settings: Settings, stock: Stock, start: Start, now: int) -> None:
        self.start = start
        self._ground = ground
        self._settings = settings
        self._stock = stock
        self._deadline = now + start.budget_ms
        self._asked: Spare | str | None = None  # the stale spare, or new id, that is being probed
        self._left: Callable[[int], float] = lambda at: self._deadline - at
        self._over: Found | GiveUp | None = None

    def next(self, now: int) -> ProbeThis | Found | GiveUp:
        """What to do now; once it is Found or GiveUp, it stays so."""
        if self._over is not None:
            return self._over
        found = self._ground.take_fresh(self.start, now)
        if found is not None:
            return self._finish(Found(found), now)
        ready_at = self._ground.probe_ready_at(self._stock, now)
        if ready_at is None:
            return self._finish(GiveUp(self.start, "paused"), now)
        wait_ms = max(0, ready_at - now)
        left = self._left(now) - wait_ms
        if left < LEAST_BUDGET_MS:
            return self._finish(GiveUp(self.start, "budget"), now)
        self._asked = self._ground.take_stale(self.start, now) or new_id(self._stock.shape)
        timeout = min(left, self._settings.probe_for(self._stock.model).timeout_ms)
        asked = self._asked
        return ProbeThis(asked.id if isinstance(asked, Spare) else asked, self._stock, timeout, wait_ms)

    def feed(self, result: ProbeResult, now: int) -> None:
        """What the probe of ``ProbeThis`` found."""
        asked, self._asked = self._asked, None
        if asked is None or self._over is not None:
            return
        self._ground.told(self.start, self._stock, result, again=isinstance(asked, Spare))
        self._ground.learn(self._stock, result, now)
        if result.kind is ProbeKind.FAST:
            latency = result.wall_ms if result.upstream_ms is None else result.upstream_ms
            spare = Spare(result.id, self._stock, latency, now, now)
            self._finish(Found(self._ground.bind_found(self.start, spare, now)), now)
            return
        if isinstance(asked, Spare):
            if result.kind in STOPS:
                self._ground.put_back(asked)  # it said nothing about the id
            if result.kind is ProbeKind.OVERLOADED:
                self._finish(GiveUp(self.start, result.kind.value), now)
        if result.kind in STOPS:
            self._finish(GiveUp(self.start, result.kind.value), now)

    def stop(self, reason: str, now: int) -> GiveUp | Found:
        """Give up: no probe was granted, the client left, the daemon stops."""
        if isinstance(self._asked, Spare):
            self._ground.put_back(self._asked)
        self._asked = None
        return self._over or self._finish(GiveUp(self.start, reason), now)

    def _finish(self, end: Found | GiveUp, now: int) -> Found | GiveUp:
        self._over = end
        self._ground.search_over(self.start, isinstance(end, Found), now)
        return end
