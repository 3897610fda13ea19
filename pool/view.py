"""What the status page shows of the pool: facts computed when asked, ids only as digests."""

from pool.bindings import wire_id
from pool.ids import short
from pool.inventory import is_fresh
from pool.learning import facts_of
from pool.model import Binding, ModelKey, Stock
from pool.parts import Parts
from pool.refill import Cycle


def view(parts: Parts, now: int) -> dict[str, object]:
    """Pools per provider and model, bindings, pauses and faults."""
    cycles = parts.refill.view(now)
    models = {ModelKey(s.provider, s.model) for s in (*cycles, *parts.inventory.stocks())}
    models |= {ModelKey(b.provider, b.model) for b in parts.bindings} | parts.policies.regimes.keys()
    return {
        "pools": [_pool(parts, model, cycles, now) for model in sorted(models)],
        "bindings": [_binding(binding, now) for binding in parts.bindings],
        "pauses": parts.pauses.view(now),
        "faults": [
            {"provider": model.provider, "model": model.model, "until": until}
            for model, until in parts.faults.models(now).items()
        ],
    }


def _pool(parts: Parts, model: ModelKey, cycles: dict[Stock, Cycle], now: int) -> dict[str, object]:
    ttl = parts.policies[model].ttl_ms
    spares = [s for s in parts.inventory.all() if (s.stock.provider, s.stock.model) == model]
    fresh = [s for s in spares if is_fresh(s, now, ttl)]
    bound = [b for b in parts.bindings if (b.provider, b.model) == model]
    stocks = {stock: cycle for stock, cycle in cycles.items() if (stock.provider, stock.model) == model}
    return {
        "provider": model.provider,
        "model": model.model,
        "spares": len(spares),
        "fresh": len(fresh),
        "stale": len(spares) - len(fresh),
        "reserved": len(spares),  # all of them are this process's own
        "target": sum(parts.target(stock, now) for stock in stocks) if stocks else parts.policies[model].stock,
        "bound": len(bound),
        "routing": facts_of(parts.estimator.finding(model, now)),
        "live": parts.refill.is_live(model, now),
        "demand": [_demand(stock, cycle, now) for stock, cycle in stocks.items()],
        "ids": [
            {
                "id": short(s.id),
                "upstream_ms": s.upstream_ms,
                "age_ms": max(0, now - s.verified_at) if s.verified_at else None,
                "fresh": is_fresh(s, now, ttl),
            }
            for s in spares
        ],
    }


def _demand(stock: Stock, cycle: Cycle, now: int) -> dict[str, object]:
    return {
        "scope": short(stock.scope) if stock.scope else "",
        "shape": stock.shape.value,
        "age_ms": max(0, now - cycle.demand_at),
        "next_at": cycle.next_at,
        "refill_at": None if cycle.eager_at is None else max(cycle.eager_at, cycle.not_before),
        "interval_ms": cycle.interval_ms,
        "probing": cycle.running,
        "attempts": cycle.attempts,
        "admitted": cycle.admitted,
    }


def _binding(binding: Binding, now: int) -> dict[str, object]:
    routed_id = wire_id(binding)
    return {
        "conversation": binding.key.partition("::")[0],
        "provider": binding.provider,
        "model": binding.model,
        "id": short(routed_id) if routed_id is not None else None,
        "source": binding.source.value,
        "age_ms": max(0, now - binding.bound_at),
        "idle_ms": max(0, now - binding.last_seen_at),
        "upstream_ms": binding.upstream_ms,
        "failures": binding.failures,
        "turns": binding.turns,
        "endpoint": binding.endpoint,
        "marked": binding.marked,
        "standby": short(binding.standby) if binding.standby else None,
    }
