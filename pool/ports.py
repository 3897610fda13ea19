"""What the pool asks of whatever keeps its state: verbs, not a file.

``Ledger`` is what one locked transaction can do; ``Store`` opens one per batch and never raises for bad
state: it says what is wrong in ``Synced.problem`` and the pool goes on from memory. Every method of a store
may block, so a store is used from a worker thread only, one call at a time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from pool.estimator import Belief
from pool.model import Binding, ModelKey, Spare, Stock


class Retire(NamedTuple):
    """Delete the binding if it still has this id, and remember that the id is never to be used again."""

    key: str
    routed_id: str
    at: int


class Forget(NamedTuple):
    """Delete the binding if it still has this id; the id itself (a natural one) may be used again."""

    key: str
    routed_id: str


class Bind(NamedTuple):
    """Put the binding if the conversation has none; of two, the one bound earlier stays."""

    binding: Binding


class Touch(NamedTuple):
    """Update what is measured about a binding if it is there and has the same id."""

    binding: Binding


class Reserve(NamedTuple):
    """Move up to ``most`` free spares of a stock into this process's own reserve."""

    stock: Stock
    most: int


class Release(NamedTuple):
    """Put spares that were never sent for a conversation back among the free ones."""

    spares: tuple[Spare, ...]


class Hold(NamedTuple):
    """Show what this process has in reserve; nobody takes from that list."""

    spares: tuple[Spare, ...]


class Prune(NamedTuple):
    """Drop what is idle for longer than ``lease_ttl_ms`` and the oldest bindings over ``max_count``."""

    lease_ttl_ms: int
    max_count: int


class Know(NamedTuple):
    """Write down what is believed of how the gateway routes a model, unless something newer is there."""

    model: ModelKey
    belief: Belief


Operation = Retire | Forget | Bind | Touch | Reserve | Release | Hold | Prune | Know


class Reserved(NamedTuple):
    """A spare that a process keeps for itself, as ``inspect`` shows it."""

    spare: Spare
    owner: str
    at: int


@dataclass(frozen=True, slots=True)
class Contents:
    """What the store holds, parsed. ``lineage`` changes when the store was created anew."""

    version: int = 1
    lineage: str = ""
    free: tuple[Spare, ...] = ()
    reserved: tuple[Reserved, ...] = ()
    bindings: Mapping[str, Binding] = field(default_factory=dict)
    retired: Mapping[str, int] = field(default_factory=dict)  # digest of an id -> when
    probes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # provider -> when
    beliefs: Mapping[ModelKey, Belief] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Batch:
    """A list of conditional operations, and what to put back should the store have been lost meanwhile.

    ``lineage`` is the one the process knows; a store with another was made anew since.
    """

    operations: tuple[Operation, ...] = ()
    lease_ttl_ms: int = 0
    lineage: str = ""
    restore: tuple[Binding, ...] = ()
    retired: Mapping[str, int] = field(default_factory=dict)


class Synced(NamedTuple):
    """What came of talking to the store.

    ``applied`` is False when nothing could be written: the operations are still to be done. ``contents`` is
    None when the store could not be read either. ``problem`` lasts, ``notice`` is told once.
    ``damaged``: what is there is of no use; the next commit puts it aside.
    """

    applied: bool
    contents: Contents | None
    reserved: tuple[Spare, ...] = ()
    problem: str | None = None
    notice: str | None = None
    damaged: bool = False


class Ledger(Protocol):
    """The verbs, inside one exclusive transaction."""

    def reserve(self, stock: Stock, most: int, now: int) -> list[Spare]: ...
    def release(self, spares: Sequence[Spare]) -> None: ...
    def hold(self, spares: Sequence[Spare], now: int) -> None: ...
    def lookup(self, key: str) -> Binding | None: ...
    def bind_if_absent(self, binding: Binding, now: int) -> Binding | None: ...
    def touch(self, binding: Binding) -> bool: ...
    def retire_if(self, key: str, routed_id: str, at: int) -> bool: ...
    def forget_if(self, key: str, routed_id: str) -> bool: ...
    def grant_probes(self, provider: str, count: int, cap: int, now: int) -> int: ...
    def return_probes(self, provider: str, count: int, granted_at: int) -> None: ...
    def know(self, model: ModelKey, belief: Belief, now: int) -> bool: ...
    def prune(self, lease_ttl_ms: int, max_count: int, now: int) -> int: ...


class Store(Protocol):
    """Where the state of several processes meets. Blocking; never raises for bad state."""

    owner: str  # this process, among all that share the store

    def start(self, now: int) -> Synced:
        """Read it for the first time: what is corrupt is put aside and counts as empty."""
        ...

    def poll(self) -> Synced | None:
        """What changed since it was last read, or None; cheap enough for twice a second."""
        ...

    def commit(self, batch: Batch, now: int) -> Synced:
        """Apply a batch to the store as it is now."""
        ...

    def grant_probes(self, provider: str, count: int, cap: int, now: int) -> int:
        """How many of ``count`` probes may be sent without exceeding ``cap`` in the last hour."""
        ...

    def return_probes(self, provider: str, count: int, granted_at: int) -> None:
        """Give back probes granted at ``granted_at`` whose request was never written."""
        ...

    def close(self) -> None:
        """Nothing will be asked of it any more."""
        ...
