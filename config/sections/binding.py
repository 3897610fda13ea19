"""``[binding]``: the ids that conversations own."""

from pydantic import Field

from config.sections.base import Section
from config.units import Count, Millis, Switch, Tokens


class BindingSection(Section):
    """The ids that conversations own."""

    lease_ttl_ms: Millis = Field(
        default=28_800_000,
        ge=1,
        le=2_592_000_000,
        description="Idle time after which a conversation's id is retired.",
    )
    max_count: Count = Field(
        default=256,
        ge=1,
        le=100_000,
        description="Most conversations whose ids are remembered, past which the longest idle one is dropped.",
    )
    lock_after_turns: Count = Field(
        default=2,
        ge=0,
        le=1000,
        description="Turns after which the throughput profile moves a conversation for its slowness no more.",
    )
    lock_after_input_tokens: Tokens = Field(
        default=20_000,
        ge=0,
        le=10_000_000,
        description="Uncached input above which a turn's latency is not blamed on the route; locks as well.",
    )
    persist: Switch = Field(
        default=True,
        description="Keep the ids of conversations in the state file, so that they survive a restart.",
    )
