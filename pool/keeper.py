"""Carries what memory decided to the store, and what the store says back into memory.

It decides when and what, and never blocks. The shell owns one worker thread and does::

    job = keeper.opening(now)            # once, before traffic; wait for it a few seconds at most, then go on
    notes = keeper.done(await in_thread(job), clock.wall_ms())
    every 100 ms, while no job is running:
        job = keeper.next_job(now)        # None: nothing is due
        if job: notes = keeper.done(await in_thread(job), clock.wall_ms())
    at the end, when no request is left and no job is running:
        notes = keeper.done(await in_thread(keeper.closing(now)), clock.wall_ms())

A job never raises. A hanging file system hangs only the thread: let it be a daemon, and give up waiting.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from config.settings import Settings
from pool.adoption import adopt
from pool.model import Binding, Note, Stock
from pool.outbox import Pending
from pool.ports import (
    Batch,
    Bind,
    Contents,
    Forget,
    Hold,
    Know,
    Operation,
    Prune,
    Release,
    Reserve,
    Retire,
    Store,
    Synced,
    Touch,
)
from pool.routes import Routes

POLL_MS: Final = 500
PRUNE_MS: Final = 300_000
HOLD_MS: Final = 1_800_000
RETRY_MS: Final = (1_000, 2_000, 5_000, 10_000, 30_000)  # after a write that failed


class Done(NamedTuple):
    """A job's answer: what it carried (None: it only looked), and what the store said (None: nothing new)."""

    carried: dict[str, Pending] | None
    synced: Synced | None


Job = Callable[[], Done]  # call it in the worker thread


