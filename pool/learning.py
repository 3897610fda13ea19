"""What answers and probes teach about the gateway, and what follows when the teaching changes its mind."""

from typing import Final

from pool.bindings import is_natural
from pool.estimator import MODELS, Belief, Change, Finding
from pool.model import Latency, ModelKey, Note, Outcome, ProbeKind, ProbeResult, Source, Spare, Start, Stock
from pool.parts import Parts, note
from pool.policy import Policy, Regime

PREFILL_MS_PER_TOKEN: Final = 0.1  # reading 10,000 tokens a second: what a prompt may take is not the route's
BYTES_PER_TOKEN: Final = 4  # of a request whose uncached input is unknown
CANARY_MS: Final = 3_600_000  # without other evidence for so long, one probe looks whether it is still balanced
ANSWERED: Final = frozenset({ProbeKind.FAST, ProbeKind.SLOW, ProbeKind.MISMATCH})
WRITE_MS: Final = 300_000  # what is known is written at most this often,
CHANGE_MS: Final = 5_000  # and this often when it is not what the store says
FUTURE_MS: Final = 60_000  # a stamp this far ahead is a clock's fault, not another process's
_NONE: Final = Source.NONE
_WAITED: Final = Latency.WAITED


def learn_turn(parts: Parts, start: Start, outcome: Outcome, policy: Policy, now: int) -> list[Note]:
    """What a live answer says, whatever kind of request it was."""
    wish = start.wish
    model = wish.judged
    if not policy.routed or start.source is _NONE or not wish.model:
        return []
    if not outcome.accepted and outcome.latency is not _WAITED:
        return []
    slow = None
    if outcome.latency_ms is not None and outcome.judged and parts.faults.until(model, now) is None:
        slow = _was_slow(parts, policy, outcome, outcome.latency_ms)
    sent = start.routed_id if policy.applied else wish.natural.value
    change = parts.estimator.observe(model, sent, now, outcome.endpoint, slow=slow)
    return [] if change is None else [follow(parts, change, now)]


def learn_probe(parts: Parts, stock: Stock, result: ProbeResult, now: int) -> list[Note]:
    """What a probe says, whatever it was sent for."""
    slow: bool | None = None
    model = ModelKey(stock.provider, stock.model)
    if parts.faults.until(model, now) is not None:
        pass  # when everything is slow, speed says nothing about any id
    elif result.kind in ANSWERED:
        latency = result.wall_ms if result.upstream_ms is None else result.upstream_ms
        slow = latency > parts.settings.probe_for(stock.model).max_upstream_ms
    elif result.kind is ProbeKind.TIMEOUT:
        slow = True
    parts.spent[model] = parts.spent.get(model, 0) + result.written
    change = parts.estimator.observe(model, result.id, now, result.endpoint, slow=slow)
    return [] if change is None else [follow(parts, change, now)]


def _was_slow(parts: Parts, policy: Policy, outcome: Outcome, latency_ms: float) -> bool | None:
    """Was a turn slow, once its prompt was read? None: that cannot be told."""
    tokens = outcome.uncached_tokens
    if tokens is None:
        tokens = outcome.request_bytes // BYTES_PER_TOKEN
    if tokens > parts.settings.binding.lock_after_input_tokens:
        return None
    if latency_ms - tokens * PREFILL_MS_PER_TOKEN > policy.slow_ms:
        return True
    return None if outcome.latency is _WAITED else False


def expire(parts: Parts, now: int) -> list[Note]:
    """What is too old to be believed any more."""
    changes = [follow(parts, change, now) for change in parts.estimator.expire(now)]
    regimes = parts.policies.regimes
    if len(regimes) + len(parts.spent) + len(parts.canaries) + len(parts.told) > 3 * MODELS:
        known = set(parts.estimator.models())
        for model in regimes.keys() - known:
            parts.policies.believe(model, Regime.UNKNOWN)
        for table in (parts.spent, parts.canaries, parts.told):
            for model in table.keys() - known:
                del table[model]
    return changes


