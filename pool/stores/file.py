"""The state file: one JSON document shared by several processes, replaced as a whole under a lock.

``FileStore`` fulfils ``pool.ports.Store``. It blocks, up to the lock wait and the disk: worker thread only. It
never raises for bad state; what is wrong is one sentence in ``Synced.problem``.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from pool.model import Spare
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
    Synced,
    Touch,
)
from pool.stores import disk
from pool.stores.document import Document
from pool.stores.ledger import HOUR_MS, FileLedger
from pool.stores.lock import exclusive
from pool.stores.schema import VERSION
from pool.stores.trouble import Trouble

WAIT_MS: Final = 3_000


def read(path: Path) -> Contents:
    """What the file holds, without a lock or a change; empty when it is missing.

    Raises:
        Trouble: it cannot be read, or is corrupt.
    """
    reading = disk.read(Path(os.path.realpath(path)))
    if reading.corrupt is not None:
        raise Trouble(f"{path} {reading.corrupt}")
    return Document(reading.raw).contents()


class Loaded(NamedTuple):
    """The document under the lock. ``ours`` is False for a newer version, which is never written."""

    document: Document

    @property
    def ours(self) -> bool:
        return bool(self.document.raw["version"] == VERSION)


class FileStore:
    """The state file at ``path``, for the process called ``owner``.

    Args:
        path: a link is followed, so that it stays a link.
        owner: unique among all processes that share the file; by default pid and a random tail.
        wait_ms: how long to wait for the lock.
    """

    def __init__(self, path: Path, owner: str | None = None, wait_ms: int = WAIT_MS) -> None:
        self.path = Path(os.path.realpath(path))
        self.owner = owner or f"{os.getpid()}-{secrets.token_hex(4)}"
        self._wait_ms = wait_ms
        self._seen: disk.Signature | None = None
        self._notice: str | None = None  # not told yet; a grant that finds a corrupt file has no way to
        self._granted: dict[str, list[int]] = {}  # this process's own probes, should the file be of no use

    def start(self, now: int) -> Synced:
        """Read it for the first time: what is corrupt is put aside and counts as empty."""
        try:
            with self._transaction(now) as loaded:
                disk.sweep(self.path)
                return self._said(loaded)
        except Trouble as trouble:
            return self._unlocked(trouble)

    def poll(self) -> Synced | None:
        """What changed since it was last read; a file that is gone or corrupt reads as empty."""
        seen = disk.signature(self.path)
        if seen == self._seen:
            return None
        try:
            reading = disk.read(self.path)
        except Trouble as trouble:
            return Synced(applied=False, contents=None, problem=str(trouble))
        self._seen = seen
        synced = self._said(Loaded(Document(reading.raw)))
        return synced._replace(damaged=reading.corrupt is not None)

    def commit(self, batch: Batch, now: int) -> Synced:
        """Apply a batch to the file as it is now."""
        reserved: tuple[Spare, ...] = ()
        try:
            with self._transaction(now) as loaded:
                if loaded.ours:
                    ledger = FileLedger(loaded.document, self.owner, batch.lease_ttl_ms)
                    reserved = carry_out(ledger, loaded.document.lineage, batch, now)
            return self._said(loaded)._replace(reserved=reserved)
        except Trouble as trouble:
            return self._unlocked(trouble)

    def grant_probes(self, provider: str, count: int, cap: int, now: int) -> int:
        """How many of ``count`` probes fit under ``cap`` in the last hour, of all processes together.

        Without a usable file, of this process.
        """
        own = [at for at in self._granted.get(provider, []) if abs(now - at) < HOUR_MS]
        granted = max(0, min(count, cap - len(own)))
        try:
            with self._transaction(now) as loaded:
                if loaded.ours:
                    granted = FileLedger(loaded.document, self.owner, 0).grant_probes(provider, granted, cap, now)
        except Trouble:
            pass  # the next commit says what is wrong
        self._granted[provider] = own + [now] * granted
        return granted

    def return_probes(self, provider: str, count: int, granted_at: int) -> None:
        """Give back probes whose request was never written."""
        own = self._granted.get(provider, [])
        for _ in range(min(count, own.count(granted_at))):
            own.remove(granted_at)
        try:
            with self._transaction(granted_at) as loaded:
                if loaded.ours:
                    FileLedger(loaded.document, self.owner, 0).return_probes(provider, count, granted_at)
        except Trouble:
            pass

    def close(self) -> None:
        """Nothing to close: no handle is kept between calls."""

    @contextmanager
    def _transaction(self, now: int) -> Iterator[Loaded]:
        """The document as it is, under the lock; written if it was changed and nothing was raised."""
        disk.make_folder(self.path)
        with exclusive(self.path, self._wait_ms):
            loaded = self._load(now)
            yield loaded
            if loaded.ours and loaded.document.changed:
                loaded.document.found()
                disk.write(self.path, loaded.document.raw)
            self._seen = disk.signature(self.path)

    def _load(self, now: int) -> Loaded:
        reading = disk.read(self.path)
        if reading.corrupt is None:
            return Loaded(Document(reading.raw))
        aside = disk.put_aside(self.path, now)
        kept = f"; kept as {aside.name}" if aside else ""
        self._notice = f"{self.path} {reading.corrupt}{kept}"
        return Loaded(Document(None))

    def _said(self, loaded: Loaded) -> Synced:
        problem = None
        if not loaded.ours:
            version = loaded.document.raw["version"]
            problem = f"{self.path} is of version {version}, newer than this one writes: it is only read"
        notice, self._notice = self._notice, None
        return Synced(loaded.ours, loaded.document.contents(), problem=problem, notice=notice)

    def _unlocked(self, trouble: Trouble) -> Synced:
        """Nothing can be written; what can be read still counts."""
        contents = None
        with suppress(Trouble):
            reading = disk.read(self.path)
            contents = Document(reading.raw).contents() if reading.corrupt is None else None
        return Synced(applied=False, contents=contents, problem=str(trouble))


def carry_out(ledger: FileLedger, lineage: str, batch: Batch, now: int) -> tuple[Spare, ...]:
    """Apply a batch; returns the spares that were reserved. A store made anew first gets back what we know."""
    if batch.lineage not in {"", lineage}:
        ledger.restore_retired(batch.retired)
        for binding in batch.restore:
            ledger.bind_if_absent(binding, now)
    return tuple(spare for operation in batch.operations for spare in _apply(ledger, operation, now))


def _apply(ledger: FileLedger, operation: Operation, now: int) -> list[Spare]:
    match operation:
        case Retire(key, routed_id, at):
            ledger.retire_if(key, routed_id, at)
        case Forget(key, routed_id):
            ledger.forget_if(key, routed_id)
        case Bind(binding):
            ledger.bind_if_absent(binding, now)
        case Touch(binding):
            ledger.touch(binding)
        case Reserve(stock, most):
            return ledger.reserve(stock, most, now)
        case Release(spares):
            ledger.release(spares)
        case Hold(spares):
            ledger.hold(spares, now)
        case Prune(lease_ttl_ms, max_count):
            ledger.prune(lease_ttl_ms, max_count, now)
        case Know(model, belief):
            ledger.know(model, belief, now)
    return []
