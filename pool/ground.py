"""What a budgeted search takes from the pool and gives back to it."""

from pool.acquire import bind, current, on, routed_source
from pool.bindings import is_natural
from pool.decisions import of_spare, pin
from pool.inventory import stocks_of
from pool.learning import learn_probe
from pool.model import Binding, ModelKey, ProbeResult, Source, Spare, Start, Stock, Wish
from pool.parts import Parts
from pool.pauses import Reason
from pool.probing import heed
from pool.told import Sent, of_probe


class PoolGround:
    """``pool.search.Ground`` on the parts of the pool."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def take_fresh(self, start: Start, now: int) -> Start | None:
        """What became ready meanwhile: another request's binding, or a spare."""
        parts, wish = self._parts, start.wish
        binding = current(parts, wish, now)
        if binding is not None and not is_natural(binding):
            return on(wish, binding, now)
        spare = parts.inventory.take(stocks_of(wish), now, parts.policies[wish.judged].ttl_ms)
        return None if spare is None else self._move(wish, spare, None, now)

    def take_stale(self, start: Start, now: int) -> Spare | None:
        stock = self._parts.stock_for(start.wish)
        return self._parts.inventory.take_stale((stock,), now, self._parts.policies[start.wish.judged].ttl_ms)

    def put_back(self, spare: Spare) -> None:
        self._parts.inventory.admit(spare)

    def bind_found(self, start: Start, spare: Spare, now: int) -> Start:
        """A verified id goes to its conversation at once and never enters the reserve."""
        self._parts.inventory.spend(spare.id)
        binding = current(self._parts, start.wish, now)
        if binding is not None and not is_natural(binding):
            return on(start.wish, binding, now)
        return self._move(start.wish, spare, Source.PROBE, now)

    def told(self, start: Start, stock: Stock, result: ProbeResult, *, again: bool) -> None:
        """For the event log."""
        self._parts.notes += of_probe(stock, result, Sent(False, again=again, conversation=start.wish.conversation))

    def learn(self, stock: Stock, result: ProbeResult, now: int) -> None:
        self._parts.refill.probed(stock.provider, now)
        self._parts.notes += [*learn_probe(self._parts, stock, result, now), *heed(self._parts, stock, result, now)]

    def probe_ready_at(self, stock: Stock, now: int) -> int | None:
        """When the next probe may go; None: not within any reasonable time."""
        parts = self._parts
        if parts.faults.until(ModelKey(stock.provider, stock.model), now) is not None:
            return None
        paused = parts.pauses.active(stock.provider, stock.scope, stock.model, now)
        if paused is not None and paused[1] != Reason.RETRY_AFTER:
            return None
        interval = parts.settings.probe_for(stock.model).min_interval_ms
        return max(parts.refill.ready_at(stock.provider, interval), paused[0] if paused else 0)

    def search_over(self, start: Start, found: bool, now: int) -> None:
        key = start.wish.key
        self._parts.searching.pop(key, None)
        if not found:
            self._parts.cooldown[key] = now + self._parts.settings.pool.probe_cooldown_ms
            expired = [old for old, until in self._parts.cooldown.items() if until <= now]
            for old in expired:
                del self._parts.cooldown[old]

    def _move(self, wish: Wish, spare: Spare, source: Source | None, now: int) -> Start:
        parts = self._parts
        source = source or routed_source(parts, wish)
        old: Binding | None = parts.bindings.get(wish.key)
        if old is not None:
            parts.bindings.forget(old, now)
        parts.notes.append(parts.note("take", wish, spare.id, upstream_ms=spare.upstream_ms, by=source.value))
        if not parts.policies[wish.judged].paced:  # a round tells its own decisions
            parts.notes += pin(parts, wish, spare.id, "probe" if source is Source.PROBE else "lease", of_spare(spare))
        return on(wish, bind(parts, wish, spare.id, source, now, spare=spare), now)
