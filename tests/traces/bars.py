"""What is demanded of the figures."""

from collections.abc import Sequence
from typing import Final

from tests.traces.report import Line, total
from tests.traces.score import Score

MEAN_PRECISION: Final = 0.99
MEAN_RECALL: Final = 0.95
ROW_PRECISION: Final = 0.95
ROW_RECALL: Final = 0.85


def under(lines: Sequence[Line]) -> list[str]:
    """What is under its bar, in words; empty when all is well."""
    return [wrong for one in lines for wrong in under_row(one)] + under_means(lines)


def under_row(one: Line) -> list[str]:
    """What of one row is under its bar. What a client sends bare beside its ids is recognised by content, and judged so."""
    wrong = [f"{one.name}: {one.crossed} conversations of more than one credential"] if one.crossed else []
    wrong += _under(f"{one.name}, ids removed", one.removed, ROW_PRECISION, ROW_RECALL)
    wrong += _under(f"{one.name}, ids present", one.present, 1.0, 1.0)
    return wrong + _under(f"{one.name}, ids present and bare requests", one.loose, ROW_PRECISION, ROW_RECALL)


def under_means(lines: Sequence[Line]) -> list[str]:
    """Which means are under theirs."""
    wrong = []
    clients, cases = [one for one in lines if one.client], [one for one in lines if one.case]
    for what, part in (("clients", clients), ("cases", cases)):
        if part:
            mean = total(part)
            wrong += _less(f"{what}, mean precision", mean.precision, MEAN_PRECISION)
            wrong += _less(f"{what}, mean recall", mean.recall, MEAN_RECALL)
    return wrong


def _under(name: str, found: Score, precision: float, recall: float) -> list[str]:
    return _less(f"{name}, precision", found.precision, precision) + _less(f"{name}, recall", found.recall, recall)


def _less(name: str, found: float, bar: float) -> list[str]:
    return [f"{name}: {found:.4f} is under {bar}"] if found < bar else []
