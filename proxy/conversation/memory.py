"""The lines of talk that are remembered: bounded, the latest used kept, what is under way never forgotten."""

import secrets
from collections import OrderedDict
from itertools import count

from config.settings import Settings
from pool.eviction import batch
from proxy.conversation.index import Index
from proxy.conversation.lineage import Lineage

THIN_PER_LINE = 4  # so many lines are kept in thin form for every full one
_STEPS = 64  # lines in flight that are passed over, of one request's tidying


class Memory:
    """Every scope's lines: ``conversation.max_count`` whole ones, and four times as many that only just are found.

    ``changed`` are those that the archive does not have yet, ``gone`` the rows that it need not have any more.
    """

    def __init__(self, settings: Settings) -> None:
        self._scopes: dict[str, Index] = {}
        self._full: OrderedDict[Lineage, None] = OrderedDict()  # the longest unused first
        self._thin: OrderedDict[Lineage, None] = OrderedDict()
        self._rows = count(secrets.randbits(61))  # several processes may write to one archive
        self._look_at = 0  # until then nothing gets too old
        self.changed: dict[Lineage, None] = {}
        self.gone: list[int] = []
        self.reconfigure(settings)

    def __len__(self) -> int:
        return len(self._full) + len(self._thin)

    @property
    def most(self) -> int:
        """The lines that are kept, full and thin ones together."""
        return self.max_count * (1 + THIN_PER_LINE)

    def reconfigure(self, settings: Settings) -> None:
        """Take the limits of new settings."""
        self.max_count = settings.conversation.max_count
        self.ttl_ms = settings.conversation.idle_ttl_ms
        self._batch = batch(self.max_count)
        self._look_at = 0

    def lines_of(self, scope: str, label: str) -> list[Lineage]:
        """The lines of one conversation. For those who ask, not for requests."""
        return [line for line in (*self._full, *self._thin) if line.label == label and line.scope == scope]

    def current(self, scope: str, label: str) -> Lineage | None:
        """The latest line of a conversation."""
        index = self._scopes.get(scope)
        return index.current.get(label) if index is not None else None

    def lines_labelled(self, label: str) -> list[Lineage]:
        """The lines of a conversation, in whatever scope. For those who ask, not for requests."""
        return [line for line in (*self._full, *self._thin) if line.label == label]

    def touch(self, scope: str, label: str, now: int) -> None:
        """A conversation is in use, although nobody looked at what it says."""
        index = self._scopes.get(scope)
        if index is not None and (line := index.current.get(label)) is not None:
            self._touch(line, now)

    def adopt(self, line: Lineage) -> None:
        """Take a line from the archive, unless traffic has begun one like it."""
        index = self._scopes.get(line.scope)
        if index is None:
            index = self._scopes[line.scope] = Index()
        full = len(self) >= self.most
        if full or line.label in index.current or index.heads.has(line.full):
            return
        line.stored = True
        self._look_at = 0
        index.enter(line)
        if len(self._full) < self.max_count:
            self._full[line] = None
            self._full.move_to_end(line, last=False)
        else:
            index.thin(line)
            self._thin[line] = None
            self._thin.move_to_end(line, last=False)

    def _touch(self, line: Lineage, now: int) -> None:
        line.seen_at = max(line.seen_at, now)
        (self._thin if line.thin else self._full).move_to_end(line)
        self.changed[line] = None

    def _expire(self, now: int) -> None:
        """Forget what is too old. Costs nothing as long as nothing can be."""
        if now < self._look_at:
            return
        for lines in (self._full, self._thin):
            steps = _STEPS
            while lines and steps:
                line = next(iter(lines))
                if now - line.seen_at < self.ttl_ms:
                    break
                if line.in_flight:
                    lines.move_to_end(line)
                    steps -= 1
                else:
                    del lines[line]
                    self._forget(line)
        oldest = [next(iter(lines)).seen_at for lines in (self._full, self._thin) if lines]
        self._look_at = min(oldest, default=now) + self.ttl_ms

    def _shrink(self) -> None:
        """Keep within the bounds: first the longest unused lines get thin, then they are forgotten, a few at a time."""
        full, thin = self._full, self._thin
        if len(full) > self.max_count:
            for _ in range(min(_STEPS, len(full))):
                if len(full) <= self.max_count - self._batch:
                    break
                line, _ = full.popitem(last=False)
                if line.in_flight:
                    full[line] = None
                    continue
                self._scopes[line.scope].thin(line)
                thin[line] = None
        if len(full) + len(thin) > self.most:
            while thin and len(full) + len(thin) > self.most - self._batch:
                self._forget(thin.popitem(last=False)[0])

    def _forget(self, line: Lineage) -> None:
        index = self._scopes[line.scope]
        index.leave(line)
        self.changed.pop(line, None)
        if line.stored:
            self.gone.append(line.row)
        if not index.lines:
            del self._scopes[line.scope]
