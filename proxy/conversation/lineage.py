"""What is remembered of one line of talk.

A conversation has one line as long as nobody edits, forks or compacts it; lines of one conversation share its label.
Everything here is a keyed hash, a number or a time, except the few texts in ``Lineage``, which never leave memory.
"""

from array import array
from dataclasses import dataclass, field

from proxy.conversation.quoting import Pair
from proxy.conversation.transcript import Transcript

POINTS = 256  # messages of a line that are compared
MARKS = 128  # answers of a line, in texts and calls
IDS = 64  # tool-call ids of a line
SNIPPETS = 4


@dataclass(slots=True, eq=False)
class Lineage:
    """One line of talk in one conversation.

    ``length`` counts its messages; ``points`` has the hashes of the latest of them, ``offset`` were forgotten.
    ``request`` is the hash of all up to the latest request, ``full`` of all with its answer, once that was read.
    ``first``: so many messages came before the first answer that we relayed. ``latest`` marks the latest answer,
    ``aside`` that of a side call; ``asides`` tell the latest side calls apart. ``snippets`` are the beginnings of its
    latest answers. ``owned``: a client's own id named the conversation. ``failed_at``: when its latest
    request got no whole answer, 0 else. Instants are unix ms.
    """

    label: str
    scope: str
    cohort: str | None
    began_at: int
    owned: bool = False
    points: "array[int]" = field(default_factory=lambda: array("Q"))
    offset: int = 0
    length: int = 0
    first: int = 0
    request: int = 0
    full: int = 0
    last: int = 0
    marks: "array[int]" = field(default_factory=lambda: array("Q"))
    ids: "array[int]" = field(default_factory=lambda: array("Q"))
    latest: tuple[int, ...] = ()
    aside: tuple[int, ...] = ()
    opener: int = 0
    opener_raw: str = field(default="", repr=False)
    opener_text: str = field(default="", repr=False)
    opener_word: Pair = field(default=("", ""), repr=False)
    asked_raw: str = field(default="", repr=False)
    asked_text: str = field(default="", repr=False)
    asked_word: Pair = field(default=("", ""), repr=False)
    snippets: list[str] = field(default_factory=list, repr=False)
    asides: tuple[int, ...] = ()
    tools: bool = False
    stream: bool = False
    manner: int = 0
    finish: str | None = None
    in_flight: int = 0
    seen_at: int = 0
    failed_at: int = 0
    thin: bool = False
    changed: bool = True
    row: int = 0
    decided: tuple[tuple[str, str, str | None], ...] = ()

    @property
    def answered(self) -> bool:
        """Was the latest request's answer read?"""
        return self.full != self.request

    def take(self, transcript: Transcript) -> None:
        """Hold a request's messages, as far as they are compared."""
        self.length = len(transcript)
        self.offset = max(0, self.length - POINTS)
        self.points = transcript.points[self.offset :]
        self.request = self.full = transcript.points[-1]
        self.last = transcript.last
        self.opener = transcript.opener
