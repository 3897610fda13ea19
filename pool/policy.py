"""The one place that says what the pool is for, given the settings and how the gateway routes.

Every mode and every later finding about the gateway is an input here and nowhere else.
"""

from enum import StrEnum
from math import sqrt
from typing import NamedTuple

from config.settings import Settings
from pool.model import ModelKey


class Regime(StrEnum):
    """Does one id keep its endpoint? What the estimator believes; unknown until it has evidence."""

    UNKNOWN = "unknown"
    STICKY = "sticky"
    BALANCED = "balanced"


class Policy(NamedTuple):
    """What holds for one provider and model.

    ``routed``: the pool has a say at all. ``applied``: its decision is what is sent (False: only observed).
    ``spares``: conversations start on spares. ``latency_retires``: a slow id is left. ``stock``: how many spares
    to keep by refills. ``canary``: probe a little although no spares are kept. ``learning``: nothing is known yet,
    so stock no more than conversations begin. ``paced``: ids are chosen by speed, in rounds (the throughput profile).
    ``ttl_ms``: how long a spare is fresh. ``slow_ms``: between what a probe may take and what a turn may, so that
    it tells slow routes from fast ones.
    """

    routed: bool
    applied: bool
    spares: bool
    latency_retires: bool
    stock: int
    canary: bool = False
    learning: bool = False
    paced: bool = False
    ttl_ms: int = 0
    slow_ms: float = 0.0


OFF = Policy(routed=False, applied=False, spares=False, latency_retires=False, stock=0)


def policy_for(settings: Settings, model: ModelKey, regime: Regime = Regime.UNKNOWN) -> Policy:
    """What to start on, whether latency retires, and how many spares to stock."""
    routing = settings.routing
    if routing.mode == "off" or model.provider not in routing.providers:
        return OFF
    if routing.models and model.model not in routing.models:
        return OFF
    pool, paced = settings.pool_for(model.model), settings.profile_for(model.model) == "throughput"
    probe, quarantine = settings.probe_for(model.model), settings.quarantine_for(model.model)
    balanced = pool.adaptive and regime is Regime.BALANCED  # no id can promise anything there
    return Policy(
        routed=True,
        applied=routing.mode == "route",
        spares=not balanced,
        latency_retires=not balanced,
        stock=0 if balanced or paced else pool.size,
        canary=balanced,
        learning=pool.adaptive and regime is Regime.UNKNOWN,
        paced=paced,
        ttl_ms=pool.ttl_ms,
        slow_ms=sqrt(probe.max_upstream_ms * quarantine.degrade_ms),
    )
