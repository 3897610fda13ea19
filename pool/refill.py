"""When to probe, and what: keeps a few verified spares for models in use, and nothing for others.

``next_step`` is the pure rule; ``Refill`` remembers what it needs. A cycle begins every
``pool.refresh_interval_ms``, and ``pool.refill_delay_ms`` after a spare was taken or missed. It verifies stale
spares again, then tries new ids, at most twice ``pool.size`` in all. It ends early at what more probes cannot
mend. One without an admission doubles the interval, up to an hour. If all it met were slow ids, that may be chance:
a conversation that lacks a spare is looked after sooner, by a wait of its own that doubles too.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from config.sections.pool import PoolSection
from pool.model import ModelKey, ProbeKind, Spare, Stock

DEMAND_MS: Final = 7_200_000  # a model without demand for this long is left alone
LONGEST_INTERVAL_MS: Final = 3_600_000
ASKED_MS: Final = 900_000
ASKED_KEPT: Final = 16  # as many spares as pool.size may be
ENDS_CYCLE: Final = frozenset(
    {
        ProbeKind.TRANSPORT,
        ProbeKind.LIMIT,
        ProbeKind.UNAUTHORIZED,
        ProbeKind.REJECTED,
    }
)
CHANCE: Final = frozenset({ProbeKind.SLOW, ProbeKind.TIMEOUT, ProbeKind.MISMATCH})  # the next id may be a good one
NOT_THE_IDS_FAULT: Final = frozenset({ProbeKind.TRANSPORT, ProbeKind.LIMIT, ProbeKind.UNAUTHORIZED, ProbeKind.REJECTED})


class ProbeWish(NamedTuple):
    """What to probe next: this spare again, or (None) a new id of the stock's shape."""

    stock: Stock
    reverify: Spare | None = None
    canary: bool = False  # only to learn: what it finds is nobody's


@dataclass(slots=True)
class Cycle:
    """Where the refill of one stock stands."""

    demand_at: int
    next_at: int | None  # the periodic one; None: the timer is off
    eager_at: int | None  # the one after a take
    interval_ms: int
    not_before: int = 0  # after a cycle without an admission no take hurries the next until then
    hold_ms: int = 0  # how long that was
    running: bool = False
    attempts: int = 0
    admitted: int = 0
    chance: bool = True  # nothing but slow ids was met
    probed_at: int = 0
    asked: deque[int] = field(default_factory=lambda: deque(maxlen=ASKED_KEPT))  # when conversations began


class Supply(NamedTuple):
    """What is in reserve, and what should be."""

    fresh: int
    stale: int
    target: int


class Step(StrEnum):
    """What a cycle does now."""

    WAIT = "wait"
    PROBE = "probe"
    END = "end"


def is_due(cycle: Cycle, now: int) -> bool:
    """Should a cycle begin?"""
    if cycle.next_at is not None and now >= cycle.next_at:
        return True
    return cycle.eager_at is not None and now >= max(cycle.eager_at, cycle.not_before)


def next_step(cycle: Cycle, supply: Supply, pool: PoolSection, now: int) -> Step:
    """Wait, probe once, or end the cycle that runs or is due."""
    if not cycle.running and not is_due(cycle, now):
        return Step.WAIT
    if supply.fresh >= supply.target or cycle.attempts >= 2 * pool.size:
        return Step.END
    return Step.PROBE


