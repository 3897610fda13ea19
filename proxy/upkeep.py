"""The daemon's background work: the state file, the refill, and a watch on the world. One owner for every task.

Expected trouble is handled inside a loop; an unexpected exception in one is logged and the loop goes on after a pause.
Nothing here is ever waited for by a request, unless a budget was configured.
"""

import asyncio
from collections.abc import Awaitable, Callable

from pool.ids import new_id
from pool.keeper import Done, Job
from pool.model import Note, ProbeResult, Start, Stock
from pool.refill import ProbeWish
from pool.rounds import Round
from pool.search import Found, GiveUp, Search
from proxy import network, spending
from proxy.archiving import archiving_of
from proxy.daemon import Daemon
from proxy.network import local_address
from proxy.notify import ALIVE, notify, watchdog_ms
from proxy.recall import Recall
from proxy.worker import Worker

_STATE_TICK_S = 0.1
_REFILL_TICK_MS = 1_000.0
_WATCH_TICK_S = 0.5
_ADDRESS_TICKS = 10
_ERROR_PAUSE_S = 2.0
_OPENING_BOUND_S = 4.0
_CLOSING_BOUND_S = 4.0
_SILENT_AFTER_S = 10.0  # longer than the three waits for a lock that can be in the queue: a grant, its return, a write
_GAP_MS = 5_000.0
_OTHER_SEARCH_MS = 50.0


