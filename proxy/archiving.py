"""Carries what is known of conversations to the archive and back. A request never waits for it, nor fails with it."""

import asyncio
from collections.abc import Callable
from functools import partial

from config import paths
from proxy.conversation.archive import Archive, ArchiveError
from proxy.conversation.evidence import Evidence
from proxy.conversation.likeness import WAITING
from proxy.conversation.packing import Row, pack, unpack
from proxy.daemon import Daemon
from proxy.worker import Worker

EVERY_S = 3.0
_AT_ONCE = 256  # lines that are packed before others have their turn
_ADOPTED_AT_ONCE = 64  # lines that are taken from the archive before others have theirs: 2 ms
_START_BOUND_S = 1.0
_END_BOUND_S = 2.0
_WAITS_FOR = "tool_calls"


class Archiving:
    """Owns the archive's thread. ``problem`` is told what is wrong, or None when it works again."""

    def __init__(
        self, evidence: Evidence, archive: Archive, now: Callable[[], int], problem: Callable[[str | None], None]
    ) -> None:
        self._evidence = evidence
        self._archive = archive
        self._now = now
        self._problem = problem
        self._worker = Worker("ocpool-archive")
        self._lasting = False
        self._loaded = False

    async def open(self) -> None:
        """Read the archive, within a bound; what comes later is adopted then."""
        try:
            async with asyncio.timeout(_START_BOUND_S):
                await self._load()
        except TimeoutError:
            self._problem("The archive of conversations does not answer.")

    async def loop(self) -> None:
        """Write what changed, every few seconds."""
        while True:
            await asyncio.sleep(EVERY_S)
            if not self._loaded:
                await self._load()
            await self.save()

    async def close(self) -> None:
        """Write what is pending, within a bound."""
        try:
            async with asyncio.timeout(_END_BOUND_S):
                await self.save()
                await self._worker.do(self._archive.close)
        except TimeoutError:
            self._problem("The archive of conversations does not answer.")
        self._worker.stop()

    async def save(self) -> None:
        """Write what changed since the last time; what cannot be written stays for the next."""
        evidence = self._evidence
        if self._lasting:
            evidence.changed.clear()
            evidence.gone.clear()
            return
        while evidence.changed or evidence.gone:
            lines = [evidence.changed.popitem()[0] for _ in range(min(_AT_ONCE, len(evidence.changed)))]
            gone, evidence.gone = evidence.gone, []
            rows = [pack(line, waiting=line.finish in WAITING) for line in lines]
            for line in lines:
                line.stored = True
            before = self._now() - evidence.ttl_ms
            job = partial(self._archive.save, rows, gone, before)
            if not await self._done(job):
                evidence.changed.update(dict.fromkeys(lines))
                evidence.gone = gone + evidence.gone
                return

    async def _load(self) -> None:
        evidence = self._evidence
        rows: list[Row] = []
        since = self._now() - evidence.ttl_ms
        read = await self._done(lambda: rows.extend(self._archive.load(since, evidence.most))) or self._lasting
        for number, row in enumerate(rows, 1):
            self._adopt(row)
            if number % _ADOPTED_AT_ONCE == 0:
                await asyncio.sleep(0)
        self._loaded = read

    def _adopt(self, row: Row) -> None:
        if self._evidence.current(row.scope, row.label) is not None:  # traffic, or a later line, was here before
            return
        try:
            self._evidence.adopt(unpack(row, _WAITS_FOR))
        except ValueError:
            self._evidence.gone.append(row.row)

    async def _done(self, job: Callable[[], None]) -> bool:
        """Have a job done in the thread; False when it failed."""
        try:
            await self._worker.do(job)
        except ArchiveError as error:
            self._lasting = error.lasting
            self._problem(f"{error}. Conversations are recognised from memory.")
            return False
        self._problem(None)
        return True


def archiving_of(daemon: Daemon) -> Archiving | None:
    """A daemon's archive, beside its state file; None where nothing is recognised from content, or kept."""
    evidence = daemon.registry.evidence
    if evidence is None or not daemon.settings.binding.persist:
        return None
    archive = Archive(paths.archive_path(daemon.settings))
    return Archiving(evidence, archive, daemon.clock.wall_ms, lambda text: daemon.problem("archive", text))
