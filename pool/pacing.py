"""What a finished turn does to its id in the throughput profile, and when that calls for a round of candidates."""

from pool.acquire import bind, routed_source
from pool.bindings import is_natural
from pool.decisions import keep_natural, skip_pin
from pool.lanes import Worth
from pool.model import Binding, Note, Outcome, Start, Wish
from pool.orders import order
from pool.parts import Parts
from pool.profiles.throughput import Judgement, Turn, judge, locks
from pool.retire import BYTES_PER_TOKEN, Effect
from pool.told import rounded


def observe(parts: Parts, start: Start, binding: Binding, outcome: Outcome, now: int) -> list[Note]:
    """The outcome of a turn on the id that its conversation has."""
    wish = start.wish
    natural = is_natural(binding)
    turn = _turn(parts, start, outcome, natural=natural, binding=binding)
    judgement = judge(turn)
    if judgement.effect.bad and parts.faults.saw(wish.judged, start.routed_id, now):
        return [parts.note("fault", wish, start.routed_id, spared=judgement.effect.value)]
    binding.last_seen_at = max(binding.last_seen_at, now)
    binding.turns += outcome.accepted
    binding.endpoint = outcome.endpoint or binding.endpoint
    notes = [_told(parts, start, outcome, turn, binding.turns)] if outcome.accepted else []
    if natural:
        _measure(parts, wish, turn, judgement, outcome)
    if judgement.effect is Effect.RETIRE:
        return notes + _evict(parts, start, binding, now, turn=turn, reason=judgement.reason)
    notes += _apply(parts, start, binding, judgement, now)
    _lock(parts, binding, outcome)
    parts.bindings.touch(binding, now, pressing=judgement.effect.bad or binding.locked)
    return notes + (_of_natural(parts, wish, binding, now) if natural else [])


def watch(parts: Parts, start: Start, outcome: Outcome, now: int) -> list[Note]:
    """``routing.mode = observe``: the turn ran on the client's own id; what would be done is only written down."""
    wish, lane = start.wish, parts.lanes.of(start.wish.key)
    turn = _turn(parts, start, outcome, natural=True, binding=None)
    judgement = judge(turn)
    notes = [_told(parts, start, outcome, turn, None)] if outcome.accepted else []
    if lane.decided or judgement.effect is Effect.SEEN:
        return notes
    _measure(parts, wish, turn, judgement, outcome)
    if judgement.effect is Effect.HEALTHY:
        return [*notes, keep_natural(parts, wish, "turn")]
    if now >= lane.not_before:
        order(parts, wish, now)
    return notes


def _turn(parts: Parts, start: Start, outcome: Outcome, *, natural: bool, binding: Binding | None) -> Turn:
    probe, quarantine = parts.paces(start.wish.model)
    lane = parts.lanes.get(start.wish.key)
    tokens = outcome.uncached_tokens
    if tokens is None:
        tokens = outcome.request_bytes // BYTES_PER_TOKEN
    return Turn(
        natural=natural,
        refused=outcome.refused,
        measured=outcome.judged and outcome.accepted and parts.policies[start.wish.judged].latency_retires,
        first=start.first_turn,
        locked=binding.locked if binding is not None else False,
        corrected=(binding.corrected if binding is not None else False) or (lane is not None and lane.corrected),
        failures=binding.failures if binding is not None else 0,
        strikes=quarantine.failures,
        tps=outcome.tps,
        estimated=outcome.estimated,
        ttfb_ms=outcome.first_event_ms,
        prefilled=tokens > parts.settings.binding.lock_after_input_tokens,
        probe_tps=binding.tps if binding is not None else None,
        degrade_tps=probe.degrade_tps,
        degrade_ttfb_ms=quarantine.degrade_ttfb_ms,
    )


def _told(parts: Parts, start: Start, outcome: Outcome, turn: Turn, number: int | None) -> Note:
    return parts.note(
        "turn",
        start.wish,
        start.routed_id if parts.policies[start.wish.judged].applied else start.wish.natural.value,
        route=start.source.value,
        turn=number,
        tps=rounded(outcome.tps),
        estimated=outcome.estimated,
        completion_tokens=outcome.completion_tokens,
        input_tokens=outcome.input_tokens,
        ttfb_ms=rounded(outcome.first_event_ms),
        generation_ms=rounded(outcome.generation_ms),
        locked=turn.locked,
        slow=turn.slow,
    )


def _measure(parts: Parts, wish: Wish, turn: Turn, judgement: Judgement, outcome: Outcome) -> None:
    """What the natural id gave, kept for the decision that follows."""
    lane = parts.lanes.of(wish.key)
    if turn.refused:
        lane.measured(Worth.DEAD, None, None)
    elif judgement.effect is Effect.MARK:
        lane.measured(Worth.REJECTED, outcome.tps, outcome.first_event_ms, estimated=outcome.estimated)
    elif judgement.effect is Effect.HEALTHY and not lane.natural.bad:
        lane.measured(Worth.OK, outcome.tps, outcome.first_event_ms, estimated=outcome.estimated)


def _apply(parts: Parts, start: Start, binding: Binding, judgement: Judgement, now: int) -> list[Note]:
    wish = start.wish
    match judgement.effect:
        case Effect.MARK:
            news = not binding.marked
            binding.marked = True
            order(parts, wish, now)
            return [parts.note("mark", wish, start.routed_id, reason=judgement.reason)] if news else []
        case Effect.STRIKE:
            binding.failures += 1
            return [parts.note("strike", wish, start.routed_id, failures=binding.failures)]
        case Effect.HEALTHY:
            binding.failures = 0
        case _:
            pass
    return []


def _evict(parts: Parts, start: Start, binding: Binding, now: int, *, turn: Turn, reason: str) -> list[Note]:
    """The pinned id is left for good; another is looked for while the context is still cheap."""
    wish, standby = start.wish, binding.standby
    lane = parts.lanes.of(binding.key)
    lane.corrected = lane.corrected or binding.corrected or reason == "correction"
    parts.bindings.retire(binding, now)
    if standby is not None:
        bind(parts, wish, standby, routed_source(parts, wish), now)
    else:
        order(parts, wish, now)
    facts = {"reason": reason, "tps": rounded(turn.tps), "probe_tps": rounded(turn.probe_tps)}
    return [parts.note("evict", wish, start.routed_id, ttfb_ms=rounded(turn.ttfb_ms), **facts)]


def _lock(parts: Parts, binding: Binding, outcome: Outcome) -> None:
    """After the one correction was decided: from now on the prompt cache is worth more than speed."""
    section = parts.settings.binding
    if locks(binding.turns, outcome.input_tokens, section.lock_after_turns, section.lock_after_input_tokens):
        binding.locked = True


def _of_natural(parts: Parts, wish: Wish, binding: Binding, now: int) -> list[Note]:
    """Decide for the natural id once it was measured well, or once it is too late to leave it."""
    lane = parts.lanes.of(binding.key)
    if binding.turns == 0 and not binding.marked and binding.standby is None:
        parts.bindings.forget(binding, now)
        return []
    late = binding.locked and lane.natural is not Worth.DEAD
    if late and binding.marked:
        binding.marked = False
        parts.orders.pop(binding.key, None)
        return skip_pin(parts, wish, "turn", "locked")
    if lane.decided or not (lane.natural is Worth.OK or late):
        return []
    return [keep_natural(parts, wish, "turn")]
