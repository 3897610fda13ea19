"""Which id a request is sent on: the conversation's own, else a fresh spare, else its natural id.

Memory only. A conversation that has to start on its natural id is held to it until that turn has been judged;
a healthy one stays, because moving throws its prompt cache away.
"""

from typing import Final

from pool.bindings import stored_id, wire_id
from pool.decisions import Chosen, of_spare, pin, skip_pin
from pool.imports import inherit
from pool.inventory import stocks_of
from pool.lanes import Lane
from pool.model import Binding, Source, Spare, Start, Wish
from pool.orders import order
from pool.parts import Parts
from pool.policy import Policy

_NATURAL: Final = Source.NATURAL


def start(parts: Parts, wish: Wish, now: int) -> Start:
    """The id to send this request on."""
    policy = parts.policies[wish.judged]
    if not (policy.applied and wish.turn):
        return _unbound(parts, wish, policy, now)
    binding = parts.bindings.get(wish.key)
    if binding is None or not _is_usable(parts, wish, binding, now):
        return _begin(parts, wish, policy, now)
    if binding.marked and policy.spares:
        moved = _leave(parts, wish, binding, now)
        if moved is not None:
            return moved
    if now > binding.last_seen_at:  # noqa: PLR1730  (no call)
        binding.last_seen_at = now
    budget_ms = _stay(parts, wish, binding, policy, now) if binding.source is _NATURAL else 0.0
    return on(wish, binding, now, budget_ms)


def _unbound(parts: Parts, wish: Wish, policy: Policy, now: int) -> Start:
    """A request that binds nothing."""
    if not policy.routed:
        return Start(wish, wish.natural.value, Source.NONE, now, bound=False, first_turn=False)
    return _forecast(parts, wish, policy, now) if wish.turn else aside(parts, wish, now)


def aside(parts: Parts, wish: Wish, now: int) -> Start:
    """A side call, or a request that is not recognised, goes where its conversation is and changes nothing."""
    binding = parts.bindings.get(wish.key) or latest(parts, wish.conversation, wish.provider)
    routed_id = wire_id(binding, wish.natural) if binding is not None else None
    if binding is None or routed_id is None:
        return Start(wish, wish.natural.value, Source.NATURAL, now, bound=False, first_turn=False)
    return Start(wish, routed_id, binding.source, now, bound=True, first_turn=binding.turns == 0)


def latest(parts: Parts, conversation: str, provider: str) -> Binding | None:
    """A conversation's binding with a provider that was used last, whatever the model."""
    found = [b for b in parts.bindings.of(conversation) if b.provider == provider]
    return max(found, key=lambda b: b.last_seen_at) if found else None


def current(parts: Parts, wish: Wish, now: int) -> Binding | None:
    """The conversation's binding if it may still be used; one that may not is dropped here."""
    binding = parts.bindings.get(wish.key)
    return binding if binding is not None and _is_usable(parts, wish, binding, now) else None


def _is_usable(parts: Parts, wish: Wish, binding: Binding, now: int) -> bool:
    if not parts.bindings.is_alive(binding, now):
        parts.bindings.end(binding, now)
        parts.notes.append(parts.note("expire", wish, binding.routed_id))
        return False
    if binding.value is None and wire_id(binding, wish.natural) is None:  # the client names it by another value now
        parts.bindings.forget(binding, now)
        return False
    return True


def bind(parts: Parts, wish: Wish, routed_id: str, source: Source, now: int, *, spare: Spare | None = None) -> Binding:
    """Give a conversation an id of its own; what it had before must have been dropped."""
    binding = Binding(wish.key, wish.provider, wish.model, routed_id, source, now, now, scope=wish.scope)
    if spare is not None:
        binding.upstream_ms, binding.verified_at, binding.tps = spare.upstream_ms, spare.verified_at, spare.tps
    lane = parts.lanes.get(wish.key)
    if lane is not None:
        binding.corrected = lane.corrected
    for evicted in parts.bindings.put(binding, now):
        parts.notes.append(
            parts.note("evict", wish, evicted.routed_id, reason="room", of=evicted.key.partition("::")[0])
        )
    return binding


def bind_natural(parts: Parts, wish: Wish, now: int) -> Binding:
    """Hold a conversation to its natural id."""
    natural = wish.natural
    binding = bind(parts, wish, stored_id(natural), _NATURAL, now)
    binding.value = natural.value
    return binding


def routed_source(parts: Parts, wish: Wish, *, had_route: bool = False) -> Source:
    """``repin`` for an id that takes the place of an earlier routed one."""
    again = had_route or parts.bindings.had_route(wish.key)
    return Source.REPIN if again else Source.SPARE


def on(wish: Wish, binding: Binding, now: int, budget_ms: float = 0.0) -> Start:
    """A start on a binding."""
    return Start(wish, binding.value or wish.natural.value, binding.source, now, True, binding.turns == 0, budget_ms)


