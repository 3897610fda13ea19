"""Is it the route, or the gateway itself? Evidence per provider and model over a minute.

Three different ids refused or slow within 60 s, or a refused attempt whose replacement was refused too: then
leaving the route helps nobody. Nothing is retired, no further spare is spent, and probes pause. While others are
served well, three bad ids are no evidence: it is those ids' own. And until somebody is served well again, the next
refusals spend no new spares.
"""

from typing import Final, NamedTuple

from pool.model import ModelKey

WINDOW_MS: Final = 60_000
UNPROVEN_MS: Final = 3_600_000  # a fault is forgotten after this, whatever came after it
DIFFERENT_IDS: Final = 3
KEPT: Final = 64  # ids per model; more tell nothing new


class _Bad(NamedTuple):
    """When an id was last found bad, and when that request was sent."""

    at: int
    sent_at: int


class Faults:
    """What was bad lately."""

    __slots__ = ("_bad", "_began", "_good", "_until")

    def __init__(self) -> None:
        self._bad: dict[ModelKey, dict[str, _Bad]] = {}
        self._good: dict[ModelKey, int] = {}
        self._began: dict[ModelKey, int] = {}  # of the last fault
        self._until: dict[ModelKey, int] = {}

    def served(self, model: ModelKey, now: int) -> None:
        """An id was answered well."""
        self._good[model] = now

    def saw(self, model: ModelKey, routed_id: str, now: int, sent_at: int | None = None) -> bool:
        """An id was refused or slow; is the gateway at fault by now? ``sent_at`` None: it was refused at once."""
        bad = self._bad.setdefault(model, {})
        bad.pop(routed_id, None)
        bad[routed_id] = _Bad(now, now if sent_at is None else sent_at)
        while len(bad) > KEPT:
            del bad[next(iter(bad))]
        recent = sorted((one for one in bad.values() if 0 <= now - one.at < WINDOW_MS), reverse=True)
        latest = recent[:DIFFERENT_IDS]
        if len(latest) == DIFFERENT_IDS and self._good.get(model, 0) <= min(one.sent_at for one in latest):
            self._begin(model, latest[-1].at + WINDOW_MS, now)
        return self.until(model, now) is not None

    def replay_refused(self, model: ModelKey, now: int) -> None:
        """The replacement of a refused attempt was refused too."""
        self._begin(model, now + WINDOW_MS, now)

    def unproven(self, model: ModelKey, now: int) -> bool:
        """Was there a fault within the hour, and nobody served well since?"""
        began = self._began.get(model)
        return began is not None and 0 <= now - began < UNPROVEN_MS and self._good.get(model, 0) < began

    def _begin(self, model: ModelKey, until: int, now: int) -> None:
        if not self.unproven(model, now):
            self._began[model] = now
        self._until[model] = max(self._until.get(model, 0), until)

    def until(self, model: ModelKey, now: int) -> int | None:
        """Until when the gateway counts as at fault; None: it does not."""
        until = self._until.get(model)
        return until if until is not None and now < until <= now + WINDOW_MS else None

    def models(self, now: int) -> dict[ModelKey, int]:
        """Those at fault now, and until when."""
        return {model: until for model in self._until if (until := self.until(model, now)) is not None}