class Refill:
    """The cycles of the stocks in demand."""

    __slots__ = ("_cycles", "_pool", "_probed_at", "answered_at")

    def __init__(self, pool: PoolSection) -> None:
        self._pool = pool
        self._cycles: dict[Stock, Cycle] = {}
        self.answered_at: dict[ModelKey, int] = {}  # when a live request of a model got a 2xx last
        self._probed_at: dict[str, int] = {}

    def reconfigure(self, pool: PoolSection, now: int | None = None) -> None:
        """Obey other settings; every cycle's interval starts over."""
        self._pool = pool
        for cycle in self._cycles.values():
            cycle.interval_ms, cycle.not_before, cycle.hold_ms = pool.refresh_interval_ms, 0, 0
            if pool.refresh_interval_ms == 0:
                cycle.next_at = None
            elif now is not None:
                cycle.next_at = min(now + pool.refresh_interval_ms, cycle.next_at or 2**53)

    # -- what is in use ---------------------------------------------------------------------------
    def demanded(self, stock: Stock, now: int) -> None:
        """A conversation took a spare of this stock, or would have if there had been one."""
        cycle = self._cycles.get(stock)
        if cycle is None:
            interval = self._pool.refresh_interval_ms
            cycle = self._cycles[stock] = Cycle(now, now + interval if interval else None, None, interval)
        cycle.demand_at = now
        cycle.asked.append(now)
        if cycle.eager_at is None or cycle.running:
            delay = self._pool.refill_delay_ms
            cycle.eager_at = now + delay if delay else None

    def asked(self, stock: Stock, now: int) -> int:
        """How many conversations asked for this stock in the last quarter of an hour, as far as that is counted."""
        cycle = self._cycles.get(stock)
        return 0 if cycle is None else sum(0 <= now - at < ASKED_MS for at in cycle.asked)

    def hurry(self, now: int) -> int:
        """Begin a cycle at once for everything in demand, by command; how many."""
        for cycle in self._cycles.values():
            cycle.next_at, cycle.not_before, cycle.hold_ms = now, 0, 0
        return len(self._cycles)

    def renew(self, model: ModelKey, now: int) -> None:
        """What was found out about a model makes earlier failures count for nothing: it may begin now."""
        for stock, cycle in self._cycles.items():
            if (stock.provider, stock.model) == model:
                cycle.interval_ms, cycle.not_before, cycle.hold_ms = self._pool.refresh_interval_ms, 0, 0
                cycle.eager_at = now

    def in_demand(self, now: int) -> list[Stock]:
        """Stocks wanted in the last two hours; the others are forgotten."""
        for stock in [s for s, c in self._cycles.items() if now - c.demand_at > DEMAND_MS]:
            del self._cycles[stock]
        return list(self._cycles)

    def is_live(self, model: ModelKey, now: int) -> bool:
        """Has it had a live 2xx while it was in demand?"""
        return now - self.answered_at.get(model, -DEMAND_MS - 1) <= DEMAND_MS

    # -- probing ----------------------------------------------------------------------------------
    def may_probe(self, provider: str, min_interval_ms: int, now: int) -> bool:
        """Is it long enough since the last probe to this provider?"""
        at = self._probed_at.get(provider)
        return at is None or not 0 <= now - at < min_interval_ms

    def ready_at(self, provider: str, min_interval_ms: int) -> int:
        """From when the next probe to this provider may go."""
        at = self._probed_at.get(provider)
        return 0 if at is None else at + min_interval_ms

    def probed(self, provider: str, now: int) -> None:
        self._probed_at[provider] = now

    def step(self, stock: Stock, supply: Supply, now: int) -> Step:
        """``next_step`` for a stock, with the bookkeeping of a cycle that begins or ends."""
        cycle = self._cycles[stock]
        step = next_step(cycle, supply, self._pool, now)
        if step is Step.END:
            self._end(cycle, now, stocked=supply.fresh >= supply.target)
        elif step is Step.PROBE and not cycle.running:
            cycle.running, cycle.attempts, cycle.admitted, cycle.chance = True, 0, 0, True
        return step

    def least_recent(self, stocks: Iterable[Stock]) -> list[Stock]:
        """The stock that was probed longest ago first, so that none starves."""
        return sorted(stocks, key=lambda stock: (self._cycles[stock].probed_at, stock))

    def clock_stepped(self, step_ms: int) -> None:
        """The clock was set; every instant here keeps its distance from now."""
        for cycle in self._cycles.values():
            cycle.demand_at += step_ms
            cycle.not_before += step_ms
            cycle.next_at = None if cycle.next_at is None else cycle.next_at + step_ms
            cycle.eager_at = None if cycle.eager_at is None else cycle.eager_at + step_ms
        self.answered_at = {model: at + step_ms for model, at in self.answered_at.items()}
        self._probed_at.clear()

    def result(self, stock: Stock, kind: ProbeKind, now: int) -> None:
        """One probe of a cycle came back."""
        self.probed(stock.provider, now)
        cycle = self._cycles.get(stock)
        if cycle is None or not cycle.running:
            return
        cycle.probed_at = now
        cycle.attempts += 1
        cycle.admitted += kind is ProbeKind.FAST
        cycle.chance = cycle.chance and kind in CHANCE
        if kind in ENDS_CYCLE or cycle.attempts >= 2 * self._pool.size:
            self._end(cycle, now)

    def view(self, now: int) -> dict[Stock, Cycle]:
        return {stock: self._cycles[stock] for stock in self.in_demand(now)}

    def _end(self, cycle: Cycle, now: int, *, stocked: bool = False) -> None:
        base = self._pool.refresh_interval_ms
        if cycle.running and cycle.attempts > 0 and cycle.admitted == 0 and not stocked:
            least = max(cycle.interval_ms, self._pool.refill_delay_ms, 1)
            cycle.interval_ms = min(least * 2, max(LONGEST_INTERVAL_MS, base))
            sooner = 2 * max(cycle.hold_ms, self._pool.refill_delay_ms)
            cycle.hold_ms = min(sooner, cycle.interval_ms) if cycle.chance else cycle.interval_ms
            cycle.not_before = now + cycle.hold_ms
        else:
            cycle.interval_ms, cycle.not_before, cycle.hold_ms = base, 0, 0
        cycle.next_at = now + max(base, cycle.interval_ms) if base else None
        if cycle.eager_at is not None and cycle.eager_at <= now:
            cycle.eager_at = None
        cycle.running, cycle.attempts, cycle.admitted = False, 0, 0
