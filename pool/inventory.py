"""This process's reserve: verified ids that nobody owns yet.

Nobody else may hand these out, so a take is local, synchronous and exclusive: a spare leaves the moment it is
asked for, and an id that has left is never let in again.
"""

from collections.abc import Iterable

from pool.ids import id_digest
from pool.model import Spare, Stock, Wish

SPENT_KEPT = 8192  # digests of ids that have left; a guard against a state file put back from a copy


def stocks_of(wish: Wish) -> tuple[Stock, ...]:
    """The stocks that a wish may be served from: its own scope's first, then what serves anyone."""
    anyones = Stock(wish.provider, wish.model, "", wish.shape)
    return (Stock(wish.provider, wish.model, wish.scope, wish.shape), anyones) if wish.scope else (anyones,)


def is_fresh(spare: Spare, now: int, ttl_ms: int) -> bool:
    """Was it verified within ``ttl_ms``? An instant in the future counts as stale."""
    return 0 <= now - spare.verified_at <= ttl_ms


class Inventory:
    """Spares by stock. ``version`` grows with every change."""

    __slots__ = ("_spent", "_stocks", "disturbed_at", "version")

    def __init__(self) -> None:
        self._stocks: dict[Stock, dict[str, Spare]] = {}
        self._spent: dict[str, None] = {}
        self.disturbed_at = 0
        self.version = 0

    @property
    def stocked(self) -> bool:
        """May there be a spare at all? False tells that it is no use to ask for one."""
        return bool(self._stocks)

    def take(self, stocks: Iterable[Stock], now: int, ttl_ms: int) -> Spare | None:
        """The fastest fresh spare of the first stock that has one; it is the caller's for good.

        Fastest by the speed it writes with, where that was measured, else by its latency.
        """
        spare = self.peek(stocks, now, ttl_ms)
        if spare is not None:
            self.drop(spare)
        return spare

    def peek(self, stocks: Iterable[Stock], now: int, ttl_ms: int) -> Spare | None:
        """What ``take`` would give, left where it is."""
        for stock in stocks:
            fresh = [spare for spare in self._in(stock) if is_fresh(spare, now, ttl_ms)]
            if fresh:
                return min(fresh, key=lambda spare: (-(spare.tps or 0.0), spare.upstream_ms, spare.id))
        return None

    def take_stale(self, stocks: Iterable[Stock], now: int, ttl_ms: int) -> Spare | None:
        """The stale spare verified last; it must be verified before it is used, or put back."""
        stale = [spare for stock in stocks for spare in self.stale(stock, now, ttl_ms)]
        if not stale:
            return None
        spare = stale[0]
        self._stocks[spare.stock].pop(spare.id)
        self.version += 1
        return spare

    def admit(self, spare: Spare) -> bool:
        """Let a spare in; False when it is here already or was handed out before."""
        if id_digest(spare.id) in self._spent or spare.id in self._stocks.get(spare.stock, ()):
            return False
        if spare.verified_at <= self.disturbed_at:
            spare = spare._replace(verified_at=0)
        self._stocks.setdefault(spare.stock, {})[spare.id] = spare
        self.version += 1
        return True

    def verified(self, spare: Spare, upstream_ms: float, now: int) -> bool:
        """A spare proved fast again; False when it has left meanwhile."""
        if spare.id not in self._stocks.get(spare.stock, ()):
            return False
        self._stocks[spare.stock][spare.id] = spare._replace(upstream_ms=upstream_ms, verified_at=now)
        self.version += 1
        return True

    def drop(self, spare: Spare) -> bool:
        """Remove a spare for good; False when it has left already."""
        if self._stocks.get(spare.stock, {}).pop(spare.id, None) is None:
            return False
        self.spend(spare.id)
        self.version += 1
        return True

    def spend(self, routed_id: str) -> None:
        """Never let this id in (again)."""
        self._spent[id_digest(routed_id)] = None
        if len(self._spent) > SPENT_KEPT:
            del self._spent[next(iter(self._spent))]

    def purge(self, digests: Iterable[str]) -> int:
        """Drop the spares whose digests are among these; how many."""
        unwanted = set(digests)
        doomed = [spare for spare in self.all() if id_digest(spare.id) in unwanted] if unwanted else []
        return sum(self.drop(spare) for spare in doomed)

    def drain(self) -> tuple[Spare, ...]:
        """Take everything out, to be put back into the store."""
        spares = self.all()
        self._stocks.clear()
        for spare in spares:
            self.spend(spare.id)
        self.version += 1
        return spares

    def disturb(self, now: int) -> int:
        """The network may not be what it was: everything here counts as stale. How many that were."""
        self.disturbed_at = now
        count = 0
        for spares in self._stocks.values():
            for key, spare in spares.items():
                spares[key] = spare._replace(verified_at=0)
                count += 1
        self.version += 1
        return count

    def all(self) -> tuple[Spare, ...]:
        return tuple(spare for spares in self._stocks.values() for spare in spares.values())

    def of(self, stock: Stock) -> tuple[Spare, ...]:
        return tuple(self._in(stock))

    def stocks(self) -> list[Stock]:
        return [stock for stock, spares in self._stocks.items() if spares]

    def count(self, stock: Stock) -> int:
        return len(self._stocks.get(stock, ()))

    def fresh(self, stock: Stock, now: int, ttl_ms: int) -> int:
        return sum(is_fresh(spare, now, ttl_ms) for spare in self._in(stock))

    def stale(self, stock: Stock, now: int, ttl_ms: int) -> list[Spare]:
        """Those to verify before use, the one verified last first."""
        stale = [spare for spare in self._in(stock) if not is_fresh(spare, now, ttl_ms)]
        return sorted(stale, key=lambda spare: (-spare.verified_at, spare.id))

    def _in(self, stock: Stock) -> Iterable[Spare]:
        return self._stocks.get(stock, {}).values()
