"""What is remembered of a conversation while its route is being decided: its natural id's worth, and what was found.

In memory only, and bounded: after a restart a conversation is bound, or begins anew.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pool.model import ProbeKind, Spare

KEPT: Final = 4096
FOUND_MS: Final = (
    1_500_000  # an id found for a conversation waits 25 min for its next turn: so long routes were seen to last
)
DEAD: Final = frozenset({ProbeKind.OVERLOADED, ProbeKind.TIMEOUT})


class Worth(StrEnum):
    """What the natural id of a conversation was found to be."""

    UNMEASURED = "unmeasured"
    OK = "ok"
    REJECTED = "rejected"  # too slow
    DEAD = "dead"  # refused, or no answer in time

    @property
    def bad(self) -> bool:
        return self in {Worth.REJECTED, Worth.DEAD}


@dataclass(slots=True)
class Lane:
    """``natural``, with its measurements, is what the conversation would have had without us."""

    natural: Worth = Worth.UNMEASURED
    natural_tps: float | None = None
    natural_ms: float | None = None
    estimated: bool = False
    leased: str | None = None  # the id that a round found and the conversation took
    found: Spare | None = None  # leased to this conversation by a round; nobody else gets it
    corrected: bool = False
    decided: bool = False
    not_before: int = 0  # no round until then: the last one found nothing

    def measured(self, worth: Worth, tps: float | None, ms: float | None, *, estimated: bool = False) -> None:
        """Take down what the natural id gave."""
        self.natural, self.natural_tps, self.natural_ms, self.estimated = worth, tps, ms, estimated

    def lease(self, now: int) -> Spare | None:
        """What was found for this conversation, if it is not too old; it is handed out once."""
        found, self.found = self.found, None
        if found is None or not 0 <= now - found.verified_at <= FOUND_MS:
            return None
        self.leased = found.id
        return found

    def source_of(self, spare: Spare) -> str:
        """Was it found for this conversation, or was it ready?"""
        return "probe" if self.leased == spare.id else "lease"


class Lanes:
    """The lanes, by binding key; the newest are kept."""

    __slots__ = ("_lanes", "get")

    def __init__(self) -> None:
        self._lanes: dict[str, Lane] = {}
        self.get: Callable[[str], Lane | None] = self._lanes.get  # that of a conversation, if there is one

    def of(self, key: str) -> Lane:
        """The lane of a conversation; a new one if there is none."""
        lane = self._lanes.get(key)
        if lane is not None:
            return lane
        lane = self._lanes[key] = Lane()
        if len(self._lanes) > KEPT:
            del self._lanes[next(iter(self._lanes))]
        return lane

    def clock_stepped(self, step_ms: int) -> None:
        """The clock was set; what a round that found nothing holds up, it holds up for as long as before."""
        for lane in self._lanes.values():
            lane.not_before += step_ms
