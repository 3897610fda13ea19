"""Who owns which id, whatever happens: several processes on one state file, killed, restarted, at any moment.

What must hold: an id is seen for one conversation only; a free id is owned by nobody; a retired id is not used again
by any process that has read of it; every id that was ever verified is somewhere, once.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pool.ids import id_digest
from pool.keeper import Done
from pool.model import ProbeKind, Start
from pool.ports import Batch, Release
from pool.refill import ProbeWish
from pool.stores.file import FileStore, read
from tests.fakes.pool import (
    HOUR,
    MINUTE,
    NOW,
    STOCK,
    Process,
    fast,
    limited,
    probed,
    refused,
    slow,
    spare,
    waited,
    wish,
)

CONVERSATIONS = [f"c{n}" for n in range(5)]
PROCESSES = 3
IN_MEMORY = "/dev/shm"  # a thousand flushes to a real disk prove nothing more
OUTCOMES = st.sampled_from(
    [
        fast(),
        fast(),
        fast(7000, uncached_tokens=1),
        slow(uncached_tokens=1),
        refused(),
        limited(),
        waited(9000, uncached_tokens=1),
    ]
)
which = st.integers(0, PROCESSES - 1)


class Ownership(RuleBasedStateMachine):
    """Three processes and a file; time is a number."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory(dir=IN_MEMORY if Path(IN_MEMORY).is_dir() else None)
        self.path = Path(self.folder.name, "state.json")
        self.now = NOW
        self.made: set[str] = set()  # every id that was ever verified
        self.lost: set[str] = set()  # with a killed process or a lost file
        self.sent: dict[str, str] = {}  # id -> conversation, as the upstream sees it
        self.open: list[tuple[int, Start]] = []
        self.processes: list[Process | None] = [None] * PROCESSES
        self.jobs: list[Done | None] = [None] * PROCESSES
        self.read: list[set[str]] = [set() for _ in range(PROCESSES)]  # retired digests a process has read of
        self.births = 0
        for index in range(PROCESSES):
            self.spawn(index)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()

    # -- processes --------------------------------------------------------------------------------
    def spawn(self, index: int) -> None:
        self.births += 1
        process = Process(self.path, self.now, owner=f"o{self.births}", binding={"max_count": 4})
        self.processes[index] = process
        self.read[index] = self.retired_on_file()
        self.jobs[index] = None

    @rule(index=which)
    def kill_and_restart(self, index: int) -> None:
        process, job = self.processes[index], self.jobs[index]
        self.lost |= {one.id for one in process.inventory.all()}
        if job is not None and job.synced is not None:
            self.lost |= {one.id for one in job.synced.reserved}
        self.open = [(owner, start) for owner, start in self.open if owner != index]
        self.spawn(index)

    @rule(index=which)
    def stop_and_restart(self, index: int) -> None:
        self.deliver(index)
        self.processes[index].close(self.now)
        self.open = [(owner, start) for owner, start in self.open if owner != index]
        self.spawn(index)

    @rule(index=which)
    def begin_a_job(self, index: int) -> None:
        if self.jobs[index] is None:
            job = self.processes[index].keeper.next_job(self.now)
            self.jobs[index] = job() if job is not None else None

    @rule(index=which)
    def deliver(self, index: int) -> None:
        done = self.jobs[index]
        if done is not None:
            self.jobs[index] = None
            self.processes[index].keeper.done(done, self.now)
            if done.synced is not None and done.synced.contents is not None:
                self.read[index] |= set(done.synced.contents.retired)

    @rule()
    def everybody_keeps_up(self) -> None:
        for _ in range(8):
            self.now += 300
            for index in range(PROCESSES):
                self.begin_a_job(index)
                self.deliver(index)
        assert not any(self.jobs)
        on_file = {key: binding.routed_id for key, binding in read(self.path).bindings.items()}
        for process in self.processes:
            in_memory = {binding.key: binding.routed_id for binding in process.bindings.durable()}
            assert in_memory.items() <= on_file.items(), "a process believes what the file does not say"

    # -- time and the file --------------------------------------------------------------------------
    @rule(ms=st.sampled_from([50, 300, 2_000, 20_000, 5 * MINUTE]))
    def time_passes(self, ms: int) -> None:
        self.now += ms

    @rule()
    def a_night_passes(self) -> None:
        self.now += 9 * HOUR

    @rule(damage=st.sampled_from([None, b"", b'{"version": 1, "entr']))
    @precondition(lambda self: self.path.exists())
    def the_file_is_lost(self, damage: bytes | None) -> None:
        self.lost |= {one.id for one in read_or_empty(self.path)}
        self.path.unlink() if damage is None else self.path.write_bytes(damage)

    # -- spares -----------------------------------------------------------------------------------
    @rule(index=which, count=st.integers(1, 3))
    def a_process_probes(self, index: int, count: int) -> None:
        for _ in range(count):
            routed_id = f"p{len(self.made)}"
            self.made.add(routed_id)
            self.processes[index].routes.admit(ProbeWish(STOCK), probed(routed_id), self.now)

    @rule(index=which)
    def a_stale_spare_is_verified_again(self, index: int) -> None:
        inventory = self.processes[index].inventory
        stale = inventory.stale(STOCK, self.now, 30 * MINUTE)
        if stale:
            one = stale[0]
            kind = ProbeKind.FAST if len(stale) % 2 else ProbeKind.SLOW
            self.processes[index].routes.admit(ProbeWish(STOCK, one), probed(one.id, kind), self.now)
            self.lost |= {one.id} if kind is ProbeKind.SLOW else set()

    @rule(count=st.integers(1, 3))
    def a_command_seeds(self, count: int) -> None:
        spares = tuple(spare(f"p{len(self.made) + n}", verified_at=self.now) for n in range(count))
        if FileStore(self.path).commit(Batch((Release(spares),), 8 * HOUR), self.now).applied:
            self.made |= {one.id for one in spares}

    # -- requests ---------------------------------------------------------------------------------
    @rule(index=which, name=st.sampled_from(CONVERSATIONS))
    def a_request_starts(self, index: int, name: str) -> None:
        start = self.processes[index].routes.start(wish(name), self.now)
        self.send(index, start)

    @rule(position=st.integers(0, 9), outcome=OUTCOMES)
    def a_request_ends(self, position: int, outcome) -> None:
        if not self.open:
            return
        index, start = self.open.pop(position % len(self.open))
        self.processes[index].routes.observe(start, outcome, self.now)

    @rule(position=st.integers(0, 9), again=st.booleans(), late=st.booleans())
    def a_request_is_refused(self, position: int, again: bool, late: bool) -> None:
        if not self.open:
            return
        index, start = self.open.pop(position % len(self.open))
        routes = self.processes[index].routes
        replay = routes.replace(start, self.now)
        routes.observe(start, refused(), self.now)
        if replay is None:
            return
        self.send(index, replay)
        if not late:
            self.open.pop()
            routes.observe(replay, refused(replayed=True) if again else fast(replayed=True), self.now)

    @rule(index=which, name=st.sampled_from([*CONVERSATIONS, None]))
    def somebody_repins(self, index: int, name: str | None) -> None:
        self.processes[index].routes.repin(name, self.now)

    def send(self, index: int, start: Start) -> None:
        """The upstream sees an id."""
        owner = self.sent.setdefault(start.routed_id, start.wish.conversation)
        assert owner == start.wish.conversation, "an id was seen for two conversations"
        assert id_digest(start.routed_id) not in self.read[index], "a retired id was used again"
        self.open.append((index, start))

    # -- what must hold -----------------------------------------------------------------------------
    def retired_on_file(self) -> set[str]:
        try:
            return set(read(self.path).retired)
        except Exception:
            return set()

    @invariant()
    def a_free_id_is_owned_by_nobody(self) -> None:
        if not hasattr(self, "path"):
            return
        free = [one.id for one in read_or_empty(self.path)]
        assert len(free) == len(set(free))
        assert not set(free) & self.sent.keys()
        reserves = [one.id for process in self.processes for one in process.inventory.all()]
        assert len(reserves) == len(set(reserves))
        assert not set(reserves) & self.sent.keys()
        assert not set(reserves) & set(free)

    @invariant()
    def counts_add_up(self) -> None:
        if not hasattr(self, "path"):
            return
        free = {one.id for one in read_or_empty(self.path)}
        reserves = {one.id for process in self.processes for one in process.inventory.all()}
        travelling = {s.id for job in self.jobs if job and job.synced for s in job.synced.reserved}
        taken = {routed_id for routed_id in self.sent if routed_id in self.made}
        assert self.made - self.lost <= free | reserves | travelling | taken
        assert free | reserves | travelling | taken <= self.made

    @invariant()
    def a_binding_and_its_entries_are_apart_on_file(self) -> None:
        if not hasattr(self, "path"):
            return
        try:
            contents = read(self.path)
        except Exception:
            return
        owned = {b.routed_id for b in contents.bindings.values()} | {b.standby for b in contents.bindings.values()}
        assert not {one.id for one in contents.free} & owned
        assert not {id_digest(b.routed_id) for b in contents.bindings.values()} & contents.retired.keys()


def read_or_empty(path: Path):
    try:
        return read(path).free
    except Exception:
        return ()


TestOwnership = Ownership.TestCase
TestOwnership.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
