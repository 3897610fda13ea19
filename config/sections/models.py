"""``[models."NAME"]``: the keys of ``probe`` and ``quarantine`` for one model."""

from typing import TYPE_CHECKING, Annotated, Any, Optional

from pydantic import Field, create_model

from config.sections.base import Section
from config.sections.probe import ProbeSection
from config.sections.quarantine import QuarantineSection


def _optional(section: type[Section]) -> dict[str, Any]:
    """The fields of a section with their types, ranges and sentences, unset by default: declared once, used twice."""
    return {
        name: (
            Optional[Annotated[info.annotation, Field(), *info.metadata]],  # noqa: UP045 - of a type known at run time only
            Field(default=None, description=info.description),
        )
        for name, info in section.model_fields.items()
    }


if TYPE_CHECKING:

    class ModelSection(Section):
        """Keys of ``probe`` and ``quarantine`` that differ for one model; those left unset are None."""
else:
    ModelSection = create_model(
        "ModelSection",
        __base__=Section,
        __doc__="Keys of ``probe`` and ``quarantine`` that differ for one model; those left unset are None.",
        **_optional(ProbeSection),
        **_optional(QuarantineSection),
    )
