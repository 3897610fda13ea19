"""Which probes to send now, and what their results are worth."""

from collections.abc import Callable

from pool import learning
from pool.model import ModelKey, Note, ProbeKind, ProbeResult, Spare, Stock
from pool.parts import Parts, note
from pool.pauses import DISTURBED_MS, LIMIT_MS, REJECTED_MS, Area, Reason
from pool.refill import NOT_THE_IDS_FAULT, ProbeWish, Step, Supply
from pool.told import Sent, of_probe

CAPPED_MS = 60_000


def supply(parts: Parts, stock: Stock, now: int) -> Supply:
    """What is in reserve for a stock, what serves anyone included."""
    ttl = parts.policies[ModelKey(stock.provider, stock.model)].ttl_ms
    stocks = {stock, stock._replace(scope="")}
    fresh = sum(parts.inventory.fresh(one, now, ttl) for one in stocks)
    stale = len(parts.inventory.stale(stock, now, ttl))
    return Supply(fresh, stale, parts.target(stock, now))


def wants(parts: Parts, now: int) -> list[tuple[Stock, int]]:
    """How many spares to move here from the store, by stock, before any is probed for."""
    wanted: list[tuple[Stock, int]] = []
    for stock in parts.refill.in_demand(now):
        target = parts.policies[ModelKey(stock.provider, stock.model)].stock  # these cost no probe
        for one in sorted({stock, stock._replace(scope="")}):
            lacking = target - parts.inventory.count(one)
            if lacking > 0:
                wanted.append((one, lacking))
    return wanted


def plan(parts: Parts, now: int, payable: Callable[[Stock], bool]) -> list[ProbeWish]:
    """At most one probe a provider."""
    if parts.settings.routing.mode == "off":
        return []
    wishes: dict[str, ProbeWish] = {}
    for stock in parts.refill.least_recent(parts.refill.in_demand(now)):
        if stock.provider in wishes or not _allowed(parts, stock, now) or not payable(stock):
            continue
        policy = parts.policies[ModelKey(stock.provider, stock.model)]
        if policy.canary and learning.canary_due(parts, ModelKey(stock.provider, stock.model), now):
            wishes[stock.provider] = ProbeWish(stock, learning.canary(parts, stock), canary=True)
        elif parts.refill.step(stock, supply(parts, stock, now), now) is Step.PROBE:
            stale = parts.inventory.stale(stock, now, policy.ttl_ms)
            wishes[stock.provider] = ProbeWish(stock, stale[0] if stale else None)
    return list(wishes.values())


def _allowed(parts: Parts, stock: Stock, now: int) -> bool:
    model = ModelKey(stock.provider, stock.model)
    probe = parts.settings.probe_for(stock.model)
    return (
        probe.enabled
        and parts.refill.may_probe(stock.provider, probe.min_interval_ms, now)
        and parts.refill.is_live(model, now)
        and parts.faults.until(model, now) is None
        and parts.pauses.active(stock.provider, stock.scope, stock.model, now) is None
    )


def admit(parts: Parts, wish: ProbeWish, result: ProbeResult, now: int) -> list[Note]:
    """Put a fast id into the reserve, drop a spare that is none, or heed what the probe was told."""
    stock, spare = wish.stock, wish.reverify
    latency = result.wall_ms if result.upstream_ms is None else result.upstream_ms
    kept = False
    if wish.canary:
        learning.canary_done(parts, stock, result, now)
    elif result.kind is ProbeKind.FAST:
        if spare is not None:
            kept = parts.inventory.verified(spare, latency, now)
        else:
            kept = parts.inventory.admit(Spare(result.id, stock, latency, now, now))
    elif spare is not None and result.kind not in NOT_THE_IDS_FAULT:
        parts.inventory.drop(spare)
    if wish.canary:
        parts.refill.probed(stock.provider, now)
    else:
        parts.refill.result(stock, result.kind, now)
    _blame(parts, stock, result, now)
    paced = parts.policies[ModelKey(stock.provider, stock.model)].paced
    told = of_probe(stock, result, Sent(paced, again=spare is not None, kept=kept))
    return [*told, *learning.learn_probe(parts, stock, result, now), *heed(parts, stock, result, now)]


def _blame(parts: Parts, stock: Stock, result: ProbeResult, now: int) -> None:
    """A probe tells as well as a turn whether the gateway itself refuses."""
    model = ModelKey(stock.provider, stock.model)
    if result.kind is ProbeKind.FAST:
        parts.faults.served(model, now)
    elif result.kind is ProbeKind.OVERLOADED:
        parts.faults.saw(model, result.id, now)


def heed(parts: Parts, stock: Stock, result: ProbeResult, now: int) -> list[Note]:
    """The pause that a probe's answer asks for, if any."""
    given = None if result.retry_after_ms is None else now + round(result.retry_after_ms)
    own = Area(stock.provider, stock.scope)
    until: int | None
    match result.kind:
        case ProbeKind.LIMIT:
            area, until, reason = own, given or now + LIMIT_MS, Reason.LIMIT
        case ProbeKind.UNAUTHORIZED:
            area, until, reason = own, None, Reason.UNAUTHORIZED
        case ProbeKind.REJECTED:
            area, until, reason = own._replace(model=stock.model), now + REJECTED_MS, Reason.REJECTED
        case ProbeKind.OVERLOADED:
            area, until = Area(stock.provider, model=stock.model), given
            reason = Reason.RETRY_AFTER
            if until is None:
                return []
        case _:
            return []
    if not parts.pauses.begin(area, until, reason):
        return []
    return [note("pause", None, ModelKey(stock.provider, stock.model), reason=reason.value, until=until)]


def capped(parts: Parts, provider: str, now: int) -> list[Note]:
    """This hour's probes are spent: ask again in a minute."""
    news = parts.pauses.begin(Area(provider), now + CAPPED_MS, Reason.CAPPED)
    return [note("pause", None, ModelKey(provider, ""), reason=Reason.CAPPED.value)] if news else []


def disturbed(parts: Parts, now: int, step_ms: int = 0) -> list[Note]:
    """The machine slept, its addresses changed, or its clock was set; ``step_ms`` is how far the clock jumped.

    A jump ahead may be a sleep, in which time has passed. After one back nothing has: what was set for later is set
    for as much later, or it would wait until the clock comes to the old time again.
    """
    if step_ms < 0:
        parts.refill.clock_stepped(step_ms)
        parts.pauses.clock_stepped(step_ms)
        parts.lanes.clock_stepped(step_ms)
        for deadlines in (parts.cooldown, parts.searching):
            deadlines.update({key: at + step_ms for key, at in deadlines.items()})
        parts.orders.update({key: one._replace(at=one.at + step_ms) for key, one in parts.orders.items()})
    parts.pauses.begin(Area(None), now + DISTURBED_MS, Reason.DISTURBED)
    parts.bindings.settle_clock(now)
    return [Note("disturbed", {"spares": parts.inventory.disturb(now)})]
