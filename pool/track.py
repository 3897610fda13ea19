"""What is known of how one model's ids are routed: the places they were at, and the score that follows.

``pool/estimator.py`` says what the score means.
"""

from collections import deque
from dataclasses import dataclass, field
from math import log
from typing import Final, NamedTuple

from pool.policy import Regime

HOP: Final = 0.25  # how often a sticky id is allowed to be elsewhere
SETTLED: Final = 3.5  # the score from which on a regime is believed: odds of 33 to 1
MOST: Final = 5.5  # more certain it never gets, so that a change is noticed soon
LEAST: Final = 5  # comparisons,
LEAST_IDS: Final = 3  # and different ids, before anything is believed
STEP: Final = 1.5  # what one request can say at most
AWAY: Final = log(HOP)  # what it says when it was not where it belongs
HORIZON_MS: Final = 7_200_000  # an id that was not seen for longer may have been forgotten by the gateway
EXPIRY_MS: Final = 21_600_000  # what was known counts for nothing after 6 h without evidence
NEWCOMERS: Final = 24  # ids seen for the first time: what different ids do
ALIKE: Final = 8  # that many newcomers all at one place: there is nothing to choose
IDS: Final = 128  # remembered per model
FADE: Final = 0.97  # of the shown agreement, per comparison


class Sighting(NamedTuple):
    """Where an id was: by name, and by speed. None: not told, or not measured."""

    endpoint: str | None
    slow: bool | None
    at: int


@dataclass(slots=True)
class Home:
    """Where an id belongs. One request elsewhere is a hop; two in a row at one place are a move."""

    endpoint: str | None
    slow: bool | None
    at: int
    away: str | None = None
    away_slow: bool | None = None

    def visit(self, endpoint: str | None, slow: bool | None, at: int) -> None:
        """Take down where it was this time; what is not told holds on."""
        self.at = at
        if endpoint == self.endpoint:
            self.away = None
        elif endpoint is not None:
            if endpoint == self.away or self.endpoint is None:
                self.endpoint, self.away = endpoint, None
            else:
                self.away = endpoint
        if slow is self.slow:
            self.away_slow = None
        elif slow is not None:
            if slow is self.away_slow or self.slow is None:
                self.slow, self.away_slow = slow, None
            else:
                self.away_slow = slow


@dataclass(slots=True)
class Counts:
    """How many of the newcomers were at each place."""

    of: dict[object, int] = field(default_factory=dict)
    total: int = 0

    def add(self, place: object, by: int) -> None:
        if place is None:
            return
        self.total += by
        left = self.of.get(place, 0) + by
        if left:
            self.of[place] = left
        else:
            del self.of[place]

    def share(self, place: object) -> float:
        """The share of different ids that are there, never quite 0 or 1."""
        return (self.of.get(place, 0) + 0.5) / (self.total + 1.0)


class Track:
    """What is known of one model."""

    __slots__ = (
        "alike",
        "at",
        "by",
        "compared",
        "endpoints",
        "ids",
        "newcomers",
        "other",
        "regime",
        "same",
        "score",
        "since",
        "speeds",
        "weight",
    )

    def __init__(self) -> None:
        self.ids: dict[str, Home] = {}
        self.newcomers: deque[Sighting] = deque()
        self.endpoints = Counts()
        self.speeds = Counts()
        self.alike = False  # all newcomers are at one place, by name and by speed: there is nothing to choose
        self.score = 0.0
        self.regime = Regime.UNKNOWN
        self.since: int | None = None
        self.at: int | None = None
        self.by = ""
        self.compared = 0
        self.weight = self.same = self.other = 0.0

    def see(self, routed_id: str, endpoint: str | None, slow: bool | None, at: int) -> None:
        """An id was somewhere."""
        home = self.ids.pop(routed_id, None)
        if home is None:
            self.ids[routed_id] = Home(endpoint, slow, at)
            self._welcome(Sighting(endpoint, slow, at))
            return
        if 0 <= at - home.at <= HORIZON_MS:
            self._compare(home, endpoint, slow, at)
        home.visit(endpoint, slow, at)
        self.ids[routed_id] = home  # the ones seen last are kept

    def _welcome(self, seen: Sighting) -> None:
        newcomers = self.newcomers
        newcomers.append(seen)
        left = newcomers.popleft() if len(newcomers) > NEWCOMERS else None
        if left is None or left.endpoint != seen.endpoint or left.slow is not seen.slow:
            self._count(seen, left)
        if self.alike:
            self.at = seen.at
        if len(self.ids) > IDS:
            del self.ids[next(iter(self.ids))]

    def _count(self, came: Sighting, left: Sighting | None) -> None:
        """Other places are taken by the newcomers than before, or more."""
        endpoints, speeds = self.endpoints, self.speeds
        endpoints.add(came.endpoint, 1)
        speeds.add(came.slow, 1)
        if left is not None:
            endpoints.add(left.endpoint, -1)
            speeds.add(left.slow, -1)
        one_place = len(endpoints.of) <= 1 and len(speeds.of) <= 1 and bool(endpoints.of or speeds.of)
        self.alike = one_place and len(self.newcomers) >= ALIKE

    def _compare(self, home: Home, endpoint: str | None, slow: bool | None, at: int) -> None:
        """Weigh what an id did when it came back."""
        if endpoint is not None and home.endpoint is not None:
            agrees, known = home.endpoint == endpoint, self.endpoints.of
            if not agrees or len(known) > 1 or endpoint not in known:
                self._weigh(agrees, self.endpoints.share(endpoint), "endpoint", at)
                return
        if slow is not None and home.slow is not None:
            self._weigh(home.slow is slow, self.speeds.share(slow), "speed", at)

    def _weigh(self, agrees: bool, share: float, by: str, at: int) -> None:
        step = min(STEP, log((1.0 - HOP + HOP * share) / share)) if agrees else AWAY
        score = self.score + step
        self.score = MOST if score > MOST else -MOST if score < -MOST else score  # noqa: FURB136  (faster)
        self.by, self.at = by, at
        self.compared += 1
        self.weight = self.weight * FADE + 1.0
        self.same = self.same * FADE + agrees
        self.other = self.other * FADE + share

    def settle(self, now: int) -> Regime:
        """What to believe now. Between the bounds the last belief holds."""
        if self.at is None or not -HORIZON_MS <= now - self.at <= EXPIRY_MS:
            if self.at is not None:
                self.score, self.compared = 0.0, 0
            return Regime.UNKNOWN
        if self.alike:
            return Regime.BALANCED
        if self.compared < LEAST or len(self.newcomers) < LEAST_IDS:
            return self.regime
        if self.score >= SETTLED:
            return Regime.STICKY
        if self.score <= -SETTLED:
            return Regime.BALANCED
        return self.regime
