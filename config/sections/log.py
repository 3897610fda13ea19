"""``[log]``: what is said on stderr or in a file."""

from typing import Literal

from pydantic import Field

from config.sections.base import Section
from config.units import RESTART, FilePath


class LogSection(Section):
    """What is said on stderr or in a file."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info",
        description="Least important messages that are logged.",
    )
    format: Literal["auto", "console", "json"] = Field(
        default="auto",
        description="auto is console on a terminal and json otherwise.",
    )
    path: FilePath | None = Field(
        default=None,
        description="File to log to in place of stderr.",
        json_schema_extra=RESTART,
    )
