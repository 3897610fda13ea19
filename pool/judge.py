"""Hands an outcome out: to the credential and the model, to the gateway as a whole, and to the id.

The verdict names the id it was measured on. If the conversation has another by now, nothing changes.
"""

from typing import Final

from pool import pacing
from pool.acquire import bind, bind_natural, routed_source
from pool.bindings import is_natural, wire_id
from pool.decisions import keep_natural
from pool.failover import settle
from pool.lanes import Worth
from pool.learning import learn_turn
from pool.model import Binding, Blame, Latency, Note, Outcome, Source, Start, Wish
from pool.parts import Parts
from pool.pauses import LIMIT_MS, Area, Reason
from pool.policy import Policy
from pool.retire import HEALTHY, SEEN, Effect, case_of, effect_of, plain_effect

_NONE: Final = Source.NONE
_NATURAL: Final = Source.NATURAL
_UPSTREAM: Final = Latency.UPSTREAM
_TELLING: Final = frozenset({Effect.MARK, Effect.HEALTHY})


def observe(parts: Parts, start: Start, outcome: Outcome, now: int) -> list[Note]:
    """What the outcome of one attempt changes."""
    wish = start.wish
    policy = parts.policies[wish.judged]
    notes: list[Note] = []
    if not outcome.accepted:
        notes += _pause(parts, wish, outcome, now)
    else:
        parts.refill.answered_at[wish.judged] = now
        if parts.pauses.in_force:
            notes += _resume(parts, wish)
    if outcome.judged or outcome.endpoint is not None:
        notes += learn_turn(parts, start, outcome, policy, now)
    if policy.applied:
        # Of an attempt that another one stands in for, that one's outcome settles both.
        if wish.turn and start.source is not _NONE and not start.replaced:
            notes += _judge(parts, start, outcome, policy, now)
    elif policy.paced and wish.turn:
        notes += pacing.watch(parts, start, outcome, now)
    return notes


def _judge(parts: Parts, start: Start, outcome: Outcome, policy: Policy, now: int) -> list[Note]:
    """What it changes about the id that a turn went out on."""
    wish = start.wish
    notes: list[Note] = []
    if start.replaces is not None:
        notes += settle(parts, start, now, refused=outcome.refused)
        if outcome.refused:
            return notes
    elif outcome.replayed and outcome.refused:
        parts.faults.replay_refused(wish.judged, now)
    binding = parts.bindings.get(wish.key)
    if binding is None or binding.value != start.routed_id:
        binding = _measured(parts, start, outcome, now)
    if binding is None:
        return notes
    if policy.paced:
        return notes + pacing.observe(parts, start, binding, outcome, now)
    effect = plain_effect(outcome, policy) or _effect(parts, start, binding, outcome, policy)
    if effect is HEALTHY:
        parts.faults.served(wish.judged, now)
    elif effect is not SEEN and parts.faults.saw(wish.judged, start.routed_id, now, start.at):
        notes.append(parts.note("fault", wish, start.routed_id, spared=effect.value))
        effect = SEEN
    _take_down(parts, binding, outcome, now, effect)
    if effect is SEEN:
        return notes
    if effect is not HEALTHY:
        notes += _worse(parts, start, binding, outcome, now, effect=effect)
    if start.source is _NATURAL and effect in _TELLING:
        notes += _of_natural(parts, start, outcome, effect)
    return notes


def _effect(parts: Parts, start: Start, binding: Binding, outcome: Outcome, policy: Policy) -> Effect:
    """What becomes of the id where that takes a look at the table."""
    case = case_of(
        outcome,
        parts.paces(start.wish.model)[1],
        natural=is_natural(binding),
        first_turn=start.first_turn,
        failures=binding.failures,
        latency_retires=policy.latency_retires,
        prefill_tokens=parts.settings.binding.lock_after_input_tokens,
        elsewhere=None not in {binding.endpoint, outcome.endpoint} and binding.endpoint != outcome.endpoint,
    )
    return effect_of(case)


def _of_natural(parts: Parts, start: Start, outcome: Outcome, effect: Effect) -> list[Note]:
    """What the natural id was found to be; the first healthy turn on it is the decision to stay there."""
    wish = start.wish
    lane = parts.lanes.of(wish.key)
    if effect is Effect.MARK:
        worth = Worth.DEAD if outcome.refused else Worth.REJECTED
        lane.measured(worth, None, None if outcome.refused else outcome.latency_ms)
        return []
    if lane.decided:
        return []
    lane.measured(Worth.OK, None, outcome.latency_ms)
    return [keep_natural(parts, wish, "turn")]


