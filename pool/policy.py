"""The one place that says what the pool is for, given the settings and how the gateway routes.

Every mode and every later finding about the gateway is an input here and nowhere else.
"""

from enum import StrEnum
from math import sqrt
from typing import Final, NamedTuple

from config.settings import Settings
from pool.model import ModelKey

POLICIES_KEPT: Final = 1024  # a client chooses the model's name


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
    it tells slow routes from fast ones. ``fast_ms``: a turn that took less is healthy. ``first_budget_ms``, and
    ``budget_ms`` for later turns: how long a request may look for a fast id before it is sent; 0: not at all.
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
    fast_ms: float = 0.0
    first_budget_ms: int = 0
    budget_ms: int = 0


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
    first, later = settings.pool.startup_budget_ms, settings.pool.request_budget_ms
    if paced:
        first = max(first, later)  # a round precedes the first turn
    searches = not balanced and probe.enabled
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
        fast_ms=min(quarantine.degrade_ms, quarantine.quarantine_ms),
        first_budget_ms=first if searches else 0,
        budget_ms=later if searches else 0,
    )


class Policies(dict[ModelKey, Policy]):
    """The policy of each provider and model, decided when it is first asked for: ``policies[model]``.

    ``believe`` and ``reconfigure`` change what it was decided by.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.regimes: dict[ModelKey, Regime] = {}  # what the estimator believes, if anything
        self._settings = settings

    def __missing__(self, model: ModelKey) -> Policy:
        if len(self) >= POLICIES_KEPT:
            self.clear()
        policy = self[model] = policy_for(self._settings, model, self.regimes.get(model, Regime.UNKNOWN))
        return policy

    def believe(self, model: ModelKey, regime: Regime) -> None:
        """How the gateway routes this model, from now on."""
        if regime is Regime.UNKNOWN:
            self.regimes.pop(model, None)
        else:
            self.regimes[model] = regime
        self.pop(model, None)

    def reconfigure(self, settings: Settings) -> None:
        """Obey other settings from now on."""
        self._settings = settings
        self.clear()
