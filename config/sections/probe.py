"""``[probe]``: the small requests that find out whether an id is fast."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field

from config.sections.base import Section
from config.units import Count, Millis, Rate, Secret, Switch, Tokens


class ProbeSection(Section):
    """The small requests that find out whether an id is fast."""

    enabled: Switch = Field(
        default=True,
        description="Send probes at all.",
    )
    profile: Literal["latency", "throughput"] = Field(
        default="latency",
        description="What a route is chosen by: how soon it answers, or how many tokens a second it writes.",
    )
    max_upstream_ms: Millis = Field(
        default=2500,
        ge=1,
        le=300_000,
        description="Longest upstream time of a probe that still counts as fast.",
    )
    timeout_ms: Millis = Field(
        default=10_000,
        ge=1,
        le=300_000,
        description="How long one probe may take before it is aborted (25000 where the profile is throughput).",
    )
    min_interval_ms: Millis = Field(
        default=750,
        ge=0,
        le=600_000,
        description="Least time between two probes.",
    )
    require_gateway_id: Switch = Field(
        default=False,
        description="Accept only answers whose id starts with gw-, which rejects healthy routes since November 2026.",
    )
    max_tokens: Tokens = Field(
        default=1,
        ge=1,
        le=4096,
        description="Tokens that a probe asks for (96 where the profile is throughput).",
    )
    candidates: Count = Field(
        default=4,
        ge=1,
        le=16,
        description="Most ids that one round of the throughput profile tries, the natural one included.",
    )
    ttfb_max_ms: Millis = Field(
        default=5000,
        ge=1,
        le=300_000,
        description="Longest time to the first token that the throughput profile admits.",
    )
    total_max_ms: Millis = Field(
        default=15_000,
        ge=1,
        le=300_000,
        description="Longest time to the end of a probe that the throughput profile admits.",
    )
    target_tps: Rate = Field(
        default=150,
        ge=1,
        le=100_000,
        description="Speed at which a round of the throughput profile is content and stops.",
    )
    degrade_tps: Rate = Field(
        default=70,
        ge=0,
        le=100_000,
        description="Least speed that the throughput profile admits, and below which a turn counts as slow.",
    )
    api_key: Secret | None = Field(
        default=None,
        description="Key that probes use, else OPENCODE_API_KEY, else the credential last seen in live traffic.",
    )


THROUGHPUT: Final[Mapping[str, Any]] = {"max_tokens": 96, "timeout_ms": 25_000}
"""Defaults that differ where ``profile`` is ``throughput``."""
