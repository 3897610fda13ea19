"""Many conversations on a scaled clock over sockets, judged by the gateway's own log alone.

It knows a place to send requests to and the gateway behind it; what stands between them is none of its business.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pool.clock import Clock
from proxy.cli.figures import quantile
from proxy.cli.playing import Played, Player, match
from proxy.cli.stage import Place
from proxy.simulator.clients import PI
from proxy.simulator.record import Record
from proxy.simulator.server import Gateway
from proxy.simulator.traces import Conversation, conversations

MINUTE = 60_000.0
FAST = frozenset({"native-1", "native-2"})  # the endpoints that answer in a second or two


@dataclass(frozen=True)
class Result:
    """What came of it.

    ``starts`` are the first turns after warm-up. ``lags_ms`` is how long each turn took to reach the gateway.
    """

    starts: list[Played]
    turns: list[Played]
    lags_ms: list[float]
    probes: list[Record]

    @property
    def fast(self) -> int:
        return sum(one.record is not None and one.record.endpoint in FAST for one in self.starts)

    @property
    def share(self) -> float:
        """Of the conversations after warm-up, how many started on a fast route."""
        return self.fast / len(self.starts)

    @property
    def unserved(self) -> int:
        return sum(not one.served for one in self.turns)

    def says(self) -> str:
        tokens = sum(record.prompt_tokens + record.completion_tokens for record in self.probes)
        lag = f"lag to the gateway p50 {quantile(self.lags_ms, 0.5):.0f} p95 {quantile(self.lags_ms, 0.95):.0f}"
        return (
            f"{self.fast} of {len(self.starts)} started on a fast route ({self.share:.1%}), {len(self.turns)} turns, "
            f"{self.unserved} unserved, {len(self.probes)} probes of {tokens} tokens, "
            f"{lag} max {max(self.lags_ms):.0f} simulated ms"
        )


def steady(seed: int, count: int) -> list[Conversation]:
    """One conversation every four minutes."""
    return conversations(seed, count, every_ms=4 * MINUTE, turns=(1, 3), clients=(PI,))


def bursts(seed: int, count: int) -> list[Conversation]:
    """Three at once every twelve minutes."""
    return conversations(seed, count, every_ms=12 * MINUTE, burst=3, turns=(1, 3), clients=(PI,))


async def campaign(trace: Iterable[Conversation], place: Place, gateway: Gateway, *, warm_up: int) -> Result:
    """Play the trace; the first ``warm_up`` conversations are not judged."""
    clock = gateway.clock
    assert isinstance(clock, Clock)
    player = Player(place, clock)
    began_at = clock.wall_ms()
    await player.play(trace)
    turns = sorted(player.played, key=lambda one: one.at_ms)
    match(turns, gateway.log)
    lags = [one.record.at - began_at - one.at_ms for one in turns if one.record is not None]
    starts = [one for one in turns if one.turn == 0 and one.number >= warm_up]
    return Result(starts, turns, lags, [record for record in gateway.log if record.probe])
