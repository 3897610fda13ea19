"""What memory has decided and the store does not know yet, by binding.

Only keys and retired ids are kept here; what a binding looks like is read when it is written, so that a burst
of changes to one conversation costs one write.
"""

from dataclasses import dataclass, field

COALESCE_MS = 250  # decisions of this long share one write
PENDING_KEPT = 8192


@dataclass(slots=True)
class Pending:
    """What is to be told about one binding, in this order."""

    retire: dict[str, int] = field(default_factory=dict)  # id -> when
    forget: set[str] = field(default_factory=set)
    bind: bool = False
    touch: bool = False


class Outbox:
    """Pending conditional operations. ``pressing_at`` is since when one waits that must not wait for long."""

    __slots__ = ("pending", "pressing_at")

    def __init__(self) -> None:
        self.pending: dict[str, Pending] = {}
        self.pressing_at: int | None = None

    def bind(self, key: str, now: int) -> None:
        self._of(key).bind = True
        self._press(now)

    def touch(self, key: str, now: int) -> None:
        self._of(key).touch = True
        self._press(now)

    def retire(self, key: str, routed_id: str, now: int) -> None:
        pending = self._of(key)
        pending.retire[routed_id] = now
        pending.bind = pending.touch = False
        self._press(now)

    def forget(self, key: str, routed_id: str, now: int) -> None:
        pending = self._of(key)
        pending.forget.add(routed_id)
        pending.bind = pending.touch = False
        self._press(now)

    def due(self, now: int) -> bool:
        """Has something waited long enough? A clock that stepped back does not hold it up."""
        return self.pressing_at is not None and not 0 <= now - self.pressing_at < COALESCE_MS

    def collect(self) -> dict[str, Pending]:
        """Everything that waits; it is the caller's now, to be written or put back."""
        taken, self.pending, self.pressing_at = self.pending, {}, None
        return taken

    def put_back(self, taken: dict[str, Pending], now: int) -> None:
        """What could not be written waits again, behind nothing that came since."""
        for key, old in taken.items():
            new = self._of(key)
            dropped_since = bool(new.retire or new.forget)
            new.retire = {**old.retire, **new.retire}
            new.forget |= old.forget
            if not dropped_since:
                new.bind |= old.bind
                new.touch |= old.touch
        while len(self.pending) > PENDING_KEPT:  # a state that can never be written
            del self.pending[next(iter(self.pending))]
        if taken:
            self._press(now)

    def _of(self, key: str) -> Pending:
        return self.pending.setdefault(key, Pending())

    def _press(self, now: int) -> None:
        if self.pressing_at is None:
            self.pressing_at = now
