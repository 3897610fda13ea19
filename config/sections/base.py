"""What every section of the settings is: frozen, closed to unknown keys, silent about values in its errors."""

import os

# pydantic would look through all installed distributions for plugins of its own, and none is for us.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A group of keys. Building is deferred: only ``Settings`` is built, once, with all of them inside."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        defer_build=True,
        populate_by_name=True,
    )
