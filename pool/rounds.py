"""A round of candidates: the throughput profile's way to find a route.

A sync state machine; the caller probes and feeds, as with a search. The natural id comes first, unless its own first
turn has measured it: if it is good enough, it is kept and nothing else is tried. Else a spare that an earlier round
left over is leased; else new ids are tried, until one reaches ``probe.target_tps`` or ``probe.candidates`` were. The
best is the conversation's, the other good ones are spares.
"""

from collections.abc import Callable

from pool.bindings import is_natural
from pool.decisions import keep_natural, of_spare, pin, skip_pin
from pool.ground import PoolGround
from pool.ids import new_id
from pool.inventory import stocks_of
from pool.lanes import DEAD, Lane, Worth
from pool.model import Note, ProbeKind, ProbeResult, Source, Spare, Start, Stock
from pool.orders import OLDEST_MS
from pool.parts import Order, Parts
from pool.search import LEAST_BUDGET_MS, STOPS, Found, GiveUp, ProbeThis
from pool.told import Sent, of_probe, rounded


class Round:
    """One round for one conversation.

    Args:
        start: what the conversation goes out on meanwhile: its natural id. With ``budget_ms`` a request waits.
    """

    __slots__ = ("_admitted", "_asked", "_began", "_ground", "_left", "_number", "_over", "_parts", "_sent", "_tokens",
                 "start")  # fmt: skip

    def __init__(self, parts: Parts, ground: PoolGround, start: Start, now: int) -> None:
        self.start = start
        self._parts, self._ground = parts, ground
        self._number = parts.next_round()
        self._began = now
        probe, _ = parts.paces(start.wish.model)
        self._left = probe.candidates - (self._lane.natural is not Worth.UNMEASURED)
        self._admitted: list[Spare] = []
        self._asked: str | None = None
        self._over: Found | GiveUp | None = None
        self._sent = self._tokens = 0

    @property
    def _lane(self) -> Lane:
        return self._parts.lanes.of(self.start.wish.key)

    @property
    def _stock(self) -> Stock:
        return self._parts.stock_for(self.start.wish)

    def next(self, now: int) -> ProbeThis | Found | GiveUp:
        """What to do now; once it is Found or GiveUp, it stays so."""
        if self._over is not None:
            return self._over
        natural = self._lane.natural is Worth.UNMEASURED
        if not natural and not self._admitted:
            spare = self._leftover(now)
            if spare is not None:
                return self._finish("lease", now, spare)
        if self._left <= 0:
            return self._finish("candidates", now)
        ready_at = self._ground.probe_ready_at(self._stock, now)
        if ready_at is None:
            return self._finish("paused", now)
        probe, _ = self._parts.paces(self.start.wish.model)
        timeout, wait_ms = float(probe.timeout_ms), max(0, ready_at - now)
        if self.start.budget_ms:
            left = self._began + self.start.budget_ms - now - wait_ms
            if left < LEAST_BUDGET_MS:
                return self._finish("budget", now)
            timeout = min(left, timeout)
        self._asked = self.start.wish.natural.value if natural else new_id(self.start.wish.shape)
        return ProbeThis(self._asked, self._stock, timeout, wait_ms)

    def feed(self, result: ProbeResult, now: int) -> None:
        """What the probe of ``ProbeThis`` found."""
        asked, self._asked = self._asked, None
        if asked is None or self._over is not None:
            return
        natural = self._lane.natural is Worth.UNMEASURED
        self._left -= 1
        self._sent += 1
        self._tokens += result.tokens
        conversation = self.start.wish.conversation
        sent = Sent(True, natural=natural, round=self._number, conversation=conversation)
        self._parts.notes += of_probe(self._stock, result, sent)
        self._ground.learn(self._stock, result, now)
        if natural:
            self._measure(result)
        elif result.kind is ProbeKind.FAST:
            latency = result.ttfb_ms or result.wall_ms
            self._admitted.append(Spare(result.id, self._stock, latency, now, now, result.tps))
        if natural and self._lane.natural is Worth.OK:
            self._finish("natural", now)
        elif result.kind in STOPS:
            self._finish(result.kind.value, now)
        elif self._admitted and (result.tps or 0.0) >= self._parts.paces(self.start.wish.model)[0].target_tps:
            self._finish("target", now)

    def stop(self, reason: str, now: int) -> Found | GiveUp:
        """Give up: no probe was granted, the client left, the daemon stops."""
        self._asked = None
        return self._over or self._finish(reason, now)

    def _measure(self, result: ProbeResult) -> None:
        lane = self._lane
        if result.kind in DEAD:
            lane.measured(Worth.DEAD, None, None)
        elif result.kind in {ProbeKind.FAST, ProbeKind.SLOW}:
            worth = Worth.OK if result.kind is ProbeKind.FAST else Worth.REJECTED
            lane.measured(worth, result.tps, result.ttfb_ms, estimated=result.estimated)

    def _leftover(self, now: int) -> Spare | None:
        wish = self.start.wish
        return self._parts.inventory.take(stocks_of(wish), now, self._parts.policies[wish.judged].ttl_ms)

    def _finish(self, reason: str, now: int, leased: Spare | None = None) -> Found | GiveUp:
        lane, wish = self._lane, self.start.wish
        best = leased or max(self._admitted, key=lambda spare: spare.tps or 0.0, default=None)
        self._keep_others(best)
        if self._sent:
            self._parts.notes.append(self._summary(reason, best, now))
        if lane.natural is Worth.OK:
            self._parts.notes.append(keep_natural(self._parts, wish, "probe"))
            self._over = Found(self.start)
        elif best is not None:
            source = "lease" if leased is not None else "probe"
            self._over = self._take(best, source, now)
        else:
            self._mark()
            lane.not_before = now + self._parts.settings.pool.negative_ttl_ms
            if not (lane.decided and lane.natural is Worth.UNMEASURED):
                self._parts.notes += skip_pin(self._parts, wish, "probe", reason)
            self._over = GiveUp(self.start, reason)
        self._ground.search_over(self.start, isinstance(self._over, Found), now)
        return self._over

    def _take(self, best: Spare, source: str, now: int) -> Found:
        """Bind it at once for a request that waits; else the next turn will."""
        parts, wish = self._parts, self.start.wish
        parts.inventory.spend(best.id)
        if not parts.policies[wish.judged].applied:
            parts.inventory.admit(best)  # spent above, so it is not let in: nobody uses it
            parts.notes += skip_pin(parts, wish, source, "observe", best)
            return Found(self.start)
        if not self.start.budget_ms:
            self._lane.found = best
            return Found(self.start)
        found = self._ground.bind_found(self.start, best, now)
        parts.notes += pin(parts, wish, found.routed_id, source, of_spare(best))
        return Found(found)

    def _mark(self) -> None:
        """A natural id that is known to be bad is left as soon as there is another."""
        binding = self._parts.bindings.get(self.start.wish.key)
        if binding is not None and is_natural(binding) and self._lane.natural.bad:
            binding.marked = True

    def _keep_others(self, best: Spare | None) -> None:
        """The good ones that were not chosen are spares, up to ``pool.size``; the best of them stay."""
        parts = self._parts
        for spare in self._admitted:
            if spare is not best:
                parts.inventory.admit(spare)
        size = parts.settings.pool_for(self.start.wish.model).size
        mine = sorted(parts.inventory.of(self._stock), key=lambda spare: (spare.tps or 0.0, spare.verified_at))
        for spare in mine[: max(0, len(mine) - size)]:
            parts.inventory.drop(spare)

    def _summary(self, reason: str, best: Spare | None, now: int) -> Note:
        lane = self._lane
        return self._parts.note(
            "probe-round",
            self.start.wish,
            None if best is None else best.id,
            round=self._number,
            candidates=self._sent,
            admitted=len(self._admitted) + (lane.natural is Worth.OK),
            natural=lane.natural.value,
            natural_tps=rounded(lane.natural_tps),
            best_tps=rounded(best.tps) if best is not None else None,
            tokens=self._tokens,
            took_ms=max(0, now - self._began),
            reason=reason,
        )


def due(parts: Parts, ground: PoolGround, payable: Callable[[Stock], bool], now: int) -> Round | None:
    """The next round to have in the background, if there is one and it may be paid for."""
    for key, order in list(parts.orders.items()):
        stock = parts.stock_for(order.wish)
        if _is_void(parts, key, order, now):
            del parts.orders[key]
        elif parts.lanes.of(key).not_before <= now and payable(stock) and ground.probe_ready_at(stock, now) is not None:
            del parts.orders[key]
            natural = order.wish.natural.value
            return Round(
                parts, ground, Start(order.wish, natural, Source.NATURAL, now, bound=True, first_turn=False), now
            )
    return None


def _is_void(parts: Parts, key: str, order: Order, now: int) -> bool:
    """Has it grown old, or has what it was for been settled in another way?"""
    policy = parts.policies[order.wish.judged]
    if not (policy.paced and policy.spares and parts.paces(order.wish.model)[0].enabled):
        return True
    binding = parts.bindings.get(key)
    settled = binding is not None and (not is_natural(binding) or not binding.marked)
    return settled or not 0 <= now - order.at <= OLDEST_MS
