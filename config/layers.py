"""Several sources of settings, laid over one another by pydantic-settings."""

from collections.abc import Sequence
from typing import Any

from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict


class _Layers(BaseSettings):
    """Whatever the ``layers`` say that it is made with, the first before the others; checked elsewhere."""

    model_config = SettingsConfigDict(extra="allow", case_sensitive=True)

    @classmethod
    def settings_customise_sources(  # the library's own are not used: they read the process's environment
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        *_: object,
        **__: object,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The layers that were given, in place of the library's sources."""
        return tuple(InitSettingsSource(settings_cls, layer) for layer in init_settings()["layers"])


def merged(layers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The tables of all layers as one; of two values for a key the first layer's."""
    return dict(_Layers(layers=layers).model_extra or {})
