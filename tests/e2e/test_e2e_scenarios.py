"""Whole days in the gateway's life over sockets: does a conversation start on a fast route, and what does it cost?

ocpool is at its defaults; gateway, ocpool and clients share a scaled clock. The relay's own time is multiplied by the
scale and printed with the figures; it touches no verdict, because ``server-timing`` carries simulated time.
"""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from pool.clock import Clock
from proxy.cli import stage
from proxy.cli.asking import Client
from proxy.cli.calibrating import overhead, relay_overhead
from proxy.cli.figures import quantile
from proxy.simulator.clients import PI
from proxy.simulator.draw import Draw
from proxy.simulator.traces import Conversation
from tests.fakes.campaign import Result, bursts, campaign, steady
from tests.fakes.house import GO, street
from tests.fakes.watched import best_of

SCALE = 240.0  # of the reduced runs
EXACT_SCALE = 120.0  # of the whole ones
ONE, BURST = 1, 3  # the first conversations find an empty pool: that is the warm-up
SMALL = b'{"model":"deepseek-v4.1-flash","stream":true,"max_tokens":8,"messages":[{"role":"user","content":"OK"}]}'


async def played(
    folder: Path, scale: float, traces: dict[int, list[Conversation]], warm_up: int, *settings: str
) -> list[Result]:
    """Each trace in the ``sticky`` world of its seed, all at once: they share the clock and nothing else."""
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        runs = []
        for seed, trace in traces.items():
            home = folder / "-".join((str(seed), *settings))
            home.mkdir()
            at = await stack.enter_async_context(street(home, "sticky", seed=seed, scale=scale, settings=settings))
            runs.append(group.create_task(campaign(trace, at.place, at.gateway, warm_up=warm_up)))
        await asyncio.wait(runs)
    return [run.result() for run in runs]


async def told(folder: Path, scale: float) -> AsyncIterator[str]:
    found = await relay_overhead(folder, 1)
    yield f"relay overhead {found.p50_ms:.2f} ms (p95 {found.p95_ms:.2f}) x scale {scale:g} = "
