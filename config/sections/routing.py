"""``[routing]``: which requests get a route of their own."""

from typing import Literal

from pydantic import Field

from config.sections.base import Section
from config.units import Switch, Text

Api = Literal["completions", "responses", "messages", "google", "systemone", "embeddings"]
Provider = Literal["opencode-go", "opencode"]


class RoutingSection(Section):
    """Which requests get a route of their own; all others pass through."""

    mode: Literal["route", "observe", "off"] = Field(
        default="route",
        description="route rewrites the session field, observe only decides and logs, off is a plain proxy.",
    )
    apis: tuple[Api, ...] = Field(
        default=("completions",),
        description="Kinds of request that are routed, where completions is any path that ends in /chat/completions.",
    )
    providers: tuple[Provider, ...] = Field(
        default=("opencode-go", "opencode"),
        description="Providers that are routed: opencode-go is the Go plan, opencode is Zen.",
    )
    models: tuple[Text, ...] = Field(
        default=(),
        max_length=256,
        description="Models that are routed, where an empty list means all of them.",
    )
    fill_missing_session: Switch = Field(
        default=True,
        description="Fill in one session id per caller where an inference request that is not routed has none.",
    )