def _begin(parts: Parts, wish: Wish, policy: Policy, now: int) -> Start:
    inherited = None if wish.natural.minted else inherit(parts, wish, now)
    if inherited is not None:
        return on(wish, inherited, now)
    parts.refill.demanded(parts.stock_for(wish), now)
    spare = _first(parts, wish, policy, now) if policy.spares else None
    if spare is not None:
        binding = bind(parts, wish, spare.id, routed_source(parts, wish), now, spare=spare)
        parts.notes.append(parts.note("take", wish, spare.id, upstream_ms=spare.upstream_ms))
        parts.notes += pin(parts, wish, spare.id, parts.lanes.of(binding.key).source_of(spare), of_spare(spare))
        return on(wish, binding, now)
    natural = bind_natural(parts, wish, now)
    if policy.paced:
        _doubt(parts, wish, natural, now)
    parts.notes.append(parts.note("natural", wish, wish.natural.value))
    budget_ms = _budget(parts, wish, policy, now, begins=True)
    return Start(wish, wish.natural.value, _NATURAL, now, False, True, budget_ms)


def _first(parts: Parts, wish: Wish, policy: Policy, now: int) -> Spare | None:
    """The id that a conversation without one is given.

    Where ids are chosen by speed its natural id is measured first, unless that was done before, or it is a
    sub-agent's conversation.
    """
    if policy.paced:
        lane = parts.lanes.get(wish.key)
        found = lane.lease(now) if lane is not None else None
        if found is not None:
            return found
        measured = lane is not None and lane.natural.bad
        if not (wish.child or measured or parts.bindings.had_route(wish.key)):
            return None
    return parts.inventory.take(stocks_of(wish), now, policy.ttl_ms) if parts.inventory.stocked else None


def _doubt(parts: Parts, wish: Wish, binding: Binding, now: int) -> None:
    """A natural id that is known to be bad, and is what is left: to be left again as soon as there is another."""
    lane = parts.lanes.get(wish.key)
    if lane is not None and lane.natural.bad:
        binding.marked = True
        order(parts, wish, now)


def _stay(parts: Parts, wish: Wish, binding: Binding, policy: Policy, now: int) -> float:
    """One more turn on the natural id: from the second on it counts. How long may it look for another first?"""
    if binding.turns:
        parts.bindings.keep(binding, now)
    if binding.marked or (binding.turns == 0 and binding.key in parts.searching):
        return _budget(parts, wish, policy, now)
    return 0.0


def _leave(parts: Parts, wish: Wish, binding: Binding, now: int) -> Start | None:
    """Move from a natural id that was found bad to a spare, if one is ready and it would help."""
    if parts.faults.until(wish.judged, now) is not None:
        return None
    spare = None
    routed_id = binding.standby
    lane = parts.lanes.of(binding.key)
    parts.refill.demanded(parts.stock_for(wish), now)
    if routed_id is None:
        policy = parts.policies[wish.judged]
        spare = lane.lease(now) or parts.inventory.take(stocks_of(wish), now, policy.ttl_ms)
        if spare is None:
            _unmoved(parts, wish, lane, policy, now)
            return None
        routed_id = spare.id
    source = routed_source(parts, wish)
    parts.bindings.forget(binding, now)
    moved = bind(parts, wish, routed_id, source, now, spare=spare)
    parts.notes.append(parts.note("move", wish, routed_id, reason="natural id was slow"))
    source_of = "failover" if spare is None else lane.source_of(spare)
    parts.notes += pin(parts, wish, routed_id, source_of, Chosen() if spare is None else of_spare(spare))
    return on(wish, moved, now)


def _unmoved(parts: Parts, wish: Wish, lane: Lane, policy: Policy, now: int) -> None:
    """It stays for another turn where it should not be."""
    if policy.paced:
        if now >= lane.not_before:
            order(parts, wish, now)
    elif not lane.decided and lane.natural.bad:
        parts.notes += skip_pin(parts, wish, "lease", "no spare ready")


def _budget(parts: Parts, wish: Wish, policy: Policy, now: int, *, begins: bool = False) -> float:
    """How long this request may look for a fast id before it is sent."""
    if not (policy.first_budget_ms or policy.budget_ms or parts.searching):
        return 0.0
    until = parts.searching.get(wish.key, 0)
    if until > now:
        return float(until - now)
    first = begins and not parts.bindings.had_route(wish.key)
    budget = policy.first_budget_ms if first else policy.budget_ms
    return 0.0 if parts.cooldown.get(wish.key, 0) > now else float(budget)


def _forecast(parts: Parts, wish: Wish, policy: Policy, now: int) -> Start:
    """What would be done, without doing it."""
    spare = None
    if policy.spares and not policy.paced:
        spare = parts.inventory.peek(stocks_of(wish), now, policy.ttl_ms)
        parts.refill.demanded(parts.stock_for(wish), now)
    if spare is None:
        return Start(wish, wish.natural.value, Source.NATURAL, now, bound=False, first_turn=True)
    return Start(wish, spare.id, Source.SPARE, now, bound=False, first_turn=True)
