"""The comparison: two scenarios, each played direct and through ocpool, all at once on one scaled clock."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pool.clock import Clock
from proxy.cli import figures, stage
from proxy.cli.calibrating import Overhead, relay_overhead
from proxy.cli.figures import Arm, Effect
from proxy.cli.playing import Player, match
from proxy.cli.stage import Change, Place
from proxy.serve import Service
from proxy.simulator.clients import PI
from proxy.simulator.scenarios import SCENARIOS
from proxy.simulator.server import Gateway
from proxy.simulator.traces import Conversation, conversations

SHOWN: Final = ("sticky", "balanced")
CONVERSATIONS: Final = 16
EVERY_MS: Final = 45_000.0
TURNS: Final = (2, 5)
_TICK_S: Final = 0.1

Moved = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was played and what came out. ``warm_up``, ``changes`` and ``says`` are by scenario."""

    scale: float
    seed: int
    simulated_ms: float
    conversations: int
    overhead: Overhead
    says: dict[str, str]
    changes: dict[str, list[Change]]
    warm_up: dict[str, int]
    arms: list[Arm]
    effects: list[Effect]


@dataclass(slots=True)
class _Arm:
    """One way of playing one scenario, while it is played."""

    gateway: Gateway
    service: Service | None
    player: Player


async def compare(scale: float, seed: int, folder: Path, moved: Moved) -> Comparison:
    """Measure the relay, play everything, and count. ``moved`` is told now and then which share of turns is done."""
    calibration = folder / "calibration"
    calibration.mkdir()
    overhead = await relay_overhead(calibration, seed)
    clock = Clock(scale)
    trace = conversations(seed, CONVERSATIONS, every_ms=EVERY_MS, turns=TURNS, clients=(PI,))
    began_ms = clock.mono_ms()
    arms = await _played(trace, clock, seed, folder, moved)
    simulated_ms = clock.mono_ms() - began_ms
    warm_up = {name: figures.warm_up_of(arms[name, True].player.played) for name in SHOWN}
    counted = {key: _counted(*key, one, warm_up[key[0]]) for key, one in arms.items()}
    return Comparison(
        scale=scale,
        seed=seed,
        simulated_ms=simulated_ms,
        conversations=len(trace),
        overhead=overhead,
        says={name: SCENARIOS[name].says for name in SHOWN},
        changes={name: _changes(arms[name, True]) for name in SHOWN},
        warm_up=warm_up,
        arms=list(counted.values()),
        effects=[
            figures.effect(
                counted[name, False],
                counted[name, True],
                arms[name, False].player.played,
                arms[name, True].player.played,
                warm_up[name],
            )
            for name in SHOWN
        ],
    )


async def _played(
    trace: list[Conversation], clock: Clock, seed: int, folder: Path, moved: Moved
) -> dict[tuple[str, bool], _Arm]:
    """Every scenario direct (False) and through ocpool (True), each before a gateway of its own with the same world."""
    arms: dict[tuple[str, bool], _Arm] = {}
    async with AsyncExitStack() as stack:
        for name in SHOWN:
            for through in (False, True):
                gateway = await stack.enter_async_context(stage.gateway(name, seed, clock))
                service = None
                if through:
                    home = folder / name
                    home.mkdir()
                    service = await stack.enter_async_context(stage.proxy(gateway.url, home, clock))
                place = stage.place_of(service) if service is not None else Place(stage.LOOPBACK, gateway.port)
                arms[name, through] = _Arm(gateway, service, Player(place, clock))
        total = len(arms) * sum(len(conversation.turns) for conversation in trace)
        async with asyncio.TaskGroup() as group:
            for one in arms.values():
                group.create_task(_play(one, trace), name="arm")
            while (done := sum(len(one.player.played) for one in arms.values())) < total:
                moved(done / total)
                await asyncio.sleep(_TICK_S)
        moved(1.0)
    return arms


async def _play(one: _Arm, trace: list[Conversation]) -> None:
    await one.player.play(trace)
    match(one.player.played, one.gateway.log)


def _counted(name: str, through: bool, one: _Arm, warm_up: int) -> Arm:
    return figures.arm(name, "ocpool" if through else "direct", one.player.played, one.gateway.log, warm_up)


def _changes(one: _Arm) -> list[Change]:
    daemon = one.service.daemon if one.service is not None else None
    return stage.changed(daemon.loaded) if daemon is not None and daemon.loaded is not None else []
