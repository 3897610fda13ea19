"""A request's messages as hashes: what they are one after the other, and what of them an answer of ours may be.

``points`` holds, for every message that is no system's, one hash of everything up to it, so that one comparison tells
whether two conversations are the same so far. System text, models, tools and tool results' texts are in none of it.
"""

from array import array
from typing import Any, Final

from proxy.conversation.hashing import ASSISTANT, OTHER, USER, Hasher, combine
from proxy.conversation.messages import (
    SYSTEM,
    block_results,
    calls_of,
    is_call,
    is_result,
    is_silent,
    result_id,
    text_of,
)

MAX_MESSAGES = 10_000  # of a longer list nothing is read: it would hold up everybody else
_START = 0x0C9001
NO_HASHES: Final = array("Q")  # shared by all that have none: never changed


class Transcript:
    """What was said, as hashes.

    ``marks`` are those of the answers: of their texts and of their calls, oldest first; of a text or a call that
    might be said by accident, together with what came before it. ``ids`` are those of tool calls, where they look
    random. ``opener`` is the first thing the user said. ``last`` is the latest message. ``answers`` counts answers.
    """

    __slots__ = ("answers", "ids", "last", "marks", "opener", "points")

    def __init__(self) -> None:
        self.points = array("Q")
        self.marks = self.ids = NO_HASHES
        self.opener = 0
        self.last = 0
        self.answers = 0

    def __len__(self) -> int:
        return len(self.points)

    def copy(self) -> "Transcript":
        """One that can be continued without changing this one."""
        other = Transcript()
        other.points = self.points[:]
        other.marks, other.ids = self.marks[:] or NO_HASHES, self.ids[:] or NO_HASHES
        other.opener, other.last, other.answers = self.opener, self.last, self.answers
        return other

    def extend(self, messages: list[Any], hasher: Hasher) -> None:
        """Continue with what follows."""
        for message in messages:
            if not isinstance(message, dict):
                continue
            role = message.get("role")
            if role == "user" and isinstance(content := message.get("content"), str):
                self._add(self._opened(hasher.text(USER, content)))
            elif role == "assistant" or is_call(message):
                self._answer(message, message.get("content"), hasher)
            elif role in SYSTEM or is_silent(message):
                continue
            elif is_result(message):
                self._result(result_id(message), hasher)
            else:
                self._said(message, hasher)

    def _add(self, entry: int) -> None:
        points = self.points
        points.append(combine(points[-1] if points else _START, entry))
        self.last = entry

    def _opened(self, entry: int) -> int:
        if not self.opener:
            self.opener = entry
        return entry

    def _result(self, call: str, hasher: Hasher) -> None:
        """A tool's result, of which only the id counts: clients shorten old results."""
        self._add(hasher.call(call, ""))

    def _said(self, message: dict[str, Any], hasher: Hasher) -> None:
        results = block_results(message)
        for call in results:
            self._result(call, hasher)
        text = text_of(message.get("content"))
        if text or not results:
            self._add(self._opened(hasher.text(USER if message.get("role") == "user" else OTHER, text)))

    def _answer(self, message: dict[str, Any], content: object, hasher: Hasher) -> None:
        text = text_of(content)
        said = hasher.text(ASSISTANT, text) if text else 0
        called = 0
        if not isinstance(content, str) or len(message) > 2:  # more than a role and a text
            calls = calls_of(message)
            if calls:
                called = hasher.calls([(name, arguments) for _, name, arguments in calls])
                found = [hasher.call(call, name) for call, name, _ in calls]
                self.ids = extended(self.ids, [each for each in found if each & 1])
        self.marks = extended(self.marks, marks_of(self.last, said, called))
        self._add(entry_of(said, called))
        self.answers += 1


def extended(hashes: "array[int]", more: list[int]) -> "array[int]":
    """The hashes and some more: the same array, but for the shared empty one."""
    if hashes is NO_HASHES:
        return array("Q", more) if more else hashes
    hashes.extend(more)
    return hashes


def entry_of(said: int, called: int) -> int:
    """An answer as one entry: the hash of its text and that of its calls, 0 where it has none."""
    return combine(said, called) if called else said


def marks_of(before: int, said: int, called: int) -> list[int]:
    """What an answer is found by: its text, if that is telling, else together with what it answered, as are its calls.

    Two conversations read the same file. The lowest bit says which marks are telling; where neither half is, one
    such mark proves little.
    """
    marks = []
    if said & 1:
        marks.append(said)
    elif said and before:
        marks.append(_pair(before, said))
    if called and before:
        marks.append(_pair(before, called))
    return marks


def _pair(before: int, part: int) -> int:
    pair = combine(before, part)
    return pair | 1 if before & 1 else pair & ~1


def shared(points: "array[int]", others: "array[int]", offset: int = 0) -> int:
    """How many messages two conversations share from the beginning.

    ``others`` may lack its first ``offset`` ones; what cannot be compared counts as shared if what follows is.
    """
    low, high = 0, min(len(points), len(others) + offset)
    if high <= offset or points[offset] != others[0]:
        return 0
    low = offset + 1
    while low < high:  # points agree up to where the conversations part, and nowhere after
        middle = (low + high + 1) // 2
        if points[middle - 1] == others[middle - 1 - offset]:
            low = middle
        else:
            high = middle - 1
    return low
