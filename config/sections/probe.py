"""``[probe]``: the small requests that find out whether an id is fast."""

from pydantic import Field

from config.sections.base import Section
from config.units import Millis, Secret, Switch, Tokens


class ProbeSection(Section):
    """The small requests that find out whether an id is fast."""

    enabled: Switch = Field(
        default=True,
        description="Send probes at all.",
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
        description="How long one probe may take before it is aborted.",
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
        description="Tokens that a probe asks for.",
    )
    api_key: Secret | None = Field(
        default=None,
        description="Key that probes use, else OPENCODE_API_KEY, else the credential last seen in live traffic.",
    )
