"""The measurements, each of one target: figures by name."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import count
from statistics import median, quantiles

from tests.bench import asking
from tests.bench.load import Client, Counts, Crowd, Requests, Stream
from tests.bench.machine import cpu_seconds, resident_bytes
from tests.bench.targets import Target

CONNECTIONS = 64
STREAMS = 100
EVERY_MS = 10
OPEN_STREAMS = 300
FILLING_STREAMS = 100
UPLOADS = 5
SECONDS = 0.9
_SETTLING_S = 0.25

Figures = dict[str, float]
Measure = Callable[[Target], Awaitable[Figures]]

_numbers = count(1)


async def _pace(target: Target, counts: Counts, what: str) -> Figures:
    """How many of ``what`` are done in a second, and the proxy's CPU microseconds for each."""
    pid = target.pid
    await asyncio.sleep(_SETTLING_S)
    counts.timed = True
    done, spent, began = counts.done, cpu_seconds(pid) if pid else 0.0, time.perf_counter()
    await asyncio.sleep(SECONDS)
    done, took = counts.done - done, time.perf_counter() - began
    spent = cpu_seconds(pid) - spent if pid else 0.0
    counts.timed = False
    counts.check()
    figures = {f"{what}s_per_s": done / took}
    if pid and done:
        figures[f"cpu_us_per_{what}"] = spent / done * 1e6
    return figures


async def _asked(target: Target, request: Callable[[], bytes], what: str) -> Figures:
    counts = Counts()

    def made() -> Client:
        return Requests(counts, request)

    async with Crowd(CONNECTIONS, made, target.port, target.context):
        return await _pace(target, counts, what)


async def requests(target: Target) -> Figures:
    """Small requests of one conversation."""
    same = asking.small()
    return await _asked(target, lambda: same, "request")


async def openings(target: Target) -> Figures:
    """A new conversation in every request, told by its content alone."""
    return await _asked(target, lambda: asking.opening(next(_numbers)), "opening")


async def events(target: Target) -> Figures:
    """Paced streams: what an event costs, and how long it is on its way from the upstream to the client."""
    counts, request = Counts(), asking.stream(EVERY_MS)

    def made() -> Client:
        return Stream(counts, request)

    async with Crowd(STREAMS, made, target.port, target.context, spread_s=EVERY_MS / 1000):
        figures = await _pace(target, counts, "event")
    if len(counts.transit_ns) > 1:
        cuts = quantiles(counts.transit_ns, n=100)
        figures |= {"transit_p50_us": cuts[49] / 1000, "transit_p99_us": cuts[98] / 1000}
    return figures


async def _quiet(pid: int) -> None:
    """Wait until a process has nothing to do, two seconds at most: it goes on loading after it is ready."""
    for _ in range(20):
        spent = cpu_seconds(pid)
        await asyncio.sleep(0.1)
        if cpu_seconds(pid) - spent < 0.01:
            return


async def memory(target: Target) -> Figures:
    """What open streams hold, for 1,000 of them. Some fill first what the start has left free."""
    assert target.pid is not None
    counts, request = Counts(), asking.stream(1000)

    def made() -> Client:
        return Stream(counts, request)

    await _quiet(target.pid)
    async with Crowd(FILLING_STREAMS, made, target.port, target.context):
        await asyncio.sleep(0.5)
        before = resident_bytes(target.pid)
        async with Crowd(OPEN_STREAMS, made, target.port, target.context, spread_s=0.5):
            await asyncio.sleep(1.1)  # an event has come on each
            counts.check()
            grown = resident_bytes(target.pid) - before
    if counts.opened < FILLING_STREAMS + OPEN_STREAMS:
        return {}
    return {"mib_per_1000_streams": grown / OPEN_STREAMS * 1000 / 2**20}


async def _large(target: Target, path: bytes) -> float:
    """Milliseconds from the first byte of a request with a large body to the end of its answer."""
    counts, request, took = Counts(), asking.large(path), []
    began = time.perf_counter()

    def next_request() -> bytes:
        nonlocal began
        now = time.perf_counter()
        if counts.done:
            took.append((now - began) * 1000)
        began = now
        return request

    def made() -> Client:
        return Requests(counts, next_request)

    async with Crowd(1, made, target.port, target.context):
        deadline = began + 10
        while len(took) <= UPLOADS and time.perf_counter() < deadline:
            await asyncio.sleep(0.01)
        counts.check()
    return median(took[1:])


async def large_bodies(target: Target) -> Figures:
    """A body of 10 MiB, on a path that is routed and on one that is not."""
    return {
        "routed_10mib_ms": await _large(target, asking.COMPLETIONS),
        "unrouted_10mib_ms": await _large(target, asking.MESSAGES),
    }