class Upkeep:
    """Owns the loops and the thread of the state file."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._worker = Worker("ocpool-state")
        self._archiving = archiving_of(daemon)
        self._job: asyncio.Future[Done] | None = None  # the one under way for the state file
        self._began_ms = 0.0
        self._wanted = asyncio.Event()
        self.clients: Callable[[], None] | None = None  # told with each look around; set by serve
        daemon.refresh = self._hurry

    async def open(self) -> None:
        """Read the state before traffic, within a bound; what comes later is adopted then."""
        self._give(self._daemon.keeper.opening(self._daemon.clock.wall_ms()))
        if self._archiving is not None:
            self._daemon.recall = Recall()
        try:
            await self._adopt(_OPENING_BOUND_S)
        except Exception as exc:  # noqa: BLE001  (a start without state is still a start)
            self._daemon.trouble("state_open_failed", exc)

    async def recall(self) -> None:
        """Read the archive of conversations beside traffic: only requests that are told by content wait for it."""
        daemon = self._daemon
        if self._archiving is None or daemon.recall is None:
            return
        try:
            await daemon.recall.due()
            await self._archiving.open()
        except Exception as exc:  # noqa: BLE001  (conversations are recognised from memory)
            daemon.trouble("archive_open_failed", exc)
        finally:
            daemon.recall.over()
            daemon.recall = None

    async def close(self) -> None:
        """Put unused spares back and write what is pending, within a bound."""
        daemon = self._daemon
        if self._archiving is not None:
            await self._archiving.close()
        try:
            async with asyncio.timeout(_CLOSING_BOUND_S):
                await self._adopt(_CLOSING_BOUND_S)
                done = await self._worker.do(daemon.keeper.closing(daemon.clock.wall_ms()))
                daemon.keeper.done(done, daemon.clock.wall_ms())
                await self._worker.do(daemon.store.close)
        except TimeoutError:
            daemon.problem("state", "The state file does not answer. What was decided since it last did is lost.")
        except Exception as exc:  # noqa: BLE001  (the process ends all the same)
            daemon.trouble("state_close_failed", exc)
        self._worker.stop()

    def _give(self, work: Job) -> None:
        self._began_ms = self._daemon.clock.mono_ms()
        self._job = self._worker.give(work)

    async def _adopt(self, bound_s: float) -> None:
        """Wait for the job under way and take over what the store said. One that is late stays under way."""
        daemon, job = self._daemon, self._job
        if job is None:
            return
        await asyncio.wait({job}, timeout=bound_s)
        if not job.done():
            daemon.problem("state", "The state file does not answer. Routing goes on from memory.")
            return
        self._job = None
        done = job.result()
        for note in daemon.keeper.done(done, daemon.clock.wall_ms()):
            daemon.note(note)
        if done.carried is not None:
            daemon.metrics.observe("state_sync_seconds", daemon.clock.mono_ms() - self._began_ms)
            daemon.metrics.count("state_syncs", result="ok" if daemon.keeper.problem is None else "failed")
        daemon.problem("state", daemon.keeper.problem)

    def start(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """Start the loops in the daemon's one group; whoever owns that ends them."""
        loops = [self._state, self._refill, self._rounds, self._watch]
        if watchdog_ms() is not None:
            loops.append(self._alive)
        if self._archiving is not None:
            loops.append(self._archiving.loop)
        return [group.create_task(self._endlessly(loop), name=f"ocpool{loop.__name__}") for loop in loops]

    async def _endlessly(self, loop: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await loop()
            except Exception as exc:  # noqa: BLE001  (traffic goes on, and so does the loop)
                self._daemon.trouble(f"loop{loop.__name__}_failed", exc)
                await asyncio.sleep(_ERROR_PAUSE_S)

    async def _state(self) -> None:
        """Carry decisions to the state file, and back what other processes decided."""
        daemon = self._daemon
        while True:
            await asyncio.sleep(_STATE_TICK_S)
            for note in (*daemon.routes.notes(), *daemon.registry.notes()):
                daemon.note(note)
            if self._job is None:
                work = daemon.keeper.next_job(daemon.clock.wall_ms())
                if work is None:
                    continue
                self._give(work)
            await self._adopt(_SILENT_AFTER_S)

    async def _refill(self) -> None:
        """Keep spares ready, one probe after the other."""
        daemon = self._daemon
        clock = daemon.clock
        while True:
            if not self._wanted.is_set():
                await clock.sleep(_REFILL_TICK_MS)
            self._wanted.clear()
            while daemon.settings.probe.enabled and not daemon.stopping:
                wishes = daemon.routes.refill_plan(clock.wall_ms(), self._payable)
                if not wishes:
                    break
                for wish in wishes:
                    await self._probe(wish)
                await clock.sleep(daemon.settings.probe.min_interval_ms)

    async def _rounds(self) -> None:
        """Try candidates for conversations whose natural id was slow (throughput profile), one round at a time."""
        daemon = self._daemon
        while True:
            await daemon.clock.sleep(_REFILL_TICK_MS)
            while not daemon.stopping:
                found = daemon.routes.next_round(daemon.clock.wall_ms(), self._payable)
                if found is None:
                    break
                await self._drive(found)

    def _hurry(self) -> None:
        """By command: a cycle begins now for every model in use."""
        self._daemon.routes.refresh(self._daemon.clock.wall_ms())
        self._wanted.set()

    def _payable(self, stock: Stock) -> bool:
        return self._daemon.targets.target_for(stock.provider, stock.model, stock.scope) is not None

    async def _probe(self, wish: ProbeWish) -> None:
        """One probe of the refill, if this hour still has one to give."""
        daemon = self._daemon
        stock = wish.stock
        session = wish.reverify.id if wish.reverify is not None else new_id(stock.shape)
        timeout_ms = daemon.settings.probe_for(stock.model).timeout_ms
        result = await self._granted_probe(stock, session, timeout_ms)
        if result is not None:
            for note in daemon.routes.admit(wish, result, daemon.clock.wall_ms()):
                daemon.note(note)

    async def _granted_probe(self, stock: Stock, session: str, timeout_ms: float) -> ProbeResult | None:
        """Send a probe that counts against ``pool.max_probes_per_hour``; None when none was granted or possible."""
        daemon = self._daemon
        provider = stock.provider
        cap = daemon.settings.pool.max_probes_per_hour
        granted_at = daemon.clock.wall_ms()
        if not await self._worker.do(lambda: daemon.store.grant_probes(provider, 1, cap, granted_at)):
            for note in daemon.routes.capped(provider, daemon.clock.wall_ms()):
                daemon.note(note)
            return None
        result = await self._send_probe(stock, session, timeout_ms)
        if result is None or not result.written:
            await self._worker.do(lambda: daemon.store.return_probes(provider, 1, granted_at))
        return result

    async def _send_probe(self, stock: Stock, session: str, timeout_ms: float) -> ProbeResult | None:
        daemon = self._daemon
        target = daemon.targets.target_for(stock.provider, stock.model, stock.scope)
        if target is None:
            return None
        sent_at = daemon.clock.wall_ms()
        result = await daemon.prober.probe(target, session, timeout_ms)
        spending.note_probe(daemon.usage, stock, result, sent_at)
        if result.status is not None:
            daemon.problem(network.PART, None)
        model = {"provider": stock.provider, "model": stock.model}
        daemon.metrics.count("probes", **model, kind=result.kind.value)
        daemon.metrics.observe("probe_seconds", result.wall_ms, **model)
        if result.tokens:
            daemon.metrics.count("probe_tokens", result.tokens, **model)
        return result

    async def search(self, start: Start) -> Start:
        """Look for a fast id for as long as the configured budget allows; without one, the start stays as it was."""
        search = self._daemon.routes.search(start, self._daemon.clock.wall_ms())
        return await (self._other_search(start) if search is None else self._drive(search))

    async def _drive(self, search: Search | Round) -> Start:
        """Send the probes that a search or a round of candidates asks for, until it is over."""
        daemon = self._daemon
        clock = daemon.clock
        try:
            while True:
                step = search.next(clock.wall_ms())
                if isinstance(step, Found | GiveUp):
                    return step.start
                await clock.sleep(step.wait_ms)
                result = await self._granted_probe(step.stock, step.id, step.timeout_ms)
                if result is None:
                    return search.stop("no probe granted", clock.wall_ms()).start
                search.feed(result, clock.wall_ms())
        except asyncio.CancelledError:
            search.stop("client gone", clock.wall_ms())
            raise

    async def _other_search(self, start: Start) -> Start:
        """Another request of the conversation is looking already: what it finds serves this one too."""
        daemon = self._daemon
        clock = daemon.clock
        deadline = clock.wall_ms() + start.budget_ms
        while clock.wall_ms() < deadline:
            await clock.sleep(_OTHER_SEARCH_MS)
            again = daemon.routes.start(start.wish, clock.wall_ms())
            if again.budget_ms <= 0:
                return again
        return start

    async def _alive(self) -> None:
        """Tell the service manager that the event loop runs; it restarts us when it does not hear that in time."""
        while (every_ms := watchdog_ms()) is not None:
            notify(ALIVE)
            await asyncio.sleep(every_ms / 1000)

    async def _watch(self) -> None:
        """Notice a suspend, another network, clients that left unseen, and connections that grew too old."""
        daemon = self._daemon
        clock = daemon.clock
        offset = clock.wall_ms() - clock.mono_ms()
        address = local_address()
        ticks = 0
        while True:
            await asyncio.sleep(_WATCH_TICK_S)
            ticks += 1
            for client in daemon.in_flight:
                if client.vanished() and client.transport is not None:
                    client.transport.abort()
            drift = clock.wall_ms() - clock.mono_ms() - offset
            if abs(drift) > _GAP_MS:
                offset += drift
                self._disturbed("clock", round(drift))
            if ticks % _ADDRESS_TICKS == 0:
                current = local_address()
                if current != address and current is not None:
                    self._disturbed("address", 0)
                address = current or address
            daemon.upstream.expire()
            if self.clients is not None:
                self.clients()

    def _disturbed(self, what: str, gap_ms: int) -> None:
        daemon = self._daemon
        daemon.upstream.drop_idle()
        for note in daemon.routes.disturbed(daemon.clock.wall_ms(), gap_ms):
            daemon.note(Note(note.name, {"what": what, "gap_ms": gap_ms, **note.facts}))
