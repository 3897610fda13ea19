"""The words of a trace: what a client sends, what the model says, and who plays them in which order.

A script is a generator that stands for one program at a client: it yields ``Ask``, ``Wait``, ``Beside`` or ``All``
and is resumed when that is over. ``play`` runs many of them in virtual time, so that what happens at once in life
happens at once here: the answer of one request comes after the beginning of others.
"""

import heapq
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol


class Call(NamedTuple):
    """A tool call as the model made it; ``arguments`` is its own spelling of the JSON."""

    id: str
    name: str
    arguments: str


class Reply(NamedTuple):
    """What came back. ``complete`` is False when the client hung up; ``failed``: nothing came at all."""

    text: str
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    complete: bool = True
    failed: bool = False

    @property
    def finish(self) -> str:
        return "tool_calls" if self.calls else "stop"


@dataclass(slots=True)
class Request:
    """One request, and to which conversation it belongs.

    ``fields`` and ``body`` are without ids; ``id_fields``, ``id_body`` (merged into the body, objects key by key) and
    ``id_name`` (the name in the path) are what the client says of its session. ``truth`` is the conversation that its
    ids name, ``content`` the one that its content belongs to, where that is another. ``loose``: sent without the
    ids that its conversation's other requests have. ``open``: no rule says where it belongs; it is not judged.
    """

    client: str
    kind: str
    key: str
    path: str
    fields: list[tuple[str, str]]
    body: dict[str, Any]
    truth: str
    reply: Reply
    takes_ms: int
    content: str | None = None
    id_fields: list[tuple[str, str]] = field(default_factory=list)
    id_body: dict[str, Any] = field(default_factory=dict)
    id_name: str | None = None
    loose: bool = False
    open: bool = False


class Ask(NamedTuple):
    """Send this; resumed with the ``Reply``."""

    request: Request


class Wait(NamedTuple):
    """Do nothing for so long."""

    ms: int


class Beside(NamedTuple):
    """Run a script beside this one; resumed at once."""

    script: "Script"


class All(NamedTuple):
    """Run scripts at once; resumed when the last is over."""

    scripts: list["Script"]


Script = Generator[Ask | Wait | Beside | All, Any, Any]


class Timed(NamedTuple):
    """A script and when it begins."""

    at: int
    script: Script


@dataclass(slots=True)
class Clock:
    """The time that scripts may read; the player moves it."""

    now: int


class Service(Protocol):
    """What answers: told when a request begins and when it ends."""

    def begin(self, request: Request, now: int) -> Any:
        """The request has arrived; what is returned comes back at its end."""

    def end(self, token: Any, reply: Reply, now: int) -> None:
        """The request is over."""


class _Run:
    """One script under way, and who waits for it."""

    def __init__(self, script: Script, over: Callable[[], None]) -> None:
        self.script = script
        self.over = over


class _Player:
    def __init__(self, clock: Clock, service: Service) -> None:
        self._clock = clock
        self._service = service
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, when: int, what: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._due, (when, self._count, what))

    def run(self) -> None:
        while self._due:
            self._clock.now, _, what = heapq.heappop(self._due)
            what()

    def step(self, run: _Run, value: Any = None) -> None:
        """Go on with a script until it has to wait."""
        try:
            wish = run.script.send(value)
        except StopIteration:
            run.over()
            return
        now = self._clock.now
        match wish:
            case Ask(request):
                token = self._service.begin(request, now)
                self.at(now + request.takes_ms, lambda: self._answer(run, token, request.reply))
            case Wait(ms):
                self.at(now + ms, lambda: self.step(run))
            case Beside(script):
                self.at(now, lambda: self.step(_Run(script, _nothing)))
                self.at(now, lambda: self.step(run))
            case All(scripts):
                self._all(run, scripts)

    def _answer(self, run: _Run, token: Any, reply: Reply) -> None:
        self._service.end(token, reply, self._clock.now)
        self.step(run, reply)

    def _all(self, run: _Run, scripts: list[Script]) -> None:
        left = len(scripts)

        def over() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                self.step(run)

        for script in scripts:
            self.at(self._clock.now, lambda script=script: self.step(_Run(script, over)))


def play(scripts: Iterable[Timed], clock: Clock, service: Service) -> None:
    """Run every script to its end, in the order in which things happen."""
    player = _Player(clock, service)
    for at, script in scripts:
        player.at(at, lambda script=script: player.step(_Run(script, _nothing)))
    player.run()


def _nothing() -> None:
    pass
