"""The index of one scope: by what a request shows, the lines of talk that it may belong to."""

from array import array
from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Generic, TypeVar

from proxy.conversation.lineage import IDS, MARKS, SNIPPETS, Lineage
from proxy.conversation.normalise import TELLING, normalise
from proxy.conversation.quoting import OPENER, SHORTEST_OPENER, Pair, anchor

MOST = 256  # lines with one key that are looked at
THIN_MARKS = 8  # what is left of a line's marks and ids once it is thinned
UNQUOTED = 256
ASIDES = 16

Key = TypeVar("Key")


class Postings(Generic[Key]):
    """Which lines have a key. Most keys belong to one line, which is then stored by itself."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[Key, Lineage | dict[Lineage, None]] = {}

    def __len__(self) -> int:
        return len(self._found)

    def add(self, key: Key, line: Lineage) -> None:
        """The line has this key now."""
        there = self._found.get(key)
        if there is None:
            self._found[key] = line
        elif isinstance(there, dict):
            there[line] = None
        elif there is not line:
            self._found[key] = {there: None, line: None}

    def discard(self, key: Key, line: Lineage) -> None:
        """The line has it no more."""
        there = self._found.get(key)
        if there is line:
            del self._found[key]
        elif isinstance(there, dict):
            there.pop(line, None)
            if not there:
                del self._found[key]

    def get(self, key: Key, most: int = MOST) -> list[Lineage]:
        """The lines with this key, the one that has it longest last; at most so many."""
        there = self._found.get(key)
        if there is None:
            return []
        return list(islice(reversed(there), most)) if isinstance(there, dict) else [there]

    def has(self, key: Key) -> bool:
        """Has any line this key?"""
        return key in self._found

    def known(self, keys: set[Key]) -> set[Key]:
        """Those of the keys that anything has."""
        return self._found.keys() & keys


class Index:
    """The lines of one scope. Another scope has an index of its own, so that nothing is ever found across."""

    __slots__ = (
        "asides",
        "cohorts",
        "current",
        "heads",
        "ids",
        "lines",
        "marks",
        "openers",
        "quotes",
        "unquoted",
        "words",
    )

    def __init__(self) -> None:
        self.heads: Postings[int] = Postings()
        self.marks: Postings[int] = Postings()
        self.ids: Postings[int] = Postings()
        self.openers: Postings[int] = Postings()
        self.words: Postings[Pair] = Postings()
        self.quotes: Postings[Pair] = Postings()
        self.unquoted: deque[Lineage] = deque(maxlen=UNQUOTED)  # whose openers nobody has asked for yet
        self.cohorts: Postings[str] = Postings()
        self.asides: deque[tuple[Lineage, str]] = deque(maxlen=ASIDES)  # of no conversation yet, with what they say
        self.current: dict[str, Lineage] = {}  # the latest line of each conversation
        self.lines = 0

    def enter(self, line: Lineage) -> None:
        """Make a new line findable."""
        self.lines += 1
        self.heads.add(line.request, line)
        self.heads.add(line.full, line)
        for mark in line.marks:
            self.marks.add(mark, line)
        for call in line.ids:
            self.ids.add(call, line)
        if line.opener:
            self.openers.add(line.opener, line)
        if line.cohort is not None:
            self.cohorts.add(line.cohort, line)
        self.current[line.label] = line
        if line.opener_raw:
            self.unquoted.append(line)

    def quotable(self) -> "Postings[Pair]":
        """The lines by a pair of words of what a side call may quote: how they began, what was asked last."""
        while self.unquoted:
            line = self.unquoted.pop()
            if line.opener_raw:
                line.opener_text = normalise(line.opener_raw)[:OPENER]
                line.opener_raw = ""
                if len(line.opener_text) >= SHORTEST_OPENER:
                    line.opener_word = anchor(line.opener_text)
                    self.quotes.add(line.opener_word, line)
            if line.asked_raw:
                if line.asked_word != line.opener_word:
                    self.quotes.discard(line.asked_word, line)
                line.asked_text = normalise(line.asked_raw)[:OPENER]
                line.asked_raw = ""
                if len(line.asked_text) >= TELLING:
                    line.asked_word = anchor(line.asked_text)
                    self.quotes.add(line.asked_word, line)
        return self.quotes

    def leave(self, line: Lineage) -> None:
        """Forget a line."""
        self.lines -= 1
        self.unhead(line)
        for mark in line.marks:
            self.marks.discard(mark, line)
        for call in line.ids:
            self.ids.discard(call, line)
        self.openers.discard(line.opener, line)
        self._unquote(line)
        for snippet in line.snippets:
            self.words.discard(anchor(snippet), line)
        if line.cohort is not None:
            self.cohorts.discard(line.cohort, line)
        if self.current.get(line.label) is line:
            del self.current[line.label]

    def unhead(self, line: Lineage) -> None:
        """The line is about to grow."""
        self.heads.discard(line.request, line)
        self.heads.discard(line.full, line)

    def add_marks(self, line: Lineage, marks: Iterable[int], ids: Iterable[int]) -> None:
        """The line has relayed these; the oldest go when there are too many."""
        _append(line.marks, marks, MARKS, self.marks, line)
        _append(line.ids, ids, IDS, self.ids, line)

    def add_snippet(self, line: Lineage, snippet: str) -> None:
        """The beginning of an answer, which may come back as a summary, or quoted by a side call."""
        if snippet in line.snippets:
            return
        line.snippets.append(snippet)
        self.words.add(anchor(snippet), line)
        if len(line.snippets) > SNIPPETS:
            gone = line.snippets.pop(0)
            if anchor(gone) not in map(anchor, line.snippets):
                self.words.discard(anchor(gone), line)

    def thin(self, line: Lineage) -> None:
        """Keep only what its next request most likely shows."""
        for mark in line.marks[:-THIN_MARKS]:
            self.marks.discard(mark, line)
        for call in line.ids[:-THIN_MARKS]:
            self.ids.discard(call, line)
        for snippet in line.snippets:
            self.words.discard(anchor(snippet), line)
        line.marks, line.ids = line.marks[-THIN_MARKS:], line.ids[-THIN_MARKS:]
        for mark in line.marks:
            self.marks.add(mark, line)
        for call in line.ids:
            self.ids.add(call, line)
        line.points = line.points[-1:]
        line.offset = max(0, line.length - len(line.points))
        line.snippets = []
        self._unquote(line)
        line.decided = ()
        line.thin = True

    def _unquote(self, line: Lineage) -> None:
        self.quotes.discard(line.opener_word, line)
        self.quotes.discard(line.asked_word, line)
        line.opener_raw = line.opener_text = line.asked_raw = line.asked_text = ""
        line.opener_word = line.asked_word = ("", "")

    def relabel(self, line: Lineage, label: str) -> None:
        """Make the line a conversation of its own."""
        if self.current.get(line.label) is line:
            del self.current[line.label]
        line.label = label
        line.changed = True
        self.current[label] = line


def _append(held: "array[int]", new: Iterable[int], most: int, index: Postings[int], line: Lineage) -> None:
    for value in new:
        held.append(value)
        index.add(value, line)
    while len(held) > most:
        gone = held.pop(0)
        if gone not in held:
            index.discard(gone, line)