def _resume(parts: Parts, wish: Wish) -> list[Note]:
    """The credential and the model work, whatever id that was on: some pauses end."""
    payer = parts.payer(wish.scope)
    ended = parts.pauses.credential_works(wish.provider, wish.scope)
    if payer != wish.scope and parts.pauses.end(Reason.LIMIT, wish.provider, payer):
        ended.append(Reason.LIMIT.value)
    return [parts.note("resume", wish, reasons=ended)] if ended else []


def _pause(parts: Parts, wish: Wish, outcome: Outcome, now: int) -> list[Note]:
    """What a failure says about the credential, the limits and the model, whatever id it was on."""
    area, until, reason = Area(wish.provider, wish.scope), None, Reason.CREDENTIAL
    if outcome.unauthorized:
        pass
    elif outcome.blame is Blame.LIMIT:
        area, until = Area(wish.provider, parts.payer(wish.scope)), now + round(outcome.pause_ms or LIMIT_MS)
        reason = Reason.LIMIT
    elif outcome.pause_ms:
        area, until = Area(wish.provider, model=wish.model), now + round(outcome.pause_ms)
        reason = Reason.RETRY_AFTER
    else:
        return []
    new = parts.pauses.begin(area, until, reason)
    return [parts.note("pause", wish, reason=reason.value, until=until)] if new else []


def _measured(parts: Parts, start: Start, outcome: Outcome, now: int) -> Binding | None:
    """The binding this attempt was measured on, if the conversation still has it; else a refusal is the gateway's."""
    wish = start.wish
    binding = parts.bindings.get(wish.key)
    if binding is None and start.source is _NATURAL and outcome.accepted:
        return bind_natural(parts, wish, now)  # it was dropped while this turn was under way
    if binding is not None and wire_id(binding, wish.natural) == start.routed_id:
        return binding
    if outcome.refused:
        parts.faults.saw(wish.judged, start.routed_id, now)
    return None


def _take_down(parts: Parts, binding: Binding, outcome: Outcome, now: int, effect: Effect) -> None:
    """What is known of the binding from now on, whatever is done about it."""
    if now > binding.last_seen_at:  # noqa: PLR1730  (no call)
        binding.last_seen_at = now
    binding.turns += outcome.accepted
    if outcome.endpoint is not None:
        binding.endpoint = outcome.endpoint
    if effect is HEALTHY:
        binding.failures = 0
        if outcome.latency is _UPSTREAM:
            binding.upstream_ms, binding.verified_at = outcome.latency_ms, now
    elif effect is not SEEN:
        return
    if not binding.turns and _is_free(binding, outcome):
        parts.bindings.forget(binding, now)  # nothing holds it there: its next turn may take a spare
    else:
        parts.bindings.touch(binding, now)


def _is_free(binding: Binding, outcome: Outcome) -> bool:
    """May a conversation that was never answered leave its natural id?"""
    limited = outcome.blame is Blame.LIMIT  # of the account: another id would be refused alike
    return is_natural(binding) and not (binding.marked or binding.standby or limited)


def _worse(parts: Parts, start: Start, binding: Binding, outcome: Outcome, now: int, *, effect: Effect) -> list[Note]:
    """The id was found slow, or refused."""
    facts = {"latency_ms": outcome.latency_ms, "by": outcome.latency.value}
    if effect is Effect.RETIRE:
        return _retire(parts, start, binding, outcome, now)
    if effect is Effect.MARK:
        news = not binding.marked
        binding.marked, binding.failures = True, 0
        parts.bindings.touch(binding, now, pressing=True)
        return [parts.note("mark", start.wish, start.routed_id, **facts)] if news else []
    binding.failures += 1
    parts.bindings.touch(binding, now, pressing=True)
    return [parts.note("strike", start.wish, start.routed_id, failures=binding.failures, **facts)]


def _retire(parts: Parts, start: Start, binding: Binding, outcome: Outcome, now: int) -> list[Note]:
    """A routed id is left for good; the conversation's standby, if it has one, takes its place."""
    standby, left = binding.standby, binding.routed_id
    parts.bindings.retire(binding, now)
    if standby is not None:
        bind(parts, start.wish, standby, routed_source(parts, start.wish), now)
    reason = "refused" if outcome.refused else "slow"
    return [parts.note("retire", start.wish, left, reason=reason, latency_ms=outcome.latency_ms)]
