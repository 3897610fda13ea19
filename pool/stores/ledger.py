"""The verbs of ``pool.ports.Ledger`` on a state document. Whoever uses it holds the lock.

It keeps three promises: a free id is owned by nobody, an id that was reserved is never free again unless its owner
puts it back unused, and a retired id is neither.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pool.bindings import is_natural
from pool.estimator import Belief
from pool.ids import id_digest
from pool.model import Binding, ModelKey, Spare, Stock
from pool.stores.document import Document
from pool.stores.schema import read_reserved, read_spare, write_belief, write_reserved, write_spare
from pool.track import EXPIRY_MS

HOUR_MS: Final = 3_600_000
FUTURE_MS: Final = 60_000  # a stamp this far ahead is a clock's fault, not another process's
ENTRIES_KEPT: Final = 512
RETIRED_KEPT: Final = 4096
LISTING_MS: Final = 1_800_000  # a reserve's listing is stamped anew this often


class FileLedger:
    """The verbs, on behalf of ``owner``; a binding idle for longer than ``lease_ttl_ms`` counts as absent."""

    __slots__ = ("_document", "_lease_ttl_ms", "_owner")

    def __init__(self, document: Document, owner: str, lease_ttl_ms: int) -> None:
        self._document = document
        self._owner = owner
        self._lease_ttl_ms = lease_ttl_ms

    # -- spares -----------------------------------------------------------------------------------
    def reserve(self, stock: Stock, most: int, now: int) -> list[Spare]:
        """Take up to ``most`` free spares of a stock out of ``entries``, those verified last first."""
        free = [spare for spare in self._document.free() if spare.stock == stock]
        owned, retired = self._owned(), self._document.stamps("retired")
        usable = [s for s in free if s.id not in owned and id_digest(s.id) not in retired]
        usable.sort(key=lambda s: (s.verified_at > now, -s.verified_at, s.id))
        taken = usable[: max(0, most)]
        unusable = {s.id for s in free} - {s.id for s in usable}
        self._document.remove_free({s.id for s in taken} | unusable)
        if not taken:
            return []
        rows = self._document.rows("reserved")
        self._document.assign("reserved", rows + [write_reserved(s, self._owner, now) for s in taken])
        return taken

    def release(self, spares: Sequence[Spare]) -> None:
        """Put unused spares back among the free ones."""
        taken = self._owned() | {spare.id for spare in self._document.free()}
        retired = self._document.stamps("retired")
        back = [s for s in spares if s.id not in taken and id_digest(s.id) not in retired]
        rows = self._document.rows("entries")
        self._document.assign("entries", rows + [write_spare(spare) for spare in back])

    def hold(self, spares: Sequence[Spare], now: int) -> None:
        """List this process's reserve; its former listing goes."""
        listed = [one for one in self._document.reserved() if one.owner == self._owner]
        same = {s.id: s for s in spares} == {one.spare.id: one.spare for one in listed}
        if same and all(0 <= now - one.at < LISTING_MS for one in listed):
            return
        others = [raw for raw in self._document.rows("reserved") if not self._is_mine(raw)]
        self._document.assign("reserved", others + [write_reserved(s, self._owner, now) for s in spares])

    # -- bindings ---------------------------------------------------------------------------------
    def lookup(self, key: str) -> Binding | None:
        return self._document.lookup(key)

    def bind_if_absent(self, binding: Binding, now: int) -> Binding | None:
        """Who owns the conversation's route now; None when the id was retired by somebody else.

        Of two that bind one conversation the earlier stays (tie: the smaller id), the other's routed id is
        retired. One that has been idle for longer than the lease does not count.
        """
        if self._is_retired(binding):
            return None
        there = self.lookup(binding.key)
        if there is not None and (self._is_over(there, now) or self._is_retired(there)):
            there = None
        if there is None or there.routed_id == binding.routed_id:
            merged = binding if there is None else merge(binding, there)
            self._document.put(merged)
            return merged
        first, second = sorted((binding, there), key=lambda b: (b.bound_at, b.routed_id))
        if not is_natural(second):
            self._retire(second.routed_id, now)
        if first is binding:
            self._document.put(binding)
        return first

    def touch(self, binding: Binding) -> bool:
        """Update a binding that is there with the same id."""
        there = self.lookup(binding.key)
        if there is None or there.routed_id != binding.routed_id:
            return False
        self._document.put(merge(binding, there))
        return True

    def retire_if(self, key: str, routed_id: str, at: int) -> bool:
        """Retire an id for good, and delete the binding if it still has it."""
        self._retire(routed_id, at)
        return self.forget_if(key, routed_id)

    def forget_if(self, key: str, routed_id: str) -> bool:
        there = self.lookup(key)
        if there is None or there.routed_id != routed_id:
            return False
        self._document.delete({key})
        return True

    def restore_retired(self, retired: Mapping[str, int]) -> None:
        """Add what this process knows to be retired, and drop what still has such an id."""
        known = self._document.stamps("retired")
        new = {digest: at for digest, at in retired.items() if digest not in known}
        if new:
            self._document.assign("retired", known | new)
            self._document.delete({b.key for b in self._document.bindings() if id_digest(b.routed_id) in new})
            self._document.remove_free({s.id for s in self._document.free() if id_digest(s.id) in new})

    # -- probes -----------------------------------------------------------------------------------
    def grant_probes(self, provider: str, count: int, cap: int, now: int) -> int:
        """How many of ``count`` fit under ``cap`` in the hour that ends now; they are taken down as sent."""
        recent = [at for at in self._document.probes(provider) if abs(now - at) < HOUR_MS]
        granted = max(0, min(count, cap - len(recent)))
        if granted:
            self._set_probes(provider, recent + [now] * granted)
        return granted

    def return_probes(self, provider: str, count: int, granted_at: int) -> None:
        """Strike probes that were granted then and never written."""
        left = self._document.probes(provider)
        for _ in range(min(count, left.count(granted_at))):
            left.remove(granted_at)
        self._set_probes(provider, left)

    # -- how the gateway routes ---------------------------------------------------------------------
    def know(self, model: ModelKey, belief: Belief, now: int) -> bool:
        """Write down what is believed of a model; False when something newer, not of the future, is there."""
        there = self._document.beliefs().get(model)
        if there is not None and belief.at < there.at <= now + FUTURE_MS:
            return False
        table = self._document.table("routing")
        models = table.get(model.provider)
        models = models if isinstance(models, dict) else {}
        self._document.assign("routing", table | {model.provider: models | {model.model: write_belief(belief)}})
        return True

    # -- old things -------------------------------------------------------------------------------
    def prune(self, lease_ttl_ms: int, max_count: int, now: int) -> int:
        """Drop what is idle, listed by a process long gone, or over a cap; how many bindings went."""
        document, horizon = self._document, now - lease_ttl_ms
        bindings = document.bindings()
        alive = sorted((b for b in bindings if not self._is_over(b, now)), key=lambda b: (-b.last_seen_at, b.key))
        gone = {b.key for b in bindings} - {b.key for b in alive[:max_count]}
        document.delete(gone)
        document.assign("reserved", [r for r in document.rows("reserved") if _is_listed_since(r, horizon, now)])
        retired = sorted(document.stamps("retired").items(), key=lambda item: -item[1])
        document.assign("retired", {name: at for name, at in retired[:RETIRED_KEPT] if at >= horizon})
        for provider in document.table("probes"):
            self._set_probes(provider, [at for at in document.probes(provider) if abs(now - at) < HOUR_MS])
        self._prune_beliefs(now)
        entries = document.rows("entries")
        if len(entries) > ENTRIES_KEPT:
            document.assign("entries", sorted(entries, key=_verified_at, reverse=True)[:ENTRIES_KEPT])
        return len(gone)

    # -- inside -----------------------------------------------------------------------------------
    def _retire(self, routed_id: str, at: int) -> None:
        retired = self._document.table("retired")
        self._document.assign("retired", retired | {id_digest(routed_id): retired.get(id_digest(routed_id), at)})
        self._document.remove_free({routed_id})

    def _prune_beliefs(self, now: int) -> None:
        """What is as old as this is believed by nobody; what cannot be read stays."""
        old = {key for key, belief in self._document.beliefs().items() if abs(now - belief.at) > EXPIRY_MS}
        table = self._document.table("routing")
        left = {
            provider: {name: raw for name, raw in models.items() if ModelKey(provider, name) not in old}
            if isinstance(models, dict)
            else models
            for provider, models in table.items()
        }
        self._document.assign("routing", {provider: models for provider, models in left.items() if models})

    def _set_probes(self, provider: str, stamps: list[int]) -> None:
        others = {name: value for name, value in self._document.table("probes").items() if name != provider}
        self._document.assign("probes", others | ({provider: stamps} if stamps else {}))

    def _is_retired(self, binding: Binding) -> bool:
        return not is_natural(binding) and id_digest(binding.routed_id) in self._document.table("retired")

    def _is_over(self, binding: Binding, now: int) -> bool:
        return not -FUTURE_MS <= now - binding.last_seen_at <= self._lease_ttl_ms

    def _owned(self) -> set[str]:
        """Ids that are somebody's: bound, on standby, or listed in another's reserve."""
        bindings = self._document.bindings()
        bound = {b.routed_id for b in bindings} | {b.standby for b in bindings if b.standby}
        return bound | {one.spare.id for one in self._document.reserved() if one.owner != self._owner}

    def _is_mine(self, raw: Any) -> bool:
        listed = read_reserved(raw)
        return listed is not None and listed.owner == self._owner


def merge(new: Binding, there: Binding) -> Binding:
    """What is measured is the writer's; what only grows, or was decided by another, stays."""
    ahead = there.last_seen_at - new.last_seen_at
    return replace(
        new,
        bound_at=min(new.bound_at, there.bound_at),
        last_seen_at=there.last_seen_at if 0 < ahead <= FUTURE_MS else new.last_seen_at,
        turns=max(new.turns, there.turns),
        marked=new.marked or there.marked,
        standby=new.standby or there.standby,
        corrected=new.corrected or there.corrected,
        locked=new.locked or there.locked,
    )


def _is_listed_since(raw: Any, horizon: int, now: int) -> bool:
    listed = read_reserved(raw)
    return listed is None or horizon <= listed.at <= now + FUTURE_MS


def _verified_at(raw: Any) -> int:
    spare = read_spare(raw)
    return 0 if spare is None else spare.verified_at
