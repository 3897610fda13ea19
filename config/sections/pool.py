"""``[pool]``: the spare ids that are kept ready."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field

from config.sections.base import Section
from config.units import Count, Millis, Switch


class PoolSection(Section):
    """The verified spare ids that are kept ready."""

    size: Count = Field(
        default=3,
        ge=1,
        le=16,
        description="Verified spare ids kept per provider and model (4 where the profile is throughput).",
    )
    ttl_ms: Millis = Field(
        default=1_800_000,
        ge=1,
        le=86_400_000,
        description="Age after which a spare is verified again before use (300000 where the profile is throughput).",
    )
    refresh_interval_ms: Millis = Field(
        default=300_000,
        ge=0,
        le=86_400_000,
        description="Time between two refreshes in the background, where 0 turns them off.",
    )
    refill_delay_ms: Millis = Field(
        default=15_000,
        ge=0,
        le=3_600_000,
        description="Delay before a taken spare is replaced, where 0 leaves that to the next refresh.",
    )
    startup_budget_ms: Millis = Field(
        default=0,
        ge=0,
        le=120_000,
        description="How long a conversation's first request may wait for a fast id, where 0 never waits.",
    )
    request_budget_ms: Millis = Field(
        default=0,
        ge=0,
        le=120_000,
        description="How long a later request may wait for a fast id, where 0 never waits.",
    )
    probe_cooldown_ms: Millis = Field(
        default=60_000,
        ge=0,
        le=3_600_000,
        description="Pause after a search on the request path that found nothing, where 0 searches each time.",
    )
    max_probes_per_hour: Count = Field(
        default=40,
        ge=0,
        le=1000,
        description="Most probes per provider in any hour by all that share the state file, where 0 allows none.",
    )
    negative_ttl_ms: Millis = Field(
        default=60_000,
        ge=0,
        le=3_600_000,
        description="How long an id that failed in a round of the throughput profile is not tried again.",
    )
    adaptive: Switch = Field(
        default=True,
        description="Find out from live traffic whether routing is sticky, and stop probing where it is balanced.",
    )


THROUGHPUT: Final[Mapping[str, Any]] = {"size": 4, "ttl_ms": 300_000}
"""Defaults that differ where ``probe.profile`` is ``throughput``."""
