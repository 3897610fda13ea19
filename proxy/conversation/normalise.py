"""What of a text counts when two are compared: not its white space, its reasoning, its dates, its moving blocks.

Clients trim answers, drop the model's thinking, and put the time, the folder and reminders into messages that they
otherwise repeat. Those differences are no other conversation.
"""

import re
from typing import Final

# Blocks that clients and models put around what is not the message itself.
_BLOCKS: Final = ("think", "thinking", "system-reminder", "environment_details", "env")
_STARTS: Final = tuple((f"<{name}>", f"</{name}>") for name in _BLOCKS)
# ISO 8601 dates and date-times of this century; the literal start keeps the search fast.
_DATE: Final = re.compile(r"20\d\d-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?")

TELLING: Final = 24  # characters from which on a text is unlikely to be said twice by accident
LONG: Final = 200  # an answer this long may come back as a summary
SNIPPET: Final = 160  # characters of it that are remembered, in memory only


def normalise(text: str) -> str:
    """The text without what moves, white space collapsed; where nothing would be left, the text itself."""
    short = text
    if "<" in short:
        for start, end in _STARTS:
            if start in short:
                short = _without(short, start, end)
    if "20" in short and "-" in short:
        short = _DATE.sub("", short)
    return " ".join(short.split()) or text


def _without(text: str, start: str, end: str) -> str:
    """Drop every block from ``start`` to ``end``; one that is never closed stays. Linear."""
    kept = []
    at = 0
    while (opens := text.find(start, at)) >= 0:
        closes = text.find(end, opens + len(start))
        if closes < 0:
            break
        kept.append(text[at:opens])
        at = closes + len(end)
    kept.append(text[at:])
    return " ".join(kept)
