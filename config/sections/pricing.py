"""``[pricing]``: what tokens cost, for estimates."""

from pydantic import Field

from config.sections.base import Section
from config.units import FilePath


class PricingSection(Section):
    """What tokens cost, for the estimates of `ocpool usage`."""

    path: FilePath | None = Field(
        default=None,
        description="JSON file of prices that go before the built-in ones.",
    )