def adopt(parts: Parts, model: ModelKey, belief: Belief, now: int) -> list[Note]:
    """What was kept in the store, where nothing is known here."""
    change = parts.estimator.adopt(model, belief, now)
    return [] if change is None else [follow(parts, change, now)]


def beliefs(parts: Parts, now: int) -> dict[ModelKey, Belief]:
    """What the store should be told now: what changed, and from time to time what was confirmed."""
    due: dict[ModelKey, Belief] = {}
    for model in parts.estimator.models():
        belief, told = parts.estimator.belief(model, now), parts.told.get(model)
        if belief is None:
            continue
        if told is not None and told.at > now + FUTURE_MS:
            told = None  # the clock was ahead when that was written
        if told is None or belief.at - told.at >= (WRITE_MS if told.regime is belief.regime else CHANGE_MS):
            due[model] = belief
    return due


def follow(parts: Parts, change: Change, now: int) -> Note:
    """Obey another regime from now on. No conversation is moved by it."""
    finding = change.finding
    parts.spent.pop(change.model, None)
    parts.policies.believe(change.model, finding.regime)
    if finding.regime is Regime.STICKY:
        parts.refill.renew(change.model, now)
    if finding.regime is Regime.BALANCED and parts.settings.pool.adaptive:
        _forgive(parts, change.model, now)
    return note("routing", None, change.model, None, **{"before": change.before.value, **facts_of(finding)})


def _forgive(parts: Parts, model: ModelKey, now: int) -> None:
    """Slow turns were nobody's fault: no natural id is left for them later, and no strike is remembered."""
    for binding in parts.bindings:
        if (binding.provider, binding.model) == model and (binding.failures or binding.marked):
            binding.failures = 0
            binding.marked = binding.marked and not is_natural(binding)
            parts.bindings.touch(binding, now, pressing=True)


def facts_of(finding: Finding) -> dict[str, object]:
    """A finding as events and pages show it."""
    same, other = finding.agreement.same, finding.agreement.other
    return {
        "regime": finding.regime.value,
        "confidence": round(finding.confidence, 3),
        "compared": finding.agreement.compared,
        "same_id": None if same is None else round(same, 3),
        "other_ids": None if other is None else round(other, 3),
        "by": finding.by or None,
        "endpoints": finding.endpoints,
        "new_ids": finding.newcomers,
        "because": because(finding),
    }


def because(finding: Finding) -> str:
    """The evidence in words."""
    if finding.alike:
        return f"the last {finding.newcomers} new ids were all served alike: there is nothing to choose"
    same, other = finding.agreement.same, finding.agreement.other
    if same is None or other is None:
        taken_over = finding.regime is not Regime.UNKNOWN
        return "taken over from the state file" if taken_over else "no id was seen twice yet"
    what = "endpoint" if finding.by == "endpoint" else "speed"
    return f"an id came back to its {what} in {same:.0%} of cases, where another id would have in {other:.0%}"


def canary_due(parts: Parts, model: ModelKey, now: int) -> bool:
    """Balanced, in use, and nothing was learned for an hour?"""
    latest = max(parts.estimator.learned_at(model) or 0, parts.canaries.get(model, (None, 0))[1])
    return not 0 <= now - latest < CANARY_MS


def canary(parts: Parts, stock: Stock) -> Spare | None:
    """The id that is probed again and again, once there is one. Nobody is ever given it."""
    found = parts.canaries.get(ModelKey(stock.provider, stock.model), (None, 0))[0]
    return found if found is not None and found.stock == stock else None


def canary_done(parts: Parts, stock: Stock, result: ProbeResult, now: int) -> None:
    """Remember the canary's id, if it was answered at all."""
    kept = canary(parts, stock)
    if kept is None and result.kind in ANSWERED:
        kept = Spare(result.id, stock, result.wall_ms, now, now)
        parts.inventory.spend(result.id)
    parts.canaries[ModelKey(stock.provider, stock.model)] = (kept, now)
