"""The one place that says what the pool is for, given the settings and how the gateway routes.

Every mode and every later finding about the gateway is an input here and nowhere else.
"""

from dataclasses import dataclass
from enum import StrEnum

from config.settings import Settings
from pool.model import ModelKey


class Regime(StrEnum):
    """Does one id keep its endpoint? What the estimator believes; unknown until it has evidence."""

    UNKNOWN = "unknown"
    STICKY = "sticky"
    BALANCED = "balanced"


@dataclass(frozen=True, slots=True)
class Policy:
    """What holds for one provider and model.

    ``routed``: the pool has a say at all. ``applied``: its decision is what is sent (False: only observed).
    ``spares``: conversations start on spares. ``latency_retires``: a slow id is left. ``stock``: how many spares
    to keep. ``canary``: probe a little although no spares are kept.
    """

    routed: bool
    applied: bool
    spares: bool
    latency_retires: bool
    stock: int
    canary: bool = False


OFF = Policy(routed=False, applied=False, spares=False, latency_retires=False, stock=0)


def policy_for(settings: Settings, model: ModelKey, regime: Regime = Regime.UNKNOWN) -> Policy:
    """What to start on, whether latency retires, and how many spares to stock."""
    routing = settings.routing
    if routing.mode == "off" or model.provider not in routing.providers:
        return OFF
    if routing.models and model.model not in routing.models:
        return OFF
    balanced = regime is Regime.BALANCED  # no id can promise anything there
    return Policy(
        routed=True,
        applied=routing.mode == "route",
        spares=not balanced,
        latency_retires=not balanced,
        stock=0 if balanced else settings.pool.size,
        canary=balanced,
    )
