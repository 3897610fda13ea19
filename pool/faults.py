"""Is it the route, or the gateway itself? Evidence per provider and model over a minute.

Three different ids refused or slow within 60 s, or a refused attempt whose replacement was refused too: then
leaving the route helps nobody. Nothing is retired, no further spare is spent, and probes pause.
"""

from typing import Final

from pool.model import ModelKey

WINDOW_MS: Final = 60_000
DIFFERENT_IDS: Final = 3
KEPT: Final = 64  # ids per model; more tell nothing new


class Faults:
    """What was bad lately."""

    __slots__ = ("_bad", "_until")

    def __init__(self) -> None:
        self._bad: dict[ModelKey, dict[str, int]] = {}
        self._until: dict[ModelKey, int] = {}

    def saw(self, model: ModelKey, routed_id: str, now: int) -> bool:
        """An id was refused or slow; is the gateway at fault by now?"""
        bad = self._bad.setdefault(model, {})
        bad.pop(routed_id, None)
        bad[routed_id] = now
        while len(bad) > KEPT:
            del bad[next(iter(bad))]
        recent = sorted((at for at in bad.values() if 0 <= now - at < WINDOW_MS), reverse=True)
        if len(recent) >= DIFFERENT_IDS:
            self._until[model] = max(self._until.get(model, 0), recent[DIFFERENT_IDS - 1] + WINDOW_MS)
        return self.until(model, now) is not None

    def replay_refused(self, model: ModelKey, now: int) -> None:
        """The replacement of a refused attempt was refused too."""
        self._until[model] = now + WINDOW_MS

    def until(self, model: ModelKey, now: int) -> int | None:
        """Until when the gateway counts as at fault; None: it does not."""
        until = self._until.get(model)
        return until if until is not None and now < until <= now + WINDOW_MS else None

    def models(self, now: int) -> dict[ModelKey, int]:
        """Those at fault now, and until when."""
        return {model: until for model in self._until if (until := self.until(model, now)) is not None}
