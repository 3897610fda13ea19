"""The façade that a request talks to: synchronous, in memory, never waits, never raises on bad state.

One event loop thread uses it. What must reach other processes waits in the outbox of ``bindings``;
``pool/keeper.py`` turns that into jobs for a worker thread.
"""

from collections.abc import Callable, Mapping

from config.settings import Settings
from pool import acquire, failover, judge, learning, probing, rounds
from pool.bindings import Bindings, wire_id
from pool.estimator import Belief
from pool.ground import PoolGround
from pool.inventory import Inventory
from pool.model import ModelKey, Note, Outcome, ProbeResult, Start, Stock, Wish, binding_key
from pool.parts import Parts, note
from pool.pauses import Area, Reason
from pool.refill import ProbeWish, Refill
from pool.rounds import Round
from pool.search import Search
from pool.view import view


class Routes:
    """Which id a request goes out on, and what its outcome does to that id.

    Args:
        settings: the tree in force; ``reconfigure`` replaces it.
        inventory: this process's reserve of spares.
        bindings: which conversation owns which id.
        shared_key: probes are paid by ``probe.api_key`` (or OPENCODE_API_KEY), so that their spares serve
            any caller (scope ""). False: by the last live credential, for its own scope.
    """

    __slots__ = ("_ground", "parts")

    def __init__(
        self, settings: Settings, inventory: Inventory, bindings: Bindings, *, shared_key: bool = False
    ) -> None:
        self.parts = Parts(settings, inventory, bindings, Refill(settings.pool), shared_key=shared_key)
        self._ground = PoolGround(self.parts)

    def reconfigure(self, settings: Settings, *, shared_key: bool = False, now: int | None = None) -> None:
        """Obey other settings from now on; what waited for a reload (401/403 on probes) may go on."""
        self.parts.settings = settings
        self.parts.policies.reconfigure(settings)
        self.parts.limits.clear()
        self.parts.shared_key = shared_key
        self.parts.bindings.reconfigure(settings)
        self.parts.refill.reconfigure(settings.pool, now)
        for reason in (Reason.UNAUTHORIZED, Reason.CREDENTIAL, Reason.REJECTED, Reason.CAPPED):
            self.parts.pauses.end(reason)

    # -- a request --------------------------------------------------------------------------------
    def start(self, wish: Wish, now: int) -> Start:
        """The id to send this request on: the conversation's own, else a fresh spare, else the natural id.

        ``Start.budget_ms`` > 0: the caller may look for a fast id that long first, see ``search``. In mode
        ``observe`` it says what would be done: the caller sends the client's own fields.
        """
        return acquire.start(self.parts, wish, now)

    def replace(self, start: Start, now: int) -> Start | None:
        """Another id for an attempt whose route said no, before its first byte was relayed.

        Call it BEFORE observing the refused attempt. None: none is ready, or the gateway itself is at fault.
        Then observe both: the refused attempt, and (``Outcome.replayed``) the one returned here.
        """
        return failover.replace(self.parts, start, now)

    def observe(self, start: Start, outcome: Outcome, now: int) -> list[Note]:
        """What the outcome of one attempt does to the id it was measured on. Once per attempt."""
        return judge.observe(self.parts, start, outcome, now)

    def notes(self) -> list[Note]:
        """The decisions taken since the last call that no return value told: take, natural, move, failover ..."""
        notes = list(self.parts.notes)
        self.parts.notes.clear()
        return notes

    def route_of(self, conversation: str, provider: str, model: str | None) -> str | None:
        """The id that this conversation's requests go out on now; None when it has none yet.

        Without a model, that of its most recently used binding with the provider.
        """
        if model is not None:
            binding = self.parts.bindings.get(binding_key(conversation, provider, model))
        else:
            binding = acquire.latest(self.parts, conversation, provider)
        return None if binding is None else wire_id(binding)

    def natural_holder(self, digest: str) -> str | None:
        """The label of the conversation whose binding holds a client's value with this digest."""
        return self.parts.bindings.holder(digest)

    def repin(self, conversation: str | None, now: int) -> list[Note]:
        """Drop the routes of one conversation, or of all; the next turn picks again."""
        bindings = self.parts.bindings
        notes = []
        for binding in list(bindings) if conversation is None else bindings.of(conversation):
            label, model = binding.key.partition("::")[0], ModelKey(binding.provider, binding.model)
            notes.append(note("repin", label, model, binding.routed_id))
            bindings.repin(binding, now)
        return notes

    # -- a request that may wait (budgets above 0) --------------------------------------------------
    def search(self, start: Start, now: int) -> Search | Round | None:
        """The budgeted acquisition for a start with ``budget_ms`` > 0.

        None: another request of the conversation is at it; wait for that one up to ``budget_ms`` and call
        ``start`` again. A search that is abandoned must be told: ``search.stop(reason, now)``.
        """
        key = start.wish.key
        if start.budget_ms <= 0 or self.parts.searching.get(key, 0) > now:
            return None
        self.parts.searching[key] = now + round(start.budget_ms)
        if self.parts.policies[start.wish.judged].paced:
            return Round(self.parts, self._ground, start, now)
        return Search(self._ground, self.parts.settings, self.parts.stock_for(start.wish), start, now)

    # -- probes ------------------------------------------------------------------------------------
    def refill_plan(self, now: int, payable: Callable[[Stock], bool]) -> list[ProbeWish]:
        """The probes to send now, at most one per provider; empty when nothing is due.

        ``payable``: is there a credential for this stock. Ask again after each has been admitted: a cycle is
        spread over several plans, ``probe.min_interval_ms`` apart.
        """
        self.parts.notes += learning.expire(self.parts, now)
        return probing.plan(self.parts, now, payable)

    def admit(self, wish: ProbeWish, result: ProbeResult, now: int) -> list[Note]:
        """What a probe found: a spare, nothing, or a reason to stop."""
        return probing.admit(self.parts, wish, result, now)

    def next_round(self, now: int, payable: Callable[[Stock], bool]) -> Round | None:
        """The next round of candidates to have in the background (throughput profile), driven as a search is.

        Ask again after it is over: one at a time.
        """
        return rounds.due(self.parts, self._ground, payable, now)

    def capped(self, provider: str, now: int) -> list[Note]:
        """No probe was granted for this hour: stay away a while."""
        return probing.capped(self.parts, provider, now)

    def refresh(self, now: int) -> int:
        """Begin a refill at once for every stock in demand (``POST /-/refresh``); how many."""
        return self.parts.refill.hurry(now)

    def beliefs(self, now: int) -> dict[ModelKey, Belief]:
        """What is believed of how the gateway routes, as far as the store is to be told now."""
        return learning.beliefs(self.parts, now)

    def adopt(self, beliefs: Mapping[ModelKey, Belief], now: int) -> list[Note]:
        """What the store knows of how the gateway routes, where nothing is known here."""
        self.parts.told |= beliefs
        return [note for model, belief in beliefs.items() for note in learning.adopt(self.parts, model, belief, now)]

    def routing(self, provider: str, model: str, now: int) -> dict[str, object]:
        """What is believed of one model, with the evidence."""
        return learning.facts_of(self.parts.estimator.finding(ModelKey(provider, model), now))

    def wants(self, now: int) -> list[tuple[Stock, int]]:
        """How many spares of which stock the keeper should move here from the store."""
        return probing.wants(self.parts, now)

    # -- the world ---------------------------------------------------------------------------------
    def pause(self, provider: str, scope: str | None, until: int | None, reason: str) -> None:
        """No probes for a provider (and scope; None: any) until then (None: ``resume``): an open circuit, say."""
        self.parts.pauses.begin(Area(provider, scope), until, reason)

    def resume(self, provider: str, reason: str) -> None:
        """End the pauses that were made for this reason."""
        self.parts.pauses.end(reason, provider)

    def paused(self, provider: str, scope: str | None, now: int) -> tuple[int, str] | None:
        """Until when (unix ms; 2**53: until something ends it), and why, no probes are sent at all."""
        return self.parts.pauses.active(provider, scope, None, now)

    def disturbed(self, now: int, step_ms: int = 0) -> list[Note]:
        """The machine slept, its addresses changed or its clock was set: spares count as stale, no probes for 15 s."""
        return probing.disturbed(self.parts, now, step_ms)

    def view(self, now: int) -> dict[str, object]:
        """Everything ``/-/status`` shows of the pool; ids as digests."""
        return view(self.parts, now)
