"""Another id for an attempt whose route said no before its first byte was relayed.

The spare spent on it stays with the conversation as its standby, so that an overload drains at most one spare a
conversation, however often it is refused. What becomes of the refused id waits for the replay's outcome.
"""

from pool.acquire import bind, bind_natural, on, routed_source
from pool.bindings import is_natural, wire_id
from pool.decisions import Chosen, pin
from pool.ids import short
from pool.inventory import stocks_of
from pool.lanes import Worth
from pool.model import Binding, Note, Source, Spare, Start
from pool.parts import Parts


def replace(parts: Parts, start: Start, now: int) -> Start | None:
    """A standby or a fresh spare for a refused attempt; None: send the client the refusal."""
    wish = start.wish
    policy = parts.policies[wish.judged]
    if not (policy.applied and policy.spares and wish.turn) or start.source is Source.NONE:
        return None
    if parts.faults.saw(wish.judged, start.routed_id, now):
        return None
    binding = parts.bindings.get(wish.key)
    if binding is None:
        return _anew(parts, start, now)
    if wire_id(binding, wish.natural) != start.routed_id:
        return on(wish, binding, now)  # somebody else's refusal moved the conversation already
    if binding.standby is None:
        spare = _take(parts, start, now)
        if spare is None:
            return None
        binding.standby = spare.id
        parts.bindings.touch(binding, now, pressing=True)
    start.replaced = True
    parts.notes.append(parts.note("failover", wish, binding.standby))
    return Start(
        wish,
        binding.standby,
        routed_source(parts, wish, had_route=not is_natural(binding)),
        now,
        bound=True,
        first_turn=True,
        replaces=start.routed_id,
    )


def settle(parts: Parts, start: Start, now: int, *, refused: bool) -> list[Note]:
    """The replay is over: refused too, both ids stay; else the conversation moves and the first id is left."""
    wish = start.wish
    if refused:
        parts.faults.replay_refused(wish.judged, now)
        return [parts.note("fault", wish, start.routed_id, reason="the replay was refused too")]
    binding = parts.bindings.get(wish.key)
    if binding is None or binding.standby != start.routed_id:
        return []
    left = binding.routed_id
    if is_natural(binding):
        parts.lanes.of(binding.key).measured(Worth.DEAD, None, None)
    _promote(parts, start, binding, now)
    told = parts.note("retire", wish, left, reason="refused", next=short(start.routed_id))
    return [told, *pin(parts, wish, start.routed_id, "failover", Chosen())]


def _promote(parts: Parts, start: Start, binding: Binding, now: int) -> None:
    parts.bindings.end(binding, now)
    bind(parts, start.wish, start.routed_id, start.source, now)


def _anew(parts: Parts, start: Start, now: int) -> Start | None:
    """The conversation has no binding (any more): bind a spare at once, or hold a natural start to a standby."""
    spare = _take(parts, start, now)
    if spare is None:
        return None
    wish = start.wish
    if start.source is not Source.NATURAL:
        return on(wish, bind(parts, wish, spare.id, routed_source(parts, wish), now, spare=spare), now)
    bind_natural(parts, wish, now).standby = spare.id
    return replace(parts, start, now)


def _take(parts: Parts, start: Start, now: int) -> Spare | None:
    parts.refill.demanded(parts.stock_for(start.wish), now)
    if parts.faults.unproven(start.wish.judged, now):
        return None  # the gateway was at fault, and nothing says that it is not
    return parts.inventory.take(stocks_of(start.wish), now, parts.policies[start.wish.judged].ttl_ms)
