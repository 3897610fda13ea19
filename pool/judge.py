"""Hands an outcome out: to the credential and the model, to the gateway as a whole, and to the id.

The verdict names the id it was measured on. If the conversation has another by now, nothing changes.
"""

from pool import pacing
from pool.acquire import bind, bind_natural, routed_source
from pool.bindings import is_natural, wire_id
from pool.decisions import keep_natural
from pool.failover import settle
from pool.lanes import Worth
from pool.learning import learn_turn
from pool.model import Binding, Blame, Latency, Note, Outcome, Source, Start
from pool.parts import Parts
from pool.pauses import LIMIT_MS, Area, Reason
from pool.policy import Policy
from pool.retire import Effect, case_of, effect_of, plain_effect

_TELLING = frozenset({Effect.MARK, Effect.HEALTHY})


def observe(parts: Parts, start: Start, outcome: Outcome, now: int) -> list[Note]:
    """What the outcome of one attempt changes."""
    wish = start.wish
    policy = parts.policy(wish.judged)
    notes = _world(parts, start, outcome, now)
    notes += learn_turn(parts, start, outcome, policy, now)
    if policy.paced and policy.routed and not policy.applied and wish.turn and wish.model:
        return notes + pacing.watch(parts, start, outcome, now)
    if not policy.applied or not wish.turn or not wish.model or start.source is Source.NONE:
        return notes
    return notes + _judge(parts, start, outcome, policy, now)


def _judge(parts: Parts, start: Start, outcome: Outcome, policy: Policy, now: int) -> list[Note]:
    """What it changes about the id that a turn went out on."""
    wish = start.wish
    notes: list[Note] = []
    if start.replaced:
        return notes  # the attempt that stands in for it settles both
    if start.replaces is not None:
        notes += settle(parts, start, now, refused=outcome.refused)
        if outcome.refused:
            return notes
    elif outcome.replayed and outcome.refused:
        parts.faults.replay_refused(wish.judged, now)
    binding = _measured(parts, start, outcome, now)
    if binding is None:
        if outcome.refused:
            parts.faults.saw(wish.judged, start.routed_id, now)
        return notes
    if policy.paced:
        return notes + pacing.observe(parts, start, binding, outcome, now)
    effect = _effect(parts, start, binding, outcome, policy)
    if effect is Effect.HEALTHY:
        parts.faults.served(wish.judged, now)
    if effect.bad and parts.faults.saw(wish.judged, start.routed_id, now, start.at):
        notes.append(parts.note("fault", wish, start.routed_id, spared=effect.value))
        effect = Effect.SEEN
    notes += _apply(parts, start, binding, outcome, now, effect=effect)
    if start.source is Source.NATURAL and effect in _TELLING:
        notes += _of_natural(parts, start, outcome, effect)
    return notes


def _effect(parts: Parts, start: Start, binding: Binding, outcome: Outcome, policy: Policy) -> Effect:
    """What becomes of the id."""
    quarantine = parts.paces(start.wish.model)[1]
    plain = plain_effect(outcome, quarantine, latency_retires=policy.latency_retires)
    if plain is not None:
        return plain
    case = case_of(
        outcome,
        quarantine,
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


def _world(parts: Parts, start: Start, outcome: Outcome, now: int) -> list[Note]:
    """What the outcome says about the credential, the limits and the model, whatever id it was on."""
    wish = start.wish
    payer = parts.payer(wish.scope)
    notes = []
    if outcome.accepted:
        parts.refill.answered(wish.judged, now)
        ended = parts.pauses.credential_works(wish.provider, wish.scope)
        if payer != wish.scope and parts.pauses.end(Reason.LIMIT, wish.provider, payer):
            ended.append(Reason.LIMIT.value)
        if ended:
            notes.append(parts.note("resume", wish, reasons=ended))
        return notes
    area, until, reason = Area(wish.provider, wish.scope), None, Reason.CREDENTIAL
    if outcome.unauthorized:
        pass
    elif outcome.blame is Blame.LIMIT:
        area, until = Area(wish.provider, payer), now + round(outcome.pause_ms or LIMIT_MS)
        reason = Reason.LIMIT
    elif outcome.pause_ms:
        area, until = Area(wish.provider, model=wish.model), now + round(outcome.pause_ms)
        reason = Reason.RETRY_AFTER
    else:
        return notes
    if parts.pauses.begin(area, until, reason):
        notes.append(parts.note("pause", wish, reason=reason.value, until=until))
    return notes


def _measured(parts: Parts, start: Start, outcome: Outcome, now: int) -> Binding | None:
    """The binding this attempt was measured on, if the conversation still has it."""
    binding = parts.bindings.get(start.wish.key)
    if binding is None and start.source is Source.NATURAL and outcome.accepted:
        return bind_natural(parts, start.wish, now)  # it was dropped while this turn was under way
    if binding is None or wire_id(binding, start.wish.natural) != start.routed_id:
        return None
    return binding


def _apply(parts: Parts, start: Start, binding: Binding, outcome: Outcome, now: int, *, effect: Effect) -> list[Note]:
    binding.last_seen_at = max(binding.last_seen_at, now)
    binding.turns += outcome.accepted
    if outcome.endpoint is not None:
        binding.endpoint = outcome.endpoint
    if effect.bad:
        return _worse(parts, start, binding, outcome, now, effect=effect)
    if effect is Effect.HEALTHY:
        binding.failures = 0
        if outcome.latency is Latency.UPSTREAM:
            binding.upstream_ms, binding.verified_at = outcome.latency_ms, now
    limited = outcome.blame is Blame.LIMIT  # of the account: another id would be refused alike
    if is_natural(binding) and not (binding.turns or binding.marked or binding.standby or limited):
        parts.bindings.forget(binding, now)  # nothing holds it there: its next turn may take a spare
        return []
    parts.bindings.touch(binding, now)
    return []


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
