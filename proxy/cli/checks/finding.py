"""What a check found."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, in one sentence, and what to do about it.

    ``note``: worth knowing, and nothing is wrong.
    """

    problem: str
    remedy: str
    note: bool = False


def remark(text: str, remedy: str = "") -> Finding:
    """Something worth knowing."""
    return Finding(text, remedy, note=True)
