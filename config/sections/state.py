"""``[state]``: what is kept on disk."""

from typing import Annotated

from pydantic import Field

from config.sections.base import Section
from config.units import RESTART, Bytes, Count, FilePath, Secret


class StateSection(Section):
    """What is kept on disk."""

    path: FilePath | None = Field(
        default=None,
        description="State file, else state.json in $STATE_DIRECTORY or the user's state folder.",
        json_schema_extra=RESTART,
    )
    events_path: FilePath | None = Field(
        default=None,
        description="Event log, else events.jsonl beside the state file.",
        json_schema_extra=RESTART,
    )
    events_max_bytes: Bytes = Field(
        default=16_777_216,
        ge=4096,
        le=1_073_741_824,
        description="Size at which the event log is rotated.",
        json_schema_extra=RESTART,
    )
    events_keep: Count = Field(
        default=5,
        ge=0,
        le=100,
        description="Rotated event logs that are kept.",
        json_schema_extra=RESTART,
    )
    usage_path: FilePath | None = Field(
        default=None,
        description="Token counts by day, else usage.sqlite3 beside the state file.",
        json_schema_extra=RESTART,
    )
    secret: Annotated[Secret, Field(min_length=16)] | None = Field(
        default=None,
        description="Secret that labels are made with, else 32 random bytes in a file beside the state file.",
        json_schema_extra=RESTART,
    )
