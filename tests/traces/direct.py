"""The resolver, called as the daemon calls it, at the instants at which a trace says that things happen."""

from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.traces.play import Clock, Reply, Request, Timed, play
from tests.traces.score import Judged
from tests.traces.wire import Wire, content_of, wire

SECRET = b"tests/traces: one installation  "


class Resolver(Protocol):
    """What is judged: a conversation's label for every request."""

    def begin(self, sent: Wire, now: int) -> tuple[str, str, Any]:
        """The label, the rule that decided, and what to give back at the end."""

    def end(self, token: Any, reply: Reply, now: int) -> None:
        """The answer is over."""


@dataclass(slots=True)
class Played:
    """One request and where the resolver put it."""

    request: Request
    at: int
    label: str
    match: str

    def judged(self, with_ids: bool) -> Judged:
        """As this lane is to be judged; across credentials nothing is ever right."""
        one = self.request
        right = one.truth if with_ids or one.content is None else one.content
        scope = f"{one.key}/{right}"
        return Judged(scope, self.label, content_of(one), f"{one.kind} {self.match}")


@dataclass
class Lane:
    """One resolver that is told of everything, and what it said."""

    resolver: Resolver
    with_ids: bool
    played: list[Played] = field(default_factory=list)


class _Lanes:
    def __init__(self, lanes: list[Lane]) -> None:
        self._lanes = lanes

    def begin(self, request: Request, now: int) -> list[Any]:
        tokens = []
        for lane in self._lanes:
            label, match, token = lane.resolver.begin(wire(request, lane.with_ids), now)
            lane.played.append(Played(request, now, label, match))
            tokens.append(token)
        return tokens

    def end(self, token: list[Any], reply: Reply, now: int) -> None:
        for lane, mine in zip(self._lanes, token, strict=True):
            lane.resolver.end(mine, reply, now)


def replay(scripts: list[Timed], clock: Clock, *lanes: Lane) -> None:
    """Play a row to its end before every lane at once."""
    play(scripts, clock, _Lanes(list(lanes)))
