"""The usage ledger: what the gateway's answers cost in tokens and, estimated, in money, day by day.

A request pays for one append; a thread prices what gathered and adds it to the file every few seconds. A file that is
broken, locked or full costs counts at worst, never a request: what could not be written is kept and tried again.
"""

import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pool.stores.disk import put_aside
from pool.stores.trouble import Trouble
from proxy.answers.usage import Usage
from proxy.insight import pricing, usage_file
from proxy.insight.usage_file import DAY_MS, Key, Sums, day_of
from proxy.insight.usage_report import told

WRITE_SECONDS = 5.0
CLOSE_WAIT_SECONDS = 3.0
FOLD_DAYS = 30  # conversations are told apart for so long
_CAPACITY = 50_000  # requests that may wait for the thread
_MOST_ROWS = 5_000  # rows that may wait for the file; further conversations are put together, at last all further ones
_MOST_MODELS = 200
_LONGEST_MODEL = 128
_SHORT = 8
_AT_ONCE = 16
_PAUSE_SECONDS = 0.001


class Spent(NamedTuple):
    """One answer, as it is noted. ``usage`` is what its provider said; ``scope`` says whose it was.

    ``probe``: ocpool asked for it itself, and no conversation is charged.
    """

    at: int  # unix ms
    scope: str
    provider: str
    model: str
    conversation: str
    side: bool
    partial: bool
    usage: Usage | None
    probe: bool = False


