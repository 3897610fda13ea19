"""``[quarantine]``: when a route is bad enough to be left."""

from pydantic import Field

from config.sections.base import Section
from config.units import Count, Millis


class QuarantineSection(Section):
    """When a route is bad enough to be left."""

    failures: Count = Field(
        default=2,
        ge=1,
        le=100,
        description="Slow turns after which an id is retired.",
    )
    degrade_ms: Millis = Field(
        default=6000,
        ge=1,
        le=3_600_000,
        description="Upstream time of a turn that counts as one slow turn.",
    )
    quarantine_ms: Millis = Field(
        default=8000,
        ge=1,
        le=3_600_000,
        description="Upstream time of a turn that retires the id at once.",
    )
    degrade_ttfb_ms: Millis = Field(
        default=20_000,
        ge=1,
        le=3_600_000,
        description="Time to the first event that counts as one slow turn where the gateway sends no timing.",
    )
