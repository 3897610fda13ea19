"""All settings as one frozen tree. Where they come from is ``config.load``'s business."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pydantic import Field, ValidationError, model_validator

from config.sections.base import Section
from config.sections.binding import BindingSection
from config.sections.conversation import ConversationSection
from config.sections.headers import HeadersSection
from config.sections.listen import ListenSection
from config.sections.log import LogSection
from config.sections.models import ModelSection
from config.sections.pool import THROUGHPUT as POOL_OF_THROUGHPUT
from config.sections.pool import PoolSection
from config.sections.pricing import PricingSection
from config.sections.probe import THROUGHPUT as PROBE_OF_THROUGHPUT
from config.sections.probe import ProbeSection
from config.sections.quarantine import QuarantineSection
from config.sections.recovery import RecoverySection
from config.sections.routing import RoutingSection
from config.sections.stall import StallSection
from config.sections.state import StateSection
from config.sections.upstream import UpstreamSection
from config.units import Text


class Settings(Section):
    """Every setting, each with its default; ``Settings()`` is what a user gets who sets nothing."""

    listen: ListenSection = Field(default_factory=ListenSection)
    upstream: UpstreamSection = Field(default_factory=UpstreamSection)
    routing: RoutingSection = Field(default_factory=RoutingSection)
    pool: PoolSection = Field(default_factory=PoolSection)
    probe: ProbeSection = Field(default_factory=ProbeSection)
    binding: BindingSection = Field(default_factory=BindingSection)
    quarantine: QuarantineSection = Field(default_factory=QuarantineSection)
    conversation: ConversationSection = Field(default_factory=ConversationSection)
    recovery: RecoverySection = Field(default_factory=RecoverySection)
    stall: StallSection = Field(default_factory=StallSection)
    state: StateSection = Field(default_factory=StateSection)
    pricing: PricingSection = Field(default_factory=PricingSection)
    headers: HeadersSection = Field(default_factory=HeadersSection)
    log: LogSection = Field(default_factory=LogSection)
    models: dict[Text, ModelSection] = Field(default_factory=dict, max_length=256)

    @model_validator(mode="before")
    @classmethod
    def _every_section(cls, data: Any) -> Any:
        """An absent section is an empty one: validated with the rest, it need not be built on its own."""
        return {name: {} for name in cls.model_fields} | data if isinstance(data, dict) else data

    def probe_for(self, model: str) -> ProbeSection:
        """``probe``, with what ``models."NAME"`` says otherwise, and the defaults of the profile."""
        other = self._overrides(model, ProbeSection)
        if other.get("profile", self.probe.profile) == "throughput":
            other = _unset(PROBE_OF_THROUGHPUT, self.probe) | other
        return self.probe.model_copy(update=other) if other else self.probe

    def pool_for(self, model: str) -> PoolSection:
        """``pool``, with the defaults of the model's profile."""
        if self.profile_for(model) != "throughput":
            return self.pool
        other = _unset(POOL_OF_THROUGHPUT, self.pool)
        return self.pool.model_copy(update=other) if other else self.pool

    def profile_for(self, model: str) -> str:
        """``probe.profile``, or what ``models."NAME"`` says of it."""
        override = self.models.get(model)
        named = None if override is None else getattr(override, "profile", None)
        return named or self.probe.profile

    def quarantine_for(self, model: str) -> QuarantineSection:
        """``quarantine``, with what ``models."NAME"`` says otherwise."""
        other = self._overrides(model, QuarantineSection)
        return self.quarantine.model_copy(update=other) if other else self.quarantine

    def _overrides(self, model: str, section: type[Section]) -> dict[str, Any]:
        override = self.models.get(model)
        if override is None:
            return {}
        return {name: getattr(override, name) for name in override.model_fields_set & section.model_fields.keys()}


def _unset(defaults: Mapping[str, Any], section: Section) -> dict[str, Any]:
    """Those defaults whose keys nobody has set."""
    return {name: value for name, value in defaults.items() if name not in section.model_fields_set}


def settings_of(tables: Mapping[str, Any]) -> Settings:
    """Settings from what was said, by section and key.

    A section of which nothing is said has its defaults, which need no check: its schema is not even built.

    Raises:
        ValidationError: with all that is wrong.
    """
    sections = {name: info.annotation for name, info in Settings.model_fields.items() if name != "models"}
    if tables.keys() <= sections.keys():
        with suppress(ValidationError):
            return Settings.model_construct(
                models={},
                **{
                    name: section.model_validate(tables[name]) if name in tables else section.model_construct()
                    for name, section in sections.items()
                    if section is not None
                },
            )
    return Settings.model_validate(tables)
