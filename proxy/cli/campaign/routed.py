"""ocpool as a policy among others: the pool's façade, driven as the relay and the upkeep drive it, without sockets."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from config.settings import Settings
from pool.bindings import Bindings
from pool.ids import id_digest
from pool.inventory import Inventory
from pool.model import ModelKey, Natural, Note, ProbeResult, Shape, Start, Stock, Wish
from pool.policy import Regime
from pool.profiles.latency import ProbeFacts, classify
from pool.refill import ProbeWish
from pool.routes import Routes
from pool.stores.document import Document
from pool.stores.ledger import FileLedger
from proxy.cli.campaign.seeing import exchange_of, fields_of, outcome_of, verdict_before, verdict_of
from proxy.gateway import refusals
from proxy.gateway.refusals import Refusal, RefusalKind
from proxy.simulator.baselines import new_id
from proxy.simulator.draw import Draw
from proxy.simulator.policies import Answer, Asked, Probe

PROVIDER: Final = "opencode-go"
SCOPE: Final = "campaign"
LOOK_MS, LONGEST_MS = 1_000, 30_000  # the refill is asked every second, as by the daemon, but not before it is due
_REFUSALS: Final = frozenset({429, 503, 529})  # read before they are relayed, as in proxy/attempts.py


@dataclass(slots=True)
class _Sent:
    """The attempt of a conversation that is under way."""

    start: Start
    replayed: bool = False


class Belief(NamedTuple):
    """What was believed of the gateway from an instant on, and how many live requests had been answered by then."""

    at: float
    regime: Regime
    requests: int


class Routed:
    """The real pool at its defaults, or at the settings given.

    Attributes:
        notes: Its decisions, with their instants.
        beliefs: How it believed the gateway to route, each change of mind.
        answered_at: When live requests ended.
        failover_takes: When a spare left the reserve for a request that was refused.
    """

    def __init__(self, model: str, seed: int, settings: Settings | None = None) -> None:
        self.model = model
        self.settings = settings or Settings()
        self.routes = Routes(self.settings, Inventory(), Bindings(self.settings))
        self.notes: list[tuple[float, Note]] = []
        self.beliefs: list[Belief] = [Belief(0.0, Regime.UNKNOWN, 0)]
        self.answered_at: list[float] = []
        self.failover_takes: list[float] = []
        self._ledger = FileLedger(Document(None), "campaign", self.settings.binding.lease_ttl_ms)
        self._draw = Draw.about("ocpool", seed)
        self._made = 0
        self._sent: dict[str, _Sent] = {}
        self._wish: ProbeWish | None = None
        self._quiet_until = 0.0

    # -- turns ------------------------------------------------------------------------------------
    def before(self, asked: Asked, now: float) -> Probe | None:  # noqa: ARG002  (budgets are 0: nothing waits)
        return None

    def session(self, asked: Asked, now: float) -> str:
        self._quiet_until = 0.0
        start = self.routes.start(_wish(asked), int(now))
        self._sent[asked.session] = _Sent(start)
        self._heard(self.routes.notes(), now)
        return start.routed_id

    def again(self, asked: Asked, session: str, answer: Answer, now: float) -> str | None:  # noqa: ARG002
        sent = self._sent[asked.session]
        if answer.status not in _REFUSALS or sent.replayed:
            return None
        exchange = exchange_of(asked, sent.start, answer, now, replayed=False)
        verdict = verdict_before(exchange)
        if not (verdict.retryable and verdict.retires and self.settings.recovery.max_replays):
            return None
        before = self.spares()
        other = self.routes.replace(sent.start, int(now))
        self.failover_takes += [now] * (before - self.spares())
        if other is None:
            return None
        self._heard(self.routes.observe(sent.start, outcome_of(exchange, verdict, now), int(now)), now)
        self._sent[asked.session] = _Sent(other, replayed=True)
        return other.routed_id

    def headed(self, asked: Asked, session: str, answer: Answer, now: float) -> None:
        """Nothing is decided at a head."""

    def ended(self, asked: Asked, session: str, answer: Answer, now: float) -> None:  # noqa: ARG002
        self._quiet_until = 0.0
        sent = self._sent.pop(asked.session)
        exchange = exchange_of(asked, sent.start, answer, now, replayed=sent.replayed)
        verdict = verdict_of(exchange)
        if verdict is not None:
            self._heard(self.routes.observe(sent.start, outcome_of(exchange, verdict, now), int(now)), now)
        self._heard(self.routes.notes(), now)
        self.answered_at.append(now)
        self._believe(now)

    # -- probes -----------------------------------------------------------------------------------
    def probe(self, now: float) -> Probe | None:
        if now < self._quiet_until:
            return None
        at = int(now)
        wishes = self.routes.refill_plan(at, _payable)
        if not wishes:
            self._quiet_until = self._due(at)
            return None
        wish = wishes[0]
        if not self._ledger.grant_probes(PROVIDER, 1, self.settings.pool.max_probes_per_hour, at):
            self._heard(self.routes.capped(PROVIDER, at), now)
            return None
        self._wish = wish
        probe = self.settings.probe_for(self.model)
        session = wish.reverify.id if wish.reverify is not None else self._new()
        again = wish.reverify is not None
        return Probe(session, probe.max_tokens, stream=False, timeout_ms=probe.timeout_ms, again=again)

    def _due(self, now: int) -> float:
        """When the refill may have something to do, if nothing happens until then."""
        cycles = self.routes.parts.refill.view(now).values()
        dues = [cycle.next_at for cycle in cycles if cycle.next_at is not None]
        dues += [max(cycle.eager_at, cycle.not_before) for cycle in cycles if cycle.eager_at is not None]
        soon = now if any(cycle.running for cycle in cycles) else min(dues, default=now + LONGEST_MS)
        return float(max(now + LOOK_MS, min(soon, now + LONGEST_MS)))

    def probed(self, probe: Probe, answer: Answer, now: float) -> None:
        wish, self._wish = self._wish, None
        if wish is not None:
            self._heard(self.routes.admit(wish, self._result(probe, answer, now), int(now)), now)

    def _result(self, probe: Probe, answer: Answer, now: float) -> ProbeResult:
        """As the prober classifies an answer."""
        plan, status = answer.plan, answer.status
        refusal = _refusal(answer, now)
        if status == 200 and not (answer.complete and answer.last_ms is not None):
            status = None if not answer.complete else 502
        took = answer.took_ms if answer.head_ms is None else answer.head_ms
        timed_out = answer.status is None and answer.took_ms >= probe.timeout_ms
        facts = ProbeFacts(
            self.model,
            status,
            took,
            answer.upstream_ms,
            plan.body_id,
            timed_out=timed_out,
            limited=refusal is not None and refusal.kind is RefusalKind.LIMIT,
            overloaded=refusal is not None and refusal.kind is RefusalKind.OVERLOAD,
        )
        endpoint = plan.endpoint.name if status == 200 and plan.endpoint is not None and answer.headers else None
        return ProbeResult(
            probe.session,
            classify(facts, self.settings),
            answer.upstream_ms,
            took,
            True,
            answer.status,
            refusal.retry_after_ms if refusal is not None else None,
            endpoint,
            plan.body_id,
            plan.prompt_tokens + plan.completion_tokens,
        )

    def _new(self) -> str:
        self._made += 1
        return new_id(self._draw, self._made)

    def _heard(self, notes: list[Note], now: float) -> None:
        self.notes += [(now, note) for note in notes]

    # -- what is counted --------------------------------------------------------------------------
    def _believe(self, now: float) -> None:
        regime = self.routes.parts.policies.regimes.get(ModelKey(PROVIDER, self.model), Regime.UNKNOWN)
        if regime is not self.beliefs[-1].regime:
            self.beliefs.append(Belief(now, regime, len(self.answered_at)))

    def spares(self) -> int:
        """How many it has in reserve."""
        return len(self.routes.parts.inventory.all())


def _wish(asked: Asked) -> Wish:
    digest = id_digest(asked.session)
    natural = Natural(asked.session, minted=False, digest=digest)
    return Wish(digest, SCOPE, PROVIDER, asked.model, Shape.UUID, natural)


def _payable(_stock: Stock) -> bool:
    """The client's own credential was seen with its first request."""
    return True


def _refusal(answer: Answer, now: float) -> Refusal | None:
    if answer.status is None or answer.status < 400 or answer.plan.refusal is None:
        return None
    fields = fields_of(answer, "")
    return refusals.read(answer.status, fields, answer.plan.refusal.body(), now)
