"""``[conversation]``: how requests are told apart."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from config.sections.base import Section
from config.units import Count, Millis, Text

_FIELD_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # a token of RFC 9110, section 5.6.2


def _field_name(text: str) -> str:
    if not _FIELD_NAME.fullmatch(text):
        raise ValueError("must be the name of a header")
    return text.lower()


class RuleSection(Section):
    """One rule of the user's own; exactly one of header, path and user_agent says what it is about."""

    header: Annotated[Text, AfterValidator(_field_name)] | None = Field(
        default=None,
        description="Header whose value is taken as a conversation id of the class.",
    )
    path: Text | None = Field(
        default=None,
        description="Start of the path of requests whose ids are all of the class.",
    )
    user_agent: Text | None = Field(
        default=None,
        description="Part of the User-Agent, in any case, of requests whose ids are all of the class.",
    )
    class_: Literal["owner", "cohort", "ignore"] = Field(
        alias="class",
        description="owner is one conversation, cohort is one or more, ignore is no id at all.",
    )

    @model_validator(mode="after")
    def _about_one_thing(self) -> Self:
        if sum(part is not None for part in (self.header, self.path, self.user_agent)) != 1:
            raise ValueError("a rule needs exactly one of header, path and user_agent")
        return self


class ConversationSection(Section):
    """How requests are told apart."""

    idle_ttl_ms: Millis = Field(
        default=86_400_000,
        ge=1,
        le=2_592_000_000,
        description="Idle time after which a conversation is forgotten.",
    )
    max_count: Count = Field(
        default=2000,
        ge=1,
        le=100_000,
        description="Most conversations kept in memory, past which the longest idle one is forgotten.",
    )
    rules: tuple[RuleSection, ...] = Field(
        default=(),
        max_length=256,
        description='Rules before all others, such as {header = "x-job", class = "owner"}.',
    )