class Keeper:
    """Pending conditional operations, coalesced up to 1 s, and the adoption of what the store says."""

    def __init__(self, settings: Settings, routes: Routes, store: Store) -> None:
        self.problem: str | None = None  # one sentence while the state cannot be kept
        self._settings = settings
        self._routes = routes
        self._inventory = routes.parts.inventory
        self._bindings = routes.parts.bindings
        self._store = store
        self._lineage = ""
        self._free: tuple[Stock, ...] = ()
        self._held_version = -1
        self._held_at = self._polled_at = self._pruned_at = 0
        self._failures = 0
        self._retry_at = 0
        self._anew = False

    def reconfigure(self, settings: Settings) -> None:
        self._settings = settings

    @property
    def store(self) -> Store:
        return self._store

    # -- jobs -------------------------------------------------------------------------------------
    def opening(self, now: int) -> Job:
        """Read the store, and reserve what lies free in it."""
        store, settings, lease = self._store, self._settings, self._settings.binding.lease_ttl_ms
        prune = Prune(lease, settings.binding.max_count)
        self._pruned_at = self._polled_at = now

        def job() -> Done:
            synced = store.start(now)
            if not synced.applied or synced.contents is None or settings.routing.mode == "off":
                return Done({}, synced)
            stocks = sorted({spare.stock for spare in synced.contents.free})
            reserve = [Reserve(stock, settings.pool_for(stock.model).size) for stock in stocks]
            committed = store.commit(Batch((prune, *reserve), lease), now)
            return Done({}, committed._replace(notice=synced.notice or committed.notice))

        return job

    def next_job(self, now: int) -> Job | None:
        """What is due now, if anything."""
        if self._is_due(now):
            return self._writing(now, self._operations(now))
        if not 0 <= now - self._polled_at < POLL_MS:
            self._polled_at = now
            store = self._store
            return lambda: Done(None, store.poll())
        return None

    def closing(self, now: int) -> Job:
        """Write everything and put unused spares back. Nothing may be asked of the routes afterwards."""
        spares = self._inventory.drain()
        for binding in self._bindings.durable():
            self._bindings.touch(binding, now, pressing=True)
        return self._writing(now, [Hold(()), Release(spares)])

    # -- what came of them ------------------------------------------------------------------------
    def done(self, answer: Done, now: int) -> list[Note]:
        """Adopt what the store says; the notes tell adoptions, and trouble once per change."""
        synced = answer.synced
        if synced is None:
            return []
        notes = [Note("state_notice", {"text": synced.notice})] if synced.notice else []
        if answer.carried is not None:
            notes += self._settle(answer.carried, synced, now)
        elif synced.problem is not None:
            notes += self._say(synced.problem)
        if synced.contents is not None:
            for spare in synced.reserved:
                self._inventory.admit(spare)
            written = answer.carried is not None and synced.applied
            notes += self._adopt(synced.contents, now, written=written, damaged=synced.damaged)
        return notes

    def _settle(self, carried: dict[str, Pending], synced: Synced, now: int) -> list[Note]:
        if synced.applied:
            self._failures = self._retry_at = 0
            return self._say(synced.problem)
        self._bindings.outbox.put_back(carried, now)
        self._held_version = -1
        self._retry_at = now + RETRY_MS[min(self._failures, len(RETRY_MS) - 1)]
        self._failures += 1
        return self._say(synced.problem)

    def _adopt(self, contents: Contents, now: int, *, written: bool, damaged: bool) -> list[Note]:
        anew = damaged or self._lineage not in {"", contents.lineage}
        notes = adopt(self._bindings, self._inventory, contents, now, anew=anew)
        notes += self._routes.adopt(contents.beliefs, now)
        self._free = tuple({spare.stock for spare in contents.free})
        self._anew = anew and not written
        if not self._anew:
            self._lineage = contents.lineage
        return notes

    def _say(self, problem: str | None) -> list[Note]:
        if problem == self.problem:
            return []
        self.problem = problem
        return [Note("state_ok") if problem is None else Note("state_problem", {"text": problem})]

    # -- what is to be written ----------------------------------------------------------------------
    def _is_due(self, now: int) -> bool:
        if self._retry_at and 0 <= self._retry_at - now <= RETRY_MS[-1]:
            return False
        return (
            self._bindings.outbox.due(now)
            or self._anew
            or self._is_hold_due(now)
            or not 0 <= now - self._pruned_at < PRUNE_MS
            or bool(self._reserves(now))
            or bool(self._routes.beliefs(now))
        )

    def _is_hold_due(self, now: int) -> bool:
        changed = self._inventory.version != self._held_version
        return changed and not 0 <= now - self._held_at < POLL_MS

    def _operations(self, now: int) -> list[Operation]:
        operations: list[Operation] = list(self._reserves(now))
        operations += [Know(model, belief) for model, belief in self._routes.beliefs(now).items()]
        self._held_version, self._held_at = self._inventory.version, now
        operations.append(Hold(self._inventory.all()))
        if not 0 <= now - self._pruned_at < PRUNE_MS:
            self._pruned_at = now
            self._bindings.prune(now)
            operations.append(Prune(self._settings.binding.lease_ttl_ms, self._settings.binding.max_count))
        return operations

    def _reserves(self, now: int) -> list[Reserve]:
        if not self._free:
            return []
        return [Reserve(stock, lacking) for stock, lacking in self._routes.wants(now) if stock in self._free]

    def _writing(self, now: int, operations: list[Operation]) -> Job:
        bindings, store = self._bindings, self._store
        carried = bindings.outbox.collect()
        batch = Batch(
            operations=(*self._decisions(carried), *operations),
            lease_ttl_ms=self._settings.binding.lease_ttl_ms,
            lineage=self._lineage,
            restore=self._to_restore(),
            retired=dict(bindings.retired),
        )
        return lambda: Done(carried, store.commit(batch, now))

    def _decisions(self, carried: dict[str, Pending]) -> list[Operation]:
        """The bindings' operations: drops first, then what took their place, as it is now."""
        operations: list[Operation] = []
        for key, pending in carried.items():
            operations += [Retire(key, routed_id, at) for routed_id, at in pending.retire.items()]
            operations += [Forget(key, routed_id) for routed_id in sorted(pending.forget)]
            binding = self._bindings.get(key)
            if binding is not None and self._bindings.is_durable(key):
                operations += [Bind(replace(binding))] if pending.bind else []
                operations += [Touch(replace(binding))] if pending.touch and not pending.bind else []
        return operations

    def _to_restore(self) -> tuple[Binding, ...]:
        """Not copies: the rare writer that needs them may well see the latest measurement."""
        return tuple(self._bindings.durable()) if self._settings.binding.persist else ()
