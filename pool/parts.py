"""What the pool consists of, in one hand: the rooms that decide are given this and nothing else."""

from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from config.sections.probe import ProbeSection
from config.sections.quarantine import QuarantineSection
from config.settings import Settings
from pool.bindings import Bindings
from pool.estimator import Belief, Estimator
from pool.faults import Faults
from pool.ids import short
from pool.inventory import Inventory
from pool.lanes import Lanes
from pool.model import ModelKey, Note, Spare, Stock, Wish
from pool.pauses import Pauses
from pool.policy import POLICIES_KEPT, Policies
from pool.refill import Refill


class Order(NamedTuple):
    """A conversation for which a round of candidates is to be tried."""

    wish: Wish
    at: int


NOTES_KEPT: Final = 1024  # that nobody has asked for


@dataclass(slots=True)
class Parts:
    """One process's pool. ``shared_key``: probes are paid by a configured key, so their spares serve anyone."""

    settings: Settings
    inventory: Inventory
    bindings: Bindings
    refill: Refill
    shared_key: bool = False
    faults: Faults = field(default_factory=Faults)
    pauses: Pauses = field(default_factory=Pauses)
    estimator: Estimator = field(default_factory=Estimator)
    told: dict[ModelKey, Belief] = field(default_factory=dict)  # what the store knows of that
    lanes: Lanes = field(default_factory=Lanes)
    orders: dict[str, Order] = field(default_factory=dict)  # binding key -> a round to have in the background
    rounds: int = 0  # how many there were
    spent: dict[ModelKey, int] = field(default_factory=dict)  # probes since the regime is what it is
    canaries: dict[ModelKey, tuple[Spare | None, int]] = field(default_factory=dict)  # the id, and when it was sent
    cooldown: dict[str, int] = field(default_factory=dict)  # binding key -> no search until
    searching: dict[str, int] = field(default_factory=dict)  # binding key -> the search's deadline
    notes: deque[Note] = field(default_factory=lambda: deque(maxlen=NOTES_KEPT))
    limits: dict[str, tuple[ProbeSection, QuarantineSection]] = field(default_factory=dict)  # of the settings in force
    policies: Policies = field(init=False)

    def __post_init__(self) -> None:
        self.policies = Policies(self.settings)

    def paces(self, model: str) -> tuple[ProbeSection, QuarantineSection]:
        """The limits that hold for a model; asked for each turn, so kept."""
        known = self.limits.get(model)
        if known is None:
            if len(self.limits) >= POLICIES_KEPT:
                self.limits.clear()
            known = self.limits[model] = self.settings.probe_for(model), self.settings.quarantine_for(model)
        return known

    def next_round(self) -> int:
        self.rounds += 1
        return self.rounds

    def target(self, stock: Stock, now: int) -> int:
        """How many spares of a stock to keep: while nothing is known, only what conversations really ask for."""
        model = ModelKey(stock.provider, stock.model)
        policy = self.policies[model]
        if not policy.learning or not policy.stock:
            return policy.stock
        if self.spent.get(model, 0) >= 2 * policy.stock:
            return 1
        return max(1, min(policy.stock, self.refill.asked(stock, now)))

    def payer(self, scope: str) -> str:
        """Whose credential pays for the probes of a scope, and so who may use their spares."""
        return "" if self.shared_key else scope

    def stock_for(self, wish: Wish) -> Stock:
        """The stock that is refilled for a wish."""
        return Stock(wish.provider, wish.model, self.payer(wish.scope), wish.shape)

    def note(self, name: str, wish: Wish, routed_id: str | None = None, **facts: object) -> Note:
        """A decision about a conversation; the id only as its digest."""
        return _note(name, wish.conversation, wish.judged, routed_id, facts)


def note(name: str, conversation: str | None, model: ModelKey, routed_id: str | None = None, **facts: object) -> Note:
    """A decision about a model, and about a conversation where there is one."""
    return _note(name, conversation, model, routed_id, facts)


def _note(
    name: str, conversation: str | None, model: ModelKey, routed_id: str | None, facts: dict[str, object]
) -> Note:
    """A note in the one form they all have."""
    shown: dict[str, object] = {"provider": model.provider, "model": model.model}
    if conversation is not None:
        shown["conversation"] = conversation
    if routed_id is not None:
        shown["id"] = short(routed_id)
    shown |= facts
    return Note(name, shown)
