"""What a policy of session ids is to whoever plays conversations: it names ids, probes, and hears what came of it.

No sockets and no clock: instants are ms of the world, and every call returns at once. The baselines are such policies;
what is compared with them is made one by its caller.
"""

from typing import NamedTuple, Protocol

from proxy.simulator.world import Plan


class Asked(NamedTuple):
    """A turn that is about to be sent. ``session`` is the client's own, ``turn`` counts from 0.

    ``prompt_tokens`` is about what its prompt holds, ``body_bytes`` about what it is long.
    """

    session: str
    turn: int
    model: str
    prompt_tokens: int
    body_bytes: int


class Probe(NamedTuple):
    """A request that a policy wants to make for itself. ``again`` is its own mark, for a spare that it verifies."""

    session: str
    max_tokens: int
    stream: bool
    timeout_ms: float
    again: bool = False


class Answer(NamedTuple):
    """What came of an attempt or a probe, as its client saw it.

    Attributes:
        plan: What the world did; a policy may read of it what a client could.
        status: None: no head came.
        headers: Whether the answer told about itself (``server-timing``, who served it).
        head_ms, first_ms, last_ms: From the sending to the head, the first and the last token; None: it never came.
        complete: The answer came to its end.
        took_ms: Until nothing more was to come, or the client gave up.
    """

    plan: Plan
    status: int | None
    headers: bool
    head_ms: float | None
    first_ms: float | None
    last_ms: float | None
    complete: bool
    took_ms: float

    @property
    def upstream_ms(self) -> float | None:
        """What ``server-timing`` told."""
        return self.plan.upstream_ms if self.headers and self.status is not None else None

    @property
    def tokens_per_s(self) -> float | None:
        """Completion tokens over the time from the first to the last; None for fewer than two."""
        tokens = self.plan.completion_tokens
        if self.first_ms is None or self.last_ms is None or tokens < 2 or self.last_ms <= self.first_ms:
            return None
        return (tokens - 1) / (self.last_ms - self.first_ms) * 1000

    @property
    def retry_after_ms(self) -> float | None:
        """What a refusal told."""
        refusal = self.plan.refusal
        told = refusal.retry_after_s if refusal is not None else None
        return told * 1000.0 if told is not None else None


class Policy(Protocol):
    """One way of choosing session ids, for all conversations of one user, which are of one ``model``."""

    model: str

    def before(self, asked: Asked, now: float) -> Probe | None:
        """A probe that this turn has to wait for; asked again after each, until None."""

    def session(self, asked: Asked, now: float) -> str:
        """The id that it goes out on."""

    def again(self, asked: Asked, session: str, answer: Answer, now: float) -> str | None:
        """After a refusal: the id of another attempt that the client does not see; None: it gets the refusal."""

    def headed(self, asked: Asked, session: str, answer: Answer, now: float) -> None:
        """An attempt's head is there."""

    def ended(self, asked: Asked, session: str, answer: Answer, now: float) -> None:
        """An attempt is over, and its answer or refusal was the client's."""

    def probe(self, now: float) -> Probe | None:
        """A probe to make in the background; asked every second, and a little after each."""

    def probed(self, probe: Probe, answer: Answer, now: float) -> None:
        """What came of a probe."""
