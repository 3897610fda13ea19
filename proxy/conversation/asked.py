"""A request as the rules of evidence see it, and what they decide."""

from collections.abc import Callable

from proxy.conversation.body import BodyFacts
from proxy.conversation.content import Content
from proxy.conversation.lineage import IDS, MARKS, Lineage, Step
from proxy.conversation.normalise import normalise
from proxy.conversation.postings import Quoted, Quotes
from proxy.conversation.quoting import OPENER, OPENER_READ
from proxy.conversation.side import looks_aside
from proxy.conversation.transcript import Transcript

MOST_TEXT = 262_144  # characters that are searched for a quote

TOOL_ID = "tool-id"
ANSWER = "answer"
SUMMARY = "summary"
SIDE = "side"
BY_OPENER = "opener"
RETRY = "retry"
COHORT = "cohort"
ALIAS = "alias"
NEW = "new"


class Asked:
    """What is known of a request: what it says, how, in which cohort, and whether its client marked it as a retry.

    ``busy`` tells of a conversation that a client's id names whether a request of it is under way. ``aside``: it could
    be a title or the like, by its shape. ``rivals``: the conversations that relayed equally much of what it repeats,
    where there are several; it belongs to one of them, or is new. ``steps`` are those of the decision, for those who
    ask why. ``text`` is what the first few messages say, normalised, once it was ``read``.
    """

    __slots__ = (
        "_marks",
        "_opening",
        "_quoted",
        "aside",
        "busy",
        "cohort",
        "content",
        "facts",
        "now",
        "retry",
        "rivals",
        "steps",
        "text",
        "transcript",
    )

    def __init__(
        self,
        transcript: Transcript,
        content: Content,
        facts: BodyFacts,
        now: int,
        busy: Callable[[str], bool],
        *,
        cohort: str | None,
        retry: bool,
    ) -> None:
        self.transcript = transcript
        self.content = content
        self.facts = facts
        self.cohort = cohort
        self.retry = retry
        self.now = now
        self.busy = busy
        self.aside = looks_aside(facts)
        self.rivals: frozenset[str] = frozenset()
        self.steps: tuple[Step, ...] = ()
        self.text = ""
        self._marks: frozenset[int] | None = None
        self._opening: str | None = None
        self._quoted: list[Quoted] | None = None

    @property
    def marks(self) -> frozenset[int]:
        """What the newest answers in the request, and their calls, are found by."""
        if self._marks is None:
            said = self.transcript
            self._marks = frozenset(said.marks[-MARKS:]) | frozenset(said.ids[-IDS:])
        return self._marks

    def read(self) -> None:
        """Read the ``text``, which nobody asks for where history decides."""
        if self.text:
            return
        said = self.content.alone
        if said is None:
            self.text = normalise("\n".join(self.content.first_texts())[:MOST_TEXT])
        else:
            self.text = normalise(said[:MOST_TEXT])
            if len(said) <= OPENER_READ:
                self._opening = self.text[:OPENER]

    @property
    def opening(self) -> str:
        """The beginning of the first thing the user said, normalised."""
        if self._opening is None:
            self._opening = normalise(self.content.opener()[:OPENER_READ])[:OPENER]
        return self._opening

    def quoted(self, quotes: Quotes) -> list[Quoted]:
        """The texts that this request contains, with the lines that have them."""
        if self._quoted is None:
            self._quoted = quotes.within(self.text) if len(quotes) else []
        return self._quoted

    def may(self, line: Lineage) -> bool:
        """May the request belong there at all? One in a cohort belongs to a conversation of that cohort only."""
        if self.rivals and line.label not in self.rivals:
            return False
        return self.cohort is None or line.cohort == self.cohort

    def note(self, rule: str, found: str, line: Lineage | None = None) -> None:
        """Remember a step of the decision, for those who ask why."""
        self.steps += ((rule, found, line.label if line is not None else None),)


class Decision:
    """Where a request belongs. ``line`` None: to a new conversation.

    ``grows``: it continues the line; else it is a branch of it, or replaces what it said. ``side``: a side call.
    ``parted``: a new conversation that shares its beginning with this line. ``label``: a new line of this conversation,
    of which so far only these side calls came, ``asides``.
    """

    __slots__ = ("asides", "grows", "label", "line", "parted", "rule", "side")

    def __init__(
        self,
        rule: str,
        line: Lineage | None = None,
        *,
        grows: bool = False,
        side: bool = False,
        parted: Lineage | None = None,
        label: str | None = None,
        asides: tuple[int, ...] = (),
    ) -> None:
        self.rule = rule
        self.line = line
        self.grows = grows
        self.side = side
        self.parted = parted
        self.label = label
        self.asides = asides
