"""``[headers]``: what ocpool adds to an answer."""

from pydantic import Field

from config.sections.base import Section
from config.units import Switch


class HeadersSection(Section):
    """What ocpool adds to an answer."""

    expose: Switch = Field(
        default=True,
        description="Add x-ocpool-conversation, x-ocpool-match and x-ocpool-route to answers.",
    )
