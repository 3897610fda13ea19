"""What an answer said, as far as recognising its echo needs it. Nothing of it is kept: only keyed hashes are.

The reader of answers fills it in, ``Registry.answered`` takes it. An answer that was not read is None there.
"""

from typing import NamedTuple


class ToolCall(NamedTuple):
    """One call of choice 0: its id, its function's name, and its arguments as the JSON text that passed."""

    id: str
    name: str
    arguments: str


class Answer(NamedTuple):
    """One answer of the model.

    ``text`` is the visible assistant text of choice 0, "" where there was none, None when it was not read or was over
    the reader's bound. ``finish`` is the finish reason as sent. ``complete`` is False when the answer was cut off (an
    abort, a truncation); then ``text`` and ``tool_calls`` are what passed.
    """

    text: str | None
    tool_calls: tuple[ToolCall, ...]
    finish: str | None
    complete: bool
