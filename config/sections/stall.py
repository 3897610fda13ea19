"""``[stall]``: limits on silence, all of them off unless asked for."""

from pydantic import Field

from config.sections.base import Section
from config.units import Millis


class StallSection(Section):
    """Limits on silence, all of them off unless asked for."""

    idle_timeout_ms: Millis = Field(
        default=0,
        ge=0,
        le=86_400_000,
        description="Silence of the gateway after which a request is aborted, where 0 waits forever.",
    )
    total_timeout_ms: Millis = Field(
        default=0,
        ge=0,
        le=86_400_000,
        description="Length of a request after which it is aborted, where 0 waits forever.",
    )
