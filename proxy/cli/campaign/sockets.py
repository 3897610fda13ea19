"""One seed of each scenario over real sockets, beside the same in virtual time: the two must agree.

The relay, the gateway and the clients run at once on one scaled clock, so that ocpool is at its defaults. Ids are
random there and instants are not quite the same, so that what agrees are shares and quantiles, within stated bounds.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Final

from pool.clock import Clock
from proxy.cli import stage
from proxy.cli.asking import Client
from proxy.cli.campaign.days import EPOCH_MS, MODEL
from proxy.cli.campaign.routed import Routed
from proxy.cli.figures import quantile
from proxy.cli.playing import BASE_PATH
from proxy.cli.stage import Place
from proxy.simulator.clients import PI, Refused
from proxy.simulator.played import Play, Turned
from proxy.simulator.record import Record
from proxy.simulator.scenarios import MINUTE, Scenario, scenario_named
from proxy.simulator.server import Gateway
from proxy.simulator.traces import Conversation, conversations
from proxy.simulator.world import World

SCALE: Final = 10.0
COUNT: Final = 14
EVERY_MS: Final = 4 * MINUTE
TURNS: Final = (3, 10)
PEAK_TOKENS: Final = 40_000
FLIP_MS: Final = 25 * MINUTE
DRAWS: Final = 64  # of ids in virtual time: over sockets they are chance's own
LATER_MS: Final = 370.0  # and each begins so much later than the one before
LOOK_S: Final = 0.02  # how often it is looked whether this machine keeps up
# What may lie between the two besides: a real millisecond is 10 of the clock's.
WAITS, LAG_MS = 0.15, 400.0
BAD, CACHE, PROBES, FAILED = 0.05, 0.04, 5, 4


@dataclass(frozen=True, slots=True)
class Small:
    """The figures of a short play."""

    p50_ms: float
    p95_ms: float
    bad: float
    cache: float
    probes: int
    failed: int

    @classmethod
    def of(cls, turns: Sequence[Turned], probes: int) -> "Small":
        """Of the turns as their clients saw them."""
        served = [turn for turn in turns if turn.served]
        waits = [turn.ttfb_ms for turn in served]
        return cls(
            quantile(waits, 0.5),
            quantile(waits, 0.95),
            sum(turn.bad for turn in served) / max(1, len(served)),
            sum(turn.cached_tokens for turn in served) / max(1, sum(turn.prompt_tokens for turn in served)),
            probes,
            len(turns) - len(served),
        )


@dataclass(frozen=True, slots=True)
class Repeat:
    """One scenario both ways: in virtual time with several draws of ids, and over sockets with one of chance's own.

    ``late_ms``: by how much this machine was late at most, in 95 of 100 looks and in all: real ms, each of which is
    ``SCALE`` of the clock's.
    """

    scenario: str
    virtual: tuple[Small, ...]
    sockets: Small
    late_ms: tuple[float, float] = (0.0, 0.0)

    @property
    def agrees(self) -> bool:
        """Is every figure where those of virtual time are, but for what a loaded machine adds?"""
        return all(
            min(figures) - slack <= figure <= max(figures) + slack
            for figure, slack, *figures in zip(
                astuple(self.sockets), _slacks(self.virtual), *(astuple(one) for one in self.virtual), strict=True
            )
        )

    def shown(self) -> list[str]:
        """The figures, the range in virtual time beside what it was over sockets."""
        return [
            f"{_span([text(one) for one in figures], figures)} / {text(figure)}"
            for text, figure, *figures in zip(
                _TEXTS, astuple(self.sockets), *(astuple(one) for one in self.virtual), strict=True
            )
        ]

    def told_late(self) -> str:
        """How well this machine kept up."""
        usual, worst = self.late_ms
        return f"it was late by {usual:.1f} ms at most in 95 of 100 looks, by {worst:.0f} ms at worst"

    def says(self) -> str:
        """What was played, and the bounds."""
        return (
            f"{COUNT} conversations, one every 4 minutes, on a clock that runs {SCALE:.0f} times as fast; flips come\n"
            f"after {FLIP_MS / MINUTE:.0f} minutes. Ids are random over sockets and instants a little late, so that\n"
            f"virtual time is played with {DRAWS} draws of both: *least to most / over sockets*. They agree when\n"
            f"what came over sockets lies between, give or take {WAITS:.0%} and {LAG_MS:.0f} ms of waits (which are\n"
            f"{LAG_MS / SCALE:.0f} ms of this machine), {100 * BAD:.0f} points of bad turns, {100 * CACHE:.0f} of the\n"
            f"cache, {PROBES} probes and {FAILED} failed turns. The waits are only as good as the machine is quiet:\n"
            f"{self.told_late()}."
        )


def _slacks(virtual: Sequence[Small]) -> tuple[float, ...]:
    highest = [max(one) for one in zip(*(astuple(small) for small in virtual), strict=True)]
    return (WAITS * highest[0] + LAG_MS, WAITS * highest[1] + LAG_MS, BAD, CACHE, PROBES, FAILED)


def _span(texts: Sequence[str], figures: Sequence[float]) -> str:
    low, high = texts[figures.index(min(figures))], texts[figures.index(max(figures))]
    return low if low == high else f"{low} to {high}"


def _as_seconds(ms: float) -> str:
    return f"{ms / 1000:.2f} s"


_TEXTS: Final[tuple[Callable[[float], str], ...]] = (
    _as_seconds,
    _as_seconds,
    "{:.1%}".format,
    "{:.1%}".format,
    "{:.0f}".format,
    "{:.0f}".format,
)


def shortened(name: str) -> Scenario:
    """The scenario with its flip within a short play."""
    scenario = scenario_named(name)
    phases = tuple(replace(phase, from_ms=FLIP_MS) if phase.from_ms else phase for phase in scenario.phases)
    return replace(scenario, phases=phases)


def trace(seed: int, count: int = COUNT) -> list[Conversation]:
    """A short trace with real bodies in mind: they are made and sent."""
    return conversations(seed, count, every_ms=EVERY_MS, turns=TURNS, peak_tokens=PEAK_TOKENS, clients=(PI,))


def virtually(name: str, seed: int, count: int = COUNT, draws: int = DRAWS) -> tuple[Small, ...]:
    """The short play in virtual time, with several draws of ids and of instants.

    What changes with time is drawn anew every quarter of a second, and over sockets no request is so punctual.
    """
    found = []
    for draw in range(draws):
        play = Play(World.of(shortened(name), seed, epoch_ms=EPOCH_MS), Routed(MODEL, draw))
        play.run(replace(one, start_ms=one.start_ms + draw * LATER_MS) for one in trace(seed, count))
        found.append(Small.of(play.turns, len(play.probes)))
    return tuple(found)


async def repeats(
    names: Iterable[str], seed: int, folder: Path, *, scale: float = SCALE, count: int = COUNT
) -> list[Repeat]:
    """Every scenario over sockets, all at once, and in virtual time."""
    clock = Clock(scale)
    plays: dict[str, _Sockets] = {}
    async with AsyncExitStack() as stack:
        for name in names:
            home = folder / name
            home.mkdir()
            gateway = await stack.enter_async_context(stage.gateway(shortened(name), seed, clock))
            service = await stack.enter_async_context(stage.proxy(gateway.url, home, clock))
            plays[name] = _Sockets(gateway, stage.place_of(service), clock)
        lateness: list[float] = []
        async with asyncio.TaskGroup() as beside:
            watch = beside.create_task(_watch(lateness), name="watch")
            async with asyncio.TaskGroup() as group:
                for number, one in enumerate(plays.values()):  # not all at one instant: they share this machine
                    group.create_task(one.play(trace(seed, count), number * EVERY_MS / len(plays)), name="play")
            watch.cancel()
    late_ms = quantile(lateness, 0.95), max(lateness, default=0.0)
    return [Repeat(name, virtually(name, seed, count), one.small, late_ms) for name, one in plays.items()]


async def _watch(lateness: list[float]) -> None:
    """How late the event loop comes back to what it was to do, in real ms."""
    clock = Clock()
    while True:
        due_ms = clock.mono_ms() + LOOK_S * 1000
        await asyncio.sleep(LOOK_S)
        lateness.append(clock.mono_ms() - due_ms)


class _Sockets:
    """Plays conversations against a place, as `proxy.simulator.played` does in virtual time."""

    def __init__(self, gateway: Gateway, place: Place, clock: Clock) -> None:
        self.gateway = gateway
        self.turns: list[Turned] = []
        self._place = place
        self._clock = clock
        self._began_ms = 0.0

    @property
    def small(self) -> Small:
        """Its figures."""
        return Small.of(self.turns, sum(record.probe for record in self.gateway.log))

    async def play(self, conversations: Sequence[Conversation], after_ms: float) -> None:
        """Play them, the first that long from now."""
        await self._clock.sleep(after_ms)
        self._began_ms = self._clock.mono_ms()
        self.gateway.world.epoch_ms = float(self._clock.wall_ms())  # its flips and windows are counted from here
        async with asyncio.TaskGroup() as group:
            for conversation in conversations:
                group.create_task(self._converse(conversation), name=f"conversation {conversation.number}")

    async def _converse(self, conversation: Conversation) -> None:
        client = Client(self._place, self._clock)
        at_ms = conversation.start_ms
        try:
            for number in range(len(conversation.turns)):
                await self._clock.sleep(max(0.0, self._began_ms + at_ms - self._clock.mono_ms()))
                turned = await self._turn(client, conversation, number)
                self.turns.append(turned)
                if number + 1 < len(conversation.turns):
                    turn = conversation.turns[number + 1]
                    pause_ms = conversation.waits_ms(number + 1) if turned.served else turn.pause_ms
                    at_ms = self._clock.mono_ms() - self._began_ms + pause_ms
        finally:
            client.close()

    async def _turn(self, client: Client, conversation: Conversation, number: int) -> Turned:
        call = conversation.call(number)
        name = hashlib.sha256(call.body).hexdigest()
        began = self._clock.mono_ms()
        turned = Turned(conversation.number, number, began - self._began_ms)
        while True:
            asked = self._clock.mono_ms()
            answer = await client.ask(BASE_PATH + call.path, call.fields, call.body)
            turned.attempts += 1
            record = self._record(name)
            turned.ttfb_ms = asked - began + answer.ttfb_ms
            turned.served = answer.status == 200 and answer.complete and record is not None and record.fault is None
            if turned.served and record is not None:
                turned.bad, turned.prompt_tokens, turned.cached_tokens = (
                    record.bad,
                    record.prompt_tokens,
                    record.cached_tokens,
                )
                return turned
            told = answer.fields.get("retry-after")
            error = record.error if record is not None and record.error is not None else ""
            status = answer.status if answer.status >= 400 else None
            wait_ms = conversation.client.wait_ms(
                turned.attempts, Refused(status, float(told) if told else None, error)
            )
            if wait_ms is None:
                return turned
            await self._clock.sleep(wait_ms)

    def _record(self, body_sha256: str) -> Record | None:
        """What the gateway wrote down about the last attempt with this body."""
        for record in reversed(self.gateway.log):
            if record.body_sha256 == body_sha256:
                return record
        return None
