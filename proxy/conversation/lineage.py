"""What is remembered of one line of talk.

A conversation has one line as long as nobody edits, forks or compacts it; lines of one conversation share its label.
Everything here is a keyed hash, a number or a time, except the few texts in ``Lineage``, which never leave memory.
"""

from proxy.conversation.transcript import NO_HASHES, Transcript

Step = tuple[str, str, str | None]  # of a decision: the rule, what it found, the label it is about

POINTS = 256  # messages of a line that are compared
MARKS = 128  # answers of a line, in texts and calls
IDS = 64  # tool-call ids of a line
SNIPPETS = 4


class Lineage:
    """One line of talk in one conversation. Made with every new conversation, so it begins with as little as it can.

    ``length`` counts its messages; ``points`` has the hashes of the latest of them, ``offset`` were forgotten.
    ``request`` is the hash of all up to the latest request, ``full`` of all with its answer, once that was read.
    ``first``: so many messages came before the first answer that we relayed. ``latest`` marks the latest answer,
    ``aside`` that of a side call; ``asides`` tell the latest side calls apart. ``snippets`` are the beginnings of its
    latest answers. ``owned``: a client's own id named the conversation.
    ``failed_at``: when its latest request got no whole answer, 0 else. ``stored``: the archive has heard of it.
    Instants are unix ms.
    """

    __slots__ = (
        "aside",
        "asides",
        "asked_raw",
        "asked_text",
        "began_at",
        "cohort",
        "decided",
        "failed_at",
        "finish",
        "first",
        "full",
        "ids",
        "in_flight",
        "label",
        "last",
        "latest",
        "length",
        "manner",
        "marks",
        "offset",
        "opener",
        "opener_raw",
        "opener_text",
        "owned",
        "points",
        "request",
        "row",
        "scope",
        "seen_at",
        "snippets",
        "stored",
        "stream",
        "thin",
        "tools",
    )

    def __init__(
        self, label: str, scope: str, cohort: str | None, began_at: int, said: Transcript, *, owned: bool
    ) -> None:
        self.label = label
        self.scope = scope
        self.cohort = cohort
        self.began_at = began_at
        self.owned = owned
        self.marks = self.ids = NO_HASHES
        self.manner = self.row = self.in_flight = self.seen_at = self.failed_at = 0
        self.latest: tuple[int, ...] = ()
        self.aside: tuple[int, ...] = ()
        self.asides: tuple[int, ...] = ()
        self.snippets: tuple[str, ...] = ()
        self.decided: tuple[Step, ...] = ()
        self.opener_raw = self.opener_text = self.asked_raw = self.asked_text = ""
        self.tools = self.stream = self.thin = self.stored = False
        self.finish: str | None = None
        self.take(said)
        self.first = self.length

    def __repr__(self) -> str:
        return f"Lineage({self.label!r}, length={self.length})"  # nothing of what was said

    @property
    def answered(self) -> bool:
        """Was the latest request's answer read?"""
        return self.full != self.request

    def take(self, transcript: Transcript) -> None:
        """Hold a request's messages, as far as they are compared."""
        points = transcript.points
        self.length = length = len(points)
        if length <= POINTS:
            self.offset, self.points = 0, points
        else:
            self.offset, self.points = length - POINTS, points[-POINTS:]
        self.request = self.full = points[-1]
        self.last = transcript.last
        self.opener = transcript.opener
