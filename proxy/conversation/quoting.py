"""How a text is searched for what it may quote: by a pair of neighbouring words, before anything is compared.

The words are those between blanks, because nothing splits a text faster. What stands around a quote may cling to its
first and its last word, so the pair is taken from between them; only a quote too short for that is looked for by the
letters of one word.
"""

import re
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import Final

SHORTEST_OPENER: Final = 8  # characters; a shorter opener is in too many texts
OPENER_READ: Final = 2048  # characters of an opener that are remembered until somebody may quote it, in memory only
OPENER: Final = 160  # of these, what is compared

Key = tuple[str, str]  # two words, or the only telling one of a short text and nothing
NOWHERE: Final = ("", "")
_WORD = re.compile(r"\w+")


def pairs_of(text: str) -> set[Key]:
    """The pairs of neighbouring words of a text."""
    return set(pairwise(text.split()))


def singles_of(text: str) -> AbstractSet[Key]:
    """Its single words, whatever stands around them. Slower: for where short texts may be quoted."""
    return {(word, "") for word in _WORD.findall(text)}


def anchor(quote: str) -> Key:
    """What a text that quotes this one is sure to have: its longest word and the next, but not the first or last."""
    words = quote.split()
    inner = words[1:-1]
    if len(inner) < 2:
        return _short(quote)
    longest = max(inner[:-1], key=len)
    return longest, inner[inner.index(longest) + 1]


def _short(quote: str) -> Key:
    """The longest word of a text of hardly any words; the last one may be cut off."""
    words = _WORD.findall(quote)
    if len(quote) >= OPENER:
        words = words[:-1]
    return (max(words, key=len), "") if words else NOWHERE
