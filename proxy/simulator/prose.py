"""What the models say: words that mean nothing, in several scripts, so that a cut can fall inside a character."""

from collections.abc import Iterator
from typing import Final

from proxy.simulator.draw import Draw

_TEXT: Final = (
    "the parser reads one line and keeps its offset, so naïve callers — those that seek — get 世界 instead of bytes; "
    "we add a test, run it, see it fail, and fix the borrow where the buffer is swapped. Größe und Länge bleiben "
    "gleich. 🙂 Then the cache holds, the diff is small, and the review says: привет, looks right to me. Next we "
    "rename the field, update three imports, and delete what nobody calls.\n"
)
_WORDS: Final = _TEXT.split(" ")


def words(draw: Draw, count: int) -> list[str]:
    """``count`` tokens of text; the same for the same draw."""
    start = int(draw.fraction("prose") * len(_WORDS))
    return [_WORDS[(start + index) % len(_WORDS)] + " " for index in range(count)]


def grouped(tokens: list[str], size: int) -> Iterator[tuple[int, str]]:
    """The text in pieces of ``size`` tokens, each with the count of tokens said by its end."""
    for start in range(0, len(tokens), size):
        piece = tokens[start : start + size]
        yield start + len(piece), "".join(piece)
