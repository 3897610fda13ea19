"""What every section of the settings is: frozen, closed to unknown keys, silent about values in its errors."""

import sys
from types import ModuleType

from pydantic import BaseModel, ConfigDict

# pydantic would look through all installed distributions for plugins of its own: 40 ms of a start, and none is for us.
_plugins = ModuleType("pydantic.plugin._loader")
_plugins.get_plugins = tuple  # type: ignore[attr-defined]
sys.modules.setdefault(_plugins.__name__, _plugins)


class Section(BaseModel):
    """A group of keys. Building is deferred: only ``Settings`` is built, once, with all of them inside."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        defer_build=True,
        populate_by_name=True,
    )
