"""How well a partition agrees with the right one: precision and recall of the pairs "same conversation".

Where nothing tells two conversations apart yet, a swap between them harms nobody: a pair counts as found, and does not
count as wrong, if it is right for a request with the very same content under the same credential. Two such requests
themselves belong together only if they are of one conversation.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple


class Judged(NamedTuple):
    """One request: the ``right`` conversation, the ``found`` one, and what is the same for requests that nothing tells apart."""

    right: str
    found: str
    content: Hashable
    note: str = ""


@dataclass(frozen=True, slots=True)
class Score:
    """Pairs: ``joined`` were found together, ``wrong`` of them belong apart; ``due`` belong together, ``missed`` of them were not found."""

    requests: int = 0
    conversations: int = 0
    joined: int = 0
    wrong: int = 0
    due: int = 0
    missed: int = 0

    @property
    def precision(self) -> float:
        return 1 - self.wrong / self.joined if self.joined else 1.0

    @property
    def recall(self) -> float:
        return 1 - self.missed / self.due if self.due else 1.0


def score(judged: Iterable[Judged]) -> Score:
    """Compare the partition that was found with the right one."""
    all_of = list(judged)
    alike: dict[Hashable, list[Judged]] = defaultdict(list)
    right: dict[str, list[Judged]] = defaultdict(list)
    found: dict[str, list[Judged]] = defaultdict(list)
    for one in all_of:
        alike[one.content].append(one)
        right[one.right].append(one)
        found[one.found].append(one)
    due = missed = joined = wrong = 0
    for group in right.values():
        for one, other in combinations(group, 2):
            due += 1
            missed += not _together(one, other, alike)
    for group in found.values():
        for one, other in combinations(group, 2):
            joined += 1
            wrong += one.right != other.right and not _swapped(one, other, alike)
    return Score(len(all_of), len(right), joined, wrong, due, missed)


def _together(one: Judged, other: Judged, alike: dict[Hashable, list[Judged]]) -> bool:
    if one.found == other.found:
        return True
    if one.content == other.content:
        return False
    return not _found(one, alike).isdisjoint(_found(other, alike))


def _found(one: Judged, alike: dict[Hashable, list[Judged]]) -> set[str]:
    """Where it was put, or might as well have been."""
    return {one.found, *(twin.found for twin in alike[one.content] if twin.right != one.right)}


def _swapped(one: Judged, other: Judged, alike: dict[Hashable, list[Judged]]) -> bool:
    """Do they only stand in each other's place, each where the other belongs?"""
    if one.content == other.content:
        return False
    return _changed(one, other, alike) or _changed(other, one, alike)


def _changed(one: Judged, other: Judged, alike: dict[Hashable, list[Judged]]) -> bool:
    return any(twin.right == other.right and twin.found != other.found for twin in alike[one.content])


def misses(judged: Iterable[Judged]) -> list[tuple[str, Judged, Judged]]:
    """The neighbours of a conversation that were parted, and the first strangers that were joined."""
    all_of = list(judged)
    alike: dict[Hashable, list[Judged]] = defaultdict(list)
    for one in all_of:
        alike[one.content].append(one)
    told: list[tuple[str, Judged, Judged]] = []
    last: dict[str, Judged] = {}
    owner: dict[str, Judged] = {}
    for one in all_of:
        before = last.get(one.right)
        if before is not None and not _together(before, one, alike):
            told.append(("parted", before, one))
        last[one.right] = one
        first = owner.setdefault(one.found, one)
        if first.right != one.right and not _swapped(first, one, alike):
            told.append(("joined", first, one))
    return told
