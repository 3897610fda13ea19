"""What the relay itself costs, measured before a comparison: on real time, because a scaled clock multiplies it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from pool.clock import Clock
from proxy.cli import stage
from proxy.cli.asking import Answer, Client
from proxy.cli.figures import quantile
from proxy.cli.playing import BASE_PATH
from proxy.simulator.clients import PI
from proxy.simulator.draw import Draw
from proxy.simulator.faults import Behaviour
from proxy.simulator.knobs import Knobs
from proxy.simulator.server import Gateway

REQUESTS = 80
_WARMING = 8
_QUICK = Behaviour(gateway_ms=1, upstream_ms=3, first_token_ms=1, tokens=4, tokens_per_s=4_000)
_BODY = {"model": "deepseek-v4.1-flash", "stream": True, "tools": [], "messages": [{"role": "user", "content": "OK"}]}


@dataclass(frozen=True, slots=True)
class Overhead:
    """What ocpool adds to the time to first byte, in real ms: its median and its 95th percentile."""

    p50_ms: float
    p95_ms: float
    requests: int


async def relay_overhead(folder: Path, seed: int, requests: int = REQUESTS) -> Overhead:
    """Ask the same gateway direct and through ocpool by turns, at scale 1.

    A request's excess is the client's time to first byte less the gateway's own for it; the overhead is the excess
    through ocpool less the median excess without.
    """
    clock = Clock()
    excess: dict[bool, list[float]] = {False: [], True: []}
    async with stage.gateway("balanced", seed, clock) as gateway:
        gateway.knobs = Knobs(every=_QUICK)
        async with stage.proxy(gateway.url, folder, clock) as service:
            there = {False: stage.Place(stage.LOOPBACK, gateway.port), True: stage.place_of(service)}
            clients = {through: Client(place, clock) for through, place in there.items()}
            for number in range(requests + _WARMING):
                for through, client in clients.items():
                    answer = await _one(client, number)
                    if number >= _WARMING:
                        excess[through].append(answer.ttfb_ms - own_ttfb(gateway))
            for client in clients.values():
                client.close()
    return overhead(excess[False], excess[True])


def overhead(direct: Sequence[float], through: Sequence[float]) -> Overhead:
    """The overhead from the excess of each request, direct and through ocpool."""
    usual = quantile(direct, 0.5)
    added = [ms - usual for ms in through]
    return Overhead(max(0.0, quantile(added, 0.5)), max(0.0, quantile(added, 0.95)), len(added))


def own_ttfb(gateway: Gateway) -> float:
    """The gateway's own time to first byte for the request it was sent last."""
    return gateway.log[-1].ttfb_ms or 0.0


async def _one(client: Client, number: int) -> Answer:
    session = PI.session(Draw.about("calibration", number), 1_796_000_000_000)
    body = orjson.dumps(_BODY)
    return await client.ask(f"{BASE_PATH}/chat/completions", PI.fields(session, "sk-simulated", ""), body)
