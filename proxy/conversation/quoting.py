"""How a text is searched for what it may quote: by a pair of neighbouring words, before anything is compared."""

import re
from itertools import pairwise
from typing import Final

SHORTEST_OPENER: Final = 8  # characters; a shorter opener is in too many texts
OPENER_READ: Final = 2048  # characters of an opener that are remembered until somebody may quote it, in memory only
OPENER: Final = 160  # of these, what is compared

Pair = tuple[str, str]
_WORD = re.compile(r"\w+")


def pairs_of(text: str) -> set[Pair]:
    """The pairs of neighbouring words of a text, whatever stands around them; and the single word of a short one."""
    words = _WORD.findall(text)
    found: set[Pair] = set(pairwise(words))
    found.update((word, "") for word in words)
    return found


def anchor(snippet: str) -> Pair:
    """The pair of words by which a snippet is looked for first: the longest, without a last word that may be cut."""
    words = _WORD.findall(snippet)
    if len(snippet) >= OPENER:
        words = words[:-1]
    if len(words) < 2:
        return (words[0], "") if words else ("", "")
    return max(pairwise(words), key=lambda pair: len(pair[0]) + len(pair[1]))