class Ledger:
    """Counts answers.

    Args:
        path: of the file; None keeps counts in memory only.
        now: unix ms.
        warn: told once when the file or the prices cannot be used, and once when they can again.
        prices: the user's file of prices.
    """

    def __init__(
        self,
        path: Path | None,
        now: Callable[[], int],
        *,
        warn: Callable[[str], object] | None = None,
        prices: Path | None = None,
    ) -> None:
        self.path = path
        self.prices_path = prices
        self._now = now
        self._warn = warn
        self._waiting: deque[Spent] = deque()
        self._unwritten: dict[Key, Sums] = {}
        self._since_start: dict[tuple[str, str], Sums] = {}
        self._prices = pricing.Prices(pricing.built_in())
        self._priced_by: object = None
        self._folded_on = ""
        self._said: dict[str, str] = {}  # what is wrong, by part
        self.dropped = 0
        self._wake = threading.Event()
        self._resting = True  # the thread waits to be woken
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def note(self, spent: Spent) -> None:
        """Count one answer, soon. Never blocks, never raises."""
        waiting = self._waiting
        if len(waiting) >= _CAPACITY:
            self.dropped += 1
            return
        waiting.append(spent)
        if self._resting:
            self._resting = False
            self._start()
            self._wake.set()

    def close(self) -> None:
        """Write what was noted. Blocks for at most ``CLOSE_WAIT_SECONDS``."""
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(CLOSE_WAIT_SECONDS)

    @property
    def problems(self) -> list[str]:
        """What is wrong with the file or the prices."""
        return list(self._said.values())

    def view(self) -> dict[str, Any]:
        """The counts since the start by provider and model, as of a few seconds ago."""
        totals = dict(self._since_start)
        rows = [
            {"provider": provider, "model": model, **told(sums)}
            for (provider, model), sums in sorted(totals.items(), key=lambda item: -item[1].input)
        ]
        path = str(self.path) if self.path is not None else None
        return {"path": path, "problems": self.problems, "dropped": self.dropped, "since_start": rows}

    def _start(self) -> None:
        if self._thread is not None:
            return
        thread = threading.Thread(target=self._run, name="ocpool-usage", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no threads left, or the interpreter is going down: the queue stays bounded
            return
        self._thread = thread

    def _run(self) -> None:
        while True:
            self._wake.wait()
            last = self._closing.wait(WRITE_SECONDS)  # let some gather, unless there is no more to come
            self._wake.clear()
            self._resting = True
            try:
                self.settle()
            except Exception as error:  # noqa: BLE001 - counts are lost, nothing else
                self._unwritten = {}  # whatever it was, it is not tried again
                self._say("file", f"usage could not be counted: {type(error).__name__}")
            if self._unwritten and not last:
                self._wake.set()  # try again although nobody may come
            if last:
                return

    def settle(self) -> None:
        """Price what was noted and add it to the file. Blocking: the thread's work."""
        self._look_at_prices()
        while self._waiting:
            self._count(min(len(self._waiting), _AT_ONCE))
            self._closing.wait(_PAUSE_SECONDS)  # let the event loop have the interpreter's lock
        if self.path is None:
            self._unwritten.clear()
        elif self._unwritten:
            self._write(self.path)

    def _count(self, answers: int) -> None:
        """Add up the next of what was noted."""
        fresh: dict[tuple[int, str, str, str, str], Sums] = {}
        for _ in range(answers):
            spent = self._waiting.popleft()
            row = (spent.at // DAY_MS, spent.scope, spent.provider, spent.model, spent.conversation)
            sums = fresh.get(row)
            if sums is None:
                sums = fresh[row] = Sums()
            self._add(sums, spent)
        for (day, scope, provider, name, conversation), sums in fresh.items():
            model = name[:_LONGEST_MODEL].encode("utf-8", "replace").decode()
            key = Key(day_of(day * DAY_MS), scope[:_SHORT], provider, model, conversation)
            if key not in self._unwritten and len(self._unwritten) >= _MOST_ROWS:
                key = key._replace(conversation="")
            if key not in self._unwritten and len(self._unwritten) >= 2 * _MOST_ROWS:
                key = key._replace(key="", model="")
            self._unwritten.setdefault(key, Sums()).add(sums)
            if (provider, model) not in self._since_start and len(self._since_start) >= _MOST_MODELS:
                model = ""
            self._since_start.setdefault((provider, model), Sums()).add(sums)

    def _add(self, sums: Sums, spent: Spent) -> None:
        if spent.probe:
            self._add_probe(sums, spent)
            return
        if spent.side:
            sums.side += 1
        else:
            sums.turns += 1
        if spent.partial:
            sums.partial += 1
        usage = spent.usage
        if usage is None:
            sums.unknown += 1
            return
        whole, cached, written, output, reasoning = usage
        sums.input += whole or 0
        sums.output += output or 0
        sums.written += written or 0
        sums.reasoning += reasoning or 0
        if cached is not None:
            sums.cached += cached
            sums.told += whole or 0
        estimate = self._prices.estimate(spent.provider, spent.model, usage, spent.at)
        if estimate is None:
            sums.unpriced += 1
        else:
            sums.cost += estimate.cost
            sums.saved += estimate.saved

    def _add_probe(self, sums: Sums, spent: Spent) -> None:
        sums.probes += 1
        usage = spent.usage
        if usage is None:
            return
        sums.probe_tokens += (usage.input or 0) + (usage.output or 0)
        estimate = self._prices.estimate(spent.provider, spent.model, usage, spent.at)
        if estimate is not None:
            sums.probe_cost += estimate.cost

    def _write(self, path: Path) -> None:
        today = day_of(self._now())
        fold = day_of(self._now() - FOLD_DAYS * DAY_MS) if today != self._folded_on else None
        try:
            try:
                usage_file.add(path, self._unwritten, fold)
            except sqlite3.DatabaseError as error:
                if type(error) is not sqlite3.DatabaseError:  # which is: no database, or a broken one
                    raise
                self._put_aside(path)
                usage_file.add(path, self._unwritten, fold)
        except (sqlite3.Error, OSError, Trouble) as error:
            self._say("file", f"the usage file {path} cannot be written ({error}); counts are kept in memory meanwhile")
            return
        self._unwritten = {}
        self._folded_on = today
        self._say("file", None)

    def _put_aside(self, path: Path) -> None:
        """Begin a new file; what is left of the broken one's log must not be taken for the new one's."""
        aside = put_aside(path, self._now())
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        if self._warn is not None and aside is not None:
            self._warn(f"the usage file {path} was broken and is now {aside.name}; counting begins anew")

    def _look_at_prices(self) -> None:
        """Take up the user's prices when they are named, changed or gone; bad ones leave those in force."""
        path = self.prices_path
        try:
            stamp = (path, path.stat().st_mtime_ns, path.stat().st_size) if path is not None else (None,)
        except OSError as error:
            self._say("prices", f"the prices in {path} cannot be read: {error.strerror}")
            return
        if stamp == self._priced_by:
            return
        self._priced_by = stamp
        try:
            self._prices = pricing.load(path)
        except pricing.BadPrices as error:
            self._say("prices", str(error))
            return
        self._say("prices", None)

    def _say(self, part: str, text: str | None) -> None:
        """Say once that a part does not work, and once that it does again."""
        before = self._said.get(part)
        if text is None:
            self._said.pop(part, None)
        else:
            self._said[part] = text
        if self._warn is not None and (text is None) != (before is None):
            self._warn(text if text is not None else f"works again: {before}")
