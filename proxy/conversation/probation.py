"""Ids on probation: a client's own id is believed until what is said under it shows that it should not be.

A **static** id is sent with unrelated conversations: two that take turns, or three that began differently within a day
and had nothing to do with each other. It becomes a cohort. Two are not enough: a compaction looks like that. A
**rotating** id is another one with every request of one conversation: after three in a row its field is no longer read.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from pool.model import Note

DAY_MS: Final = 86_400_000
STATIC_OPENERS: Final = 3
ROTATIONS: Final = 3
_WATCHES = 8192
_STREAKS = 1024

Field = tuple[str, str, int]  # of a scope, a field, as one client sends it


@dataclass(slots=True, eq=False)
class Watch:
    """What was seen under one owner id. ``label`` is the one the id makes.

    ``key`` tells the latest opener, ``openers`` those that had nothing to do with each other and when they came.
    ``client`` tells its client apart from others, ``repeated``: the id came more than once. ``alias`` is the label of
    the conversation that the id turned out to continue. ``demoted``: it is a cohort now. ``doubted``: its requests must
    be looked at more closely.
    """

    label: str
    scope: str
    key: int = 0
    openers: dict[int, int] = field(default_factory=dict)
    client: int = 0
    repeated: bool = False
    alias: str | None = None
    demoted: bool = False
    committed: bool = False
    doubted: bool = False

    def weigh(self) -> None:
        """Something was found out about the id, or turned out to be nothing."""
        self.doubted = self.alias is not None or self.demoted or len(self.openers) > 1

    def opens(self, key: int, now: int, *, linked: bool) -> bool:
        """Note how a request opens; True when that makes the id a static one.

        ``linked``: what was said before under this id goes on, whatever the opener.
        """
        before, self.key = self.key, key
        if key == before:
            return False
        goes_on = linked or not before
        if goes_on:
            self.openers.pop(before, None)
        elif key in self.openers:
            return True
        else:
            self.openers = {opener: at for opener, at in self.openers.items() if now - at <= DAY_MS}
        self.openers[key] = now
        self.weigh()
        return not goes_on and len(self.openers) >= STATIC_OPENERS


class Probation:
    """The owner ids in use, the latest used kept, and the fields that are no longer read."""

    def __init__(self) -> None:
        self._watches: OrderedDict[str, Watch] = OrderedDict()
        self._aliases: dict[str, list[Watch]] = {}
        self._streaks: dict[Field, int] = {}
        self._unread: dict[Field, int] = {}
        self._proven: dict[Field, None] = {}  # with values that came more than once
        self.notes: list[Note] = []

    def of(self, label: str) -> Watch | None:
        """What is known of the id that makes this label."""
        return self._watches.get(label)

    def again(self, label: str, signal: str, *, aside: bool) -> Watch | None:
        """The id that makes this label was sent. Returned if it came before, and nothing casts doubt on it.

        ``aside``: with what may be a side call. What is more than that is looked at the first time it comes.
        """
        watch = self._watches.get(label)
        if watch is None:
            return None
        self._watches.move_to_end(label)
        if watch.doubted or not (watch.committed or aside):
            return None
        if self._aliases or not watch.repeated:
            self._repeated(watch, signal)
        return watch

    def begin(self, label: str, scope: str, client: int) -> Watch:
        """An id that was not seen before."""
        watch = self._watches[label] = Watch(label, scope, client=client)
        if len(self._watches) > _WATCHES:
            self._cut(self._watches.popitem(last=False)[1])
        return watch

    def unread(self, scope: str, signal: str, client: int, now: int) -> bool:
        """Is this client's field no longer read, because it has another value with every request?"""
        until = self._unread.get((scope, signal, client))
        return until is not None and now < until

    def _repeated(self, watch: Watch, signal: str) -> None:
        """A value came again: its field is no new one for every request, and what it names is alive.

        Other ids that turned out to continue the same conversation name conversations of their own from now on.
        """
        if not watch.repeated:
            watch.repeated = True
            field = watch.scope, signal, watch.client
            self._streaks.pop(field, None)
            if len(self._proven) >= _STREAKS:
                self._proven.clear()
            self._proven[field] = None
        for other in self._aliases.pop(watch.label, ()):
            other.alias = None
            other.weigh()

    def alias(self, watch: Watch, label: str, signal: str, now: int) -> None:
        """A new value continues a conversation that was known before."""
        watch.alias = label
        watch.weigh()
        self._aliases.setdefault(label, []).append(watch)
        field = watch.scope, signal, watch.client
        if field in self._proven:
            return
        streak = self._streaks.get(field, 0) + 1
        if len(self._streaks) >= _STREAKS:
            self._streaks.clear()
        self._streaks[field] = streak
        if streak >= ROTATIONS:
            del self._streaks[field]
            self._unread = {key: until for key, until in self._unread.items() if until > now}
            self._unread[field] = now + DAY_MS
            self.notes.append(Note("rotating_id", {"signal": signal, "conversation": label}))

    def demote(self, watch: Watch, signal: str) -> None:
        """The id is shared by several conversations."""
        watch.demoted = True
        watch.weigh()
        self._cut(watch)
        self.notes.append(Note("static_id", {"signal": signal, "conversation": watch.label}))

    def _cut(self, watch: Watch) -> None:
        if watch.alias is None:
            return
        others = self._aliases.get(watch.alias, [])
        if watch in others:
            others.remove(watch)
            if not others:
                del self._aliases[watch.alias]
        watch.alias = None
