"""Pools without HTTP: what tests of the pool build their cases from."""

from __future__ import annotations

from pathlib import Path

from config.settings import Settings
from pool.bindings import Bindings
from pool.ids import id_digest, new_id
from pool.inventory import Inventory
from pool.keeper import Keeper
from pool.model import (
    Blame,
    Latency,
    Natural,
    Note,
    Outcome,
    ProbeKind,
    ProbeResult,
    Shape,
    Spare,
    Start,
    Stock,
    Wish,
)
from pool.ports import Batch, Release
from pool.routes import Routes
from pool.stores.file import FileStore

NOW = 1_795_000_000_000
GO = "opencode-go"
MODEL = "deepseek-v4.1-flash"
STOCK = Stock(GO, MODEL, "", Shape.UUID)
SECOND = 1_000
MINUTE = 60_000
HOUR = 3_600_000


def settings(**sections) -> Settings:
    return Settings.model_validate(sections)


def wish(
    conversation="c1",
    *,
    scope="",
    model=MODEL,
    provider=GO,
    shape=Shape.UUID,
    minted=True,
    turn=True,
    child=False,
    value=None,
) -> Wish:
    value = value or f"natural-{conversation}"
    natural = Natural(value, minted=minted, digest=id_digest(value))
    return Wish(conversation, scope, provider, model, shape, natural, turn=turn, child=child)


def spare(routed_id=None, *, stock=STOCK, upstream_ms=900.0, verified_at=NOW, created_at=NOW) -> Spare:
    return Spare(routed_id or new_id(stock.shape), stock, upstream_ms, verified_at, created_at)


def fast(upstream_ms=900.0, **facts) -> Outcome:
    return Outcome(**({"blame": Blame.NONE, "accepted": True, "judged": True, "latency_ms": upstream_ms} | facts))


def slow(upstream_ms=12_000.0, **facts) -> Outcome:
    return fast(upstream_ms, **facts)


def first_event(latency_ms, **facts) -> Outcome:
    return fast(latency_ms, latency=Latency.FIRST_EVENT, **facts)


def waited(latency_ms, **facts) -> Outcome:
    return fast(latency_ms, latency=Latency.WAITED, accepted=False, blame=Blame.CLIENT, **facts)


def refused(**facts) -> Outcome:
    return Outcome(**({"blame": Blame.ROUTE, "accepted": False, "judged": False, "refused": True} | facts))


def limited(pause_ms=None) -> Outcome:
    return Outcome(Blame.LIMIT, accepted=False, judged=False, pause_ms=pause_ms)


def unauthorized() -> Outcome:
    return Outcome(Blame.CLIENT, accepted=False, judged=False, unauthorized=True)


def probed(routed_id, kind=ProbeKind.FAST, upstream_ms=800.0, *, written=True, retry_after_ms=None) -> ProbeResult:
    return ProbeResult(routed_id, kind, upstream_ms, upstream_ms or 0.0, written, retry_after_ms=retry_after_ms)


def names(notes: list[Note]) -> list[str]:
    return [note.name for note in notes]


def routes(*spares: Spare, shared_key=True, **sections) -> Routes:
    """A pool of one process with these spares in reserve and no store."""
    tree = settings(**sections)
    made = Routes(tree, Inventory(), Bindings(tree), shared_key=shared_key)
    for one in spares:
        made.parts.inventory.admit(one)
    return made


class Process:
    """A whole pool on a state file, as one process has it; jobs run in place."""

    def __init__(self, path: Path, now: int = NOW, *, owner=None, wait_ms=300, opening=True, **sections) -> None:
        self.settings = settings(**sections)
        self.routes = Routes(self.settings, Inventory(), Bindings(self.settings), shared_key=True)
        self.store = FileStore(path, owner, wait_ms)
        self.keeper = Keeper(self.settings, self.routes, self.store)
        self.notes: list[Note] = []
        if opening:
            self.notes += self.keeper.done(self.keeper.opening(now)(), now)

    @property
    def inventory(self) -> Inventory:
        return self.routes.parts.inventory

    @property
    def bindings(self) -> Bindings:
        return self.routes.parts.bindings

    def tick(self, now: int) -> list[str]:
        """One step of upkeep, if anything is due."""
        job = self.keeper.next_job(now)
        notes = self.keeper.done(job(), now) if job is not None else []
        self.notes += notes
        return names(notes)

    def settle(self, now: int, for_ms: int = 2_000) -> int:
        """Upkeep every 100 ms for that long; returns the time at its end."""
        for at in range(now, now + for_ms, 100):
            self.tick(at)
        return now + for_ms

    def close(self, now: int) -> None:
        self.notes += self.keeper.done(self.keeper.closing(now)(), now)

    def turn(self, a_wish: Wish, now: int, outcome: Outcome | None = None) -> Start:
        """A whole turn: started and observed at once."""
        start = self.routes.start(a_wish, now)
        self.routes.observe(start, outcome or fast(), now)
        return start


def seed(path, *spares):
    """A state file with free spares."""
    FileStore(path).commit(Batch((Release(spares),)), NOW)


def pair(path, *spares):
    """Two processes that know of one conversation on spare s1."""
    seed(path, spare("s1"))
    one = Process(path)
    one.turn(wish(), NOW)
    one.settle(NOW)
    two = Process(path, NOW + 2_000)
    for process in (one, two):
        for another in spares:
            process.inventory.admit(another)
    return one, two
