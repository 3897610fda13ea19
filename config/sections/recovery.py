"""``[recovery]``: what may be sent a second time."""

from pydantic import Field

from config.sections.base import Section
from config.units import Bytes, Count


class RecoverySection(Section):
    """What may be sent a second time."""

    max_replays: Count = Field(
        default=1,
        ge=0,
        le=1,
        description="How often a refused request is sent again on a spare before its first byte, where 0 is never.",
    )
    replay_max_bytes: Bytes = Field(
        default=8_388_608,
        ge=0,
        le=134_217_728,
        description="Largest body that is ever sent again.",
    )
