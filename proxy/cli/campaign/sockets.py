"""One seed of each scenario over real sockets, beside the same in virtual time: the two must agree.

The relay, the gateway and the clients run at once on one scaled clock, so that ocpool is at its defaults. Ids are
random there and instants are not quite the same, so that what agrees are shares and quantiles, within stated bounds.
"""

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
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

SCALE: Final = 20.0
COUNT: Final = 14
EVERY_MS: Final = 4 * MINUTE
TURNS: Final = (3, 10)
PEAK_TOKENS: Final = 40_000
FLIP_MS: Final = 25 * MINUTE
# What may lie between the two: a real millisecond is 20 of the clock's, and other ids meet other routes.
P50_SHARE, P95_SHARE, LAG_MS = 0.2, 0.4, 400.0
BAD, CACHE, PROBES, FAILED = 0.10, 0.06, 12, 6


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
    """One scenario both ways."""

    scenario: str
    virtual: Small
    sockets: Small

    @property
    def agrees(self) -> bool:
        """Are all figures within their bounds?"""
        one, other = self.virtual, self.sockets
        return (
            abs(one.p50_ms - other.p50_ms) <= P50_SHARE * one.p50_ms + LAG_MS
            and abs(one.p95_ms - other.p95_ms) <= P95_SHARE * max(one.p95_ms, other.p95_ms) + LAG_MS
            and abs(one.bad - other.bad) <= BAD
            and abs(one.cache - other.cache) <= CACHE
            and abs(one.probes - other.probes) <= PROBES
            and abs(one.failed - other.failed) <= FAILED
        )

    def shown(self) -> list[tuple[str, str]]:
        """The figures in pairs, as text."""
        pairs = [_shown(one) for one in (self.virtual, self.sockets)]
        return list(zip(*pairs, strict=True))

    @staticmethod
    def says() -> str:
        """What was played, and the bounds."""
        return (
            f"{COUNT} conversations, one every 4 minutes, on a clock that runs {SCALE:.0f} times as fast; flips come\n"
            f"after {FLIP_MS / MINUTE:.0f} minutes. They agree when p50 is within {P50_SHARE:.0%} and p95 within\n"
            f"{P95_SHARE:.0%} (and {LAG_MS:.0f} ms, which are {LAG_MS / SCALE:.0f} ms of this machine), bad turns\n"
            f"within {100 * BAD:.0f} points, the cache within {100 * CACHE:.0f}, probes within {PROBES} and failed\n"
            f"turns within {FAILED}. Ids are random over sockets, so that other ids meet other routes."
        )


def _shown(small: Small) -> tuple[str, ...]:
    return (
        f"{small.p50_ms / 1000:.2f} s",
        f"{small.p95_ms / 1000:.2f} s",
        f"{small.bad:.1%}",
        f"{small.cache:.1%}",
        str(small.probes),
        str(small.failed),
    )


def shortened(name: str) -> Scenario:
    """The scenario with its flip within a short play."""
    scenario = scenario_named(name)
    phases = tuple(replace(phase, from_ms=FLIP_MS) if phase.from_ms else phase for phase in scenario.phases)
    return replace(scenario, phases=phases)


def trace(seed: int, count: int = COUNT) -> list[Conversation]:
    """A short trace with real bodies in mind: they are made and sent."""
    return conversations(seed, count, every_ms=EVERY_MS, turns=TURNS, peak_tokens=PEAK_TOKENS, clients=(PI,))


def virtually(name: str, seed: int, count: int = COUNT) -> Small:
    """The short play in virtual time."""
    play = Play(World.of(shortened(name), seed, epoch_ms=EPOCH_MS), Routed(MODEL, seed))
    play.run(trace(seed, count))
    return Small.of(play.turns, len(play.probes))


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
        async with asyncio.TaskGroup() as group:
            for number, one in enumerate(plays.values()):  # not all at one instant: they share this machine
                group.create_task(one.play(trace(seed, count), number * EVERY_MS / len(plays)), name="play")
    return [
        Repeat(name, virtually(name, seed, count), Small.of(one.turns, sum(record.probe for record in one.gateway.log)))
        for name, one in plays.items()
    ]


class _Sockets:
    """Plays conversations against a place, as `proxy.simulator.played` does in virtual time."""

    def __init__(self, gateway: Gateway, place: Place, clock: Clock) -> None:
        self.gateway = gateway
        self.turns: list[Turned] = []
        self._place = place
        self._clock = clock
        self._began_ms = 0.0

    async def play(self, conversations: Sequence[Conversation], after_ms: float) -> None:
        """Play them, the first that long from now."""
        self._began_ms = self._clock.mono_ms() + after_ms
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
