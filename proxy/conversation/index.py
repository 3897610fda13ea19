"""The index of one scope: by what a request shows, the lines of talk that it may belong to."""

from array import array
from collections import OrderedDict, deque
from typing import Final

from proxy.conversation.lineage import IDS, MARKS, SNIPPETS, Lineage
from proxy.conversation.normalise import TELLING, normalise
from proxy.conversation.postings import Postings, Quotes
from proxy.conversation.quoting import OPENER, SHORTEST_OPENER
from proxy.conversation.transcript import extended

THIN_MARKS: Final = 8  # what is left of a line's marks and ids once it is thinned
UNQUOTED: Final = 256
ASIDES: Final = 8  # of one beginning, and as many beginnings
ASIDE_READ: Final = 8192  # characters of a side call that came before its conversation, in memory only

Aside = tuple[Lineage, str]  # a line that began with a side call, and what that says


class Index:
    """The lines of one scope. Another scope has an index of its own, so that nothing is ever found across."""

    __slots__ = (
        "asides",
        "cohorts",
        "current",
        "failed_at",
        "heads",
        "ids",
        "lines",
        "marks",
        "openers",
        "quotes",
        "unquoted",
    )

    def __init__(self) -> None:
        self.heads: Postings[int, Lineage] = Postings()
        self.marks: Postings[int, Lineage] = Postings()
        self.ids: Postings[int, Lineage] = Postings()
        self.openers: Postings[int, Lineage] = Postings()
        self.quotes = Quotes()  # what the user began with, or asked last, and the latest answers' beginnings
        self.unquoted: deque[Lineage] = deque(maxlen=UNQUOTED)  # whose openers nobody has asked for yet
        self.cohorts: Postings[str, Lineage] = Postings()
        self.asides: OrderedDict[str, deque[Aside]] = OrderedDict()  # of no conversation yet, by how they begin
        self.current: dict[str, Lineage] = {}  # the latest line of each conversation
        self.lines = 0
        self.failed_at = 0  # when a request failed last

    def enter(self, line: Lineage) -> None:
        """Make a new line findable."""
        self.lines += 1
        self.heads.add(line.request, line)
        if line.full != line.request:
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
        if line.failed_at:
            self.failed_at = max(self.failed_at, line.failed_at)

    def quotable(self) -> Quotes:
        """What may be quoted: how lines began, what was asked last, the latest answers."""
        while self.unquoted:
            line = self.unquoted.pop()
            if line.opener_raw:
                self.opens(line, normalise(line.opener_raw)[:OPENER])
                line.opener_raw = ""
            if line.asked_raw:
                before, line.asked_text = line.asked_text, normalise(line.asked_raw)[:OPENER]
                line.asked_raw = ""
                if before not in (line.asked_text, line.opener_text):
                    self.quotes.discard(self.quotes.questions, before, line)
                if len(line.asked_text) >= TELLING:
                    self.quotes.add(self.quotes.questions, line.asked_text, line)
        return self.quotes

    def opens(self, line: Lineage, text: str) -> None:
        """The line began with this text, normalised and cut."""
        line.opener_text = text
        if len(text) >= SHORTEST_OPENER:
            self.quotes.add(self.quotes.questions, text, line)

    def begins_aside(self, line: Lineage, text: str) -> None:
        """The line, whose opener is known, began with what may be a side call that came before its conversation."""
        opening = line.opener_text
        asides = self.asides.get(opening)
        if asides is None:
            self.asides[opening] = asides = deque(maxlen=ASIDES)
            if len(self.asides) > ASIDES:
                self.asides.popitem(last=False)
        else:
            self.asides.move_to_end(opening)
        asides.append((line, text[:ASIDE_READ]))

    def is_aside(self, line: Lineage) -> bool:
        """Is that all that the line began with, and not long ago?"""
        return any(line is aside for asides in self.asides.values() for aside, _ in asides)

    def leave(self, line: Lineage) -> None:
        """Forget a line."""
        self.lines -= 1
        self.unhead(line)
        for mark in line.marks:
            self.marks.discard(mark, line)
        for call in line.ids:
            self.ids.discard(call, line)
        self.openers.discard(line.opener, line)
        if line.snippets or not line.thin:  # a side call of a thin line may have been answered
            self._unquote(line)
        if line.cohort is not None:
            self.cohorts.discard(line.cohort, line)
        if self.current.get(line.label) is line:
            del self.current[line.label]

    def unhead(self, line: Lineage) -> None:
        """The line is about to grow."""
        self.heads.discard(line.request, line)
        if line.full != line.request:
            self.heads.discard(line.full, line)

    def relayed(self, line: Lineage, marks: list[int], ids: list[int]) -> None:
        """The line has relayed these; the oldest go when there are too many."""
        if marks:
            line.marks = _appended(line.marks, marks, MARKS, self.marks, line)
        if ids:
            line.ids = _appended(line.ids, ids, IDS, self.ids, line)

    def answered(self, line: Lineage, full: int) -> None:
        """This is the line's whole with the answer to its latest request, whatever it was before."""
        if line.full != line.request:
            self.heads.discard(line.full, line)
        line.full = full
        if full != line.request:
            self.heads.add(full, line)

    def add_snippet(self, line: Lineage, snippet: str) -> None:
        """The beginning of an answer, which may come back as a summary, or quoted by a side call."""
        if snippet in line.snippets:
            return
        self.quotes.add(self.quotes.answers, snippet, line)
        line.snippets += (snippet,)
        if len(line.snippets) > SNIPPETS:
            self.quotes.discard(self.quotes.answers, line.snippets[0], line)
            line.snippets = line.snippets[1:]

    def thin(self, line: Lineage) -> None:
        """Keep only what its next request most likely shows."""
        if len(line.marks) > THIN_MARKS:
            line.marks = _latest(line.marks, self.marks, line)
        if len(line.ids) > THIN_MARKS:
            line.ids = _latest(line.ids, self.ids, line)
        if len(line.points) > 1:
            line.points = line.points[-1:]
            line.offset = line.length - 1
        self._unquote(line)
        line.decided = ()
        line.thin = True

    def _unquote(self, line: Lineage) -> None:
        """Nobody can quote it any more."""
        quotes = self.quotes
        if line.opener_text:
            quotes.discard(quotes.questions, line.opener_text, line)
        if line.asked_text:
            quotes.discard(quotes.questions, line.asked_text, line)
        for snippet in line.snippets:
            quotes.discard(quotes.answers, snippet, line)
        line.opener_raw = line.opener_text = line.asked_raw = line.asked_text = ""
        line.snippets = ()

    def relabel(self, line: Lineage, label: str) -> None:
        """Make the line a conversation of its own."""
        if self.current.get(line.label) is line:
            del self.current[line.label]
        line.label = label
        self.current[label] = line


def _appended(
    held: "array[int]", new: list[int], most: int, index: Postings[int, Lineage], line: Lineage
) -> "array[int]":
    held = extended(held, new)
    for value in new:
        index.add(value, line)
    while len(held) > most:
        gone = held.pop(0)
        if gone not in held:
            index.discard(gone, line)
    return held


def _latest(held: "array[int]", index: Postings[int, Lineage], line: Lineage) -> "array[int]":
    """The latest few; the line is no longer found by the others."""
    kept = held[-THIN_MARKS:]
    for value in held[:-THIN_MARKS]:
        if value not in kept:
            index.discard(value, line)
    return kept
