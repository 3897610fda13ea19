"""Does an id keep its route? Asked per provider and model, of live traffic and probes, while they pass.

Two hypotheses are weighed. *Sticky*: an id comes back to where it was, but for an occasional hop. *Balanced*: each
request is drawn anew, so that where the id was before says nothing. What is compared is the endpoint that the gateway
names; where it names none, or ever the same one, whether the answer was fast or slow. Each time an id is seen again,
the logarithm of the likelihood ratio of what it did is added to a score that is kept within bounds (a two-sided
CUSUM, Page 1954): however long a gateway was sticky, a change costs the same few requests to be noticed.

What different ids do is the yardstick: the places of the ids that were seen for the first time lately, which nobody
has selected, as the ids in use are.
"""

from math import exp
from typing import Final, NamedTuple

from pool.model import ModelKey
from pool.policy import Regime
from pool.track import EXPIRY_MS, MOST, Track

MODELS: Final = 64  # a client chooses the model's name


class Agreement(NamedTuple):
    """How often an id was where it had been (``same``), how often another would have been there (``other``)."""

    compared: int
    same: float | None
    other: float | None


class Belief(NamedTuple):
    """What is known of a model and may be kept: ``score`` > 0 speaks for sticky. ``at``: the last evidence."""

    regime: Regime
    score: float
    compared: int
    at: int

    @property
    def confidence(self) -> float | None:
        """The probability that it is so; None where nothing was compared: different ids were all served alike."""
        return _likelihood(self.regime, self.score) if self.compared else None

    def holds(self, now: int) -> bool:
        """Is it young enough to be believed?"""
        return 0 <= now - self.at <= EXPIRY_MS


class Finding(NamedTuple):
    """What is believed now, and why. ``confidence`` is the probability that it is so, even odds assumed before."""

    regime: Regime
    confidence: float
    agreement: Agreement
    endpoints: int
    newcomers: int
    alike: bool
    by: str  # endpoint, speed, or nothing
    since: int | None
    at: int | None


class Change(NamedTuple):
    """The regime of a model is another from now on."""

    model: ModelKey
    before: Regime
    finding: Finding


class Estimator:
    """What is known of each provider and model; ``observe`` takes microseconds and keeps a bounded amount."""

    __slots__ = ("_tracks",)

    def __init__(self) -> None:
        self._tracks: dict[ModelKey, Track] = {}

    def observe(
        self, model: ModelKey, routed_id: str, now: int, endpoint: str | None = None, *, slow: bool | None = None
    ) -> Change | None:
        """An answer on an id: who served it, and whether it was slow. Returns what changed by it."""
        if endpoint is None and slow is None:
            return None
        track = self._tracks.get(model)
        if track is None:
            track = self._track(model)
        track.see(routed_id, endpoint, slow, now)
        regime = track.settle(now)
        return None if regime is track.regime else self._change(model, track, regime, now)

    def regime(self, model: ModelKey, now: int) -> Regime:
        """What is believed of a model."""
        track = self._tracks.get(model)
        return Regime.UNKNOWN if track is None else track.settle(now)

    def expire(self, now: int) -> list[Change]:
        """What is too old to be believed; ask now and then."""
        settled = [(model, track, track.settle(now)) for model, track in self._tracks.items()]
        return [self._change(*one, now) for one in settled if one[2] is not one[1].regime]

    def finding(self, model: ModelKey, now: int) -> Finding:
        """What is believed of a model, with its evidence."""
        track = self._tracks.get(model) or Track()
        regime = track.settle(now)
        known = track.weight > 0.0
        agreement = Agreement(
            track.compared,
            track.same / track.weight if known else None,
            track.other / track.weight if known else None,
        )
        return Finding(
            regime=regime,
            confidence=0.5 if regime is Regime.UNKNOWN else _confidence(track),
            agreement=agreement,
            endpoints=len(track.endpoints.of),
            newcomers=len(track.newcomers),
            alike=track.alike,
            by=track.by,
            since=track.since,
            at=track.at,
        )

    def models(self) -> list[ModelKey]:
        return list(self._tracks)

    def learned_at(self, model: ModelKey) -> int | None:
        """When there was evidence last, unix ms."""
        track = self._tracks.get(model)
        return None if track is None else track.at

    def belief(self, model: ModelKey, now: int) -> Belief | None:
        """What is worth keeping of a model; None while nothing is known."""
        track = self._tracks.get(model)
        if track is None or track.at is None or track.settle(now) is Regime.UNKNOWN:
            return None
        return Belief(track.settle(now), round(track.score, 2), track.compared, track.at)

    def adopt(self, model: ModelKey, belief: Belief, now: int) -> Change | None:
        """Take over what was kept, or what another process knows, where nothing is known here."""
        track = self._tracks.get(model)
        if track is None:
            if len(self._tracks) >= MODELS:
                return None
            track = self._track(model)
        if track.regime is not Regime.UNKNOWN or not belief.holds(now):
            return None
        track.score = max(-MOST, min(MOST, belief.score))
        track.at, track.compared = belief.at, belief.compared
        track.regime = belief.regime
        track.since = now
        return Change(model, Regime.UNKNOWN, self.finding(model, now))

    def _track(self, model: ModelKey) -> Track:
        while len(self._tracks) >= MODELS:
            del self._tracks[next(iter(self._tracks))]
        track = self._tracks[model] = Track()
        return track

    def _change(self, model: ModelKey, track: Track, regime: Regime, now: int) -> Change:
        before, track.regime, track.since = track.regime, regime, now
        return Change(model, before, self.finding(model, now))


def _confidence(track: Track) -> float:
    """Of the belief: from the score, or from how many different ids were all at one place."""
    if track.alike:
        return 1.0 - 0.5 ** len(track.newcomers)
    return _likelihood(track.regime, track.score)


def _likelihood(regime: Regime, score: float) -> float:
    return 1.0 / (1.0 + exp(-score if regime is Regime.STICKY else score))
