"""The figures of one play, and of the plays of many seeds together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pool.policy import Regime
from proxy.cli.campaign.days import EPOCH_MS, Day
from proxy.cli.campaign.routed import Routed
from proxy.cli.figures import quantile
from proxy.insight.intervals import median
from proxy.simulator.limits import Window
from proxy.simulator.played import Play, Turned
from proxy.simulator.scenarios import FLIP_MS, scenario_named

POINTS: Final = 200  # of the curve of waits
FLIPS: Final = {"flip": Regime.BALANCED, "flip-back": Regime.STICKY}


@dataclass(frozen=True, slots=True)
class Figures:
    """One play. Waits are those of served turns, in ms.

    Attributes:
        starts, fast_starts: Conversations after warm-up, and those whose first turn was on no bad route.
        moved: Turns that went out on another id than the one before.
        waits: Equally spaced quantiles of all waits.
        noticed: In a flip: live requests until the gateway's new way was believed; None: never, or nobody asks.
        drained: Of the spares that were there when the whole gateway began to refuse, those spent on retries until it
            ended: the most in any such window; None where there was no window, or no reserve.
        warm_ms: When the first conversation began on a verified id; None: none did.
    """

    seed: int
    turns: int
    failed: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    tokens_per_s: float
    bad_share: float
    cache_rate: float
    probes: int
    probe_tokens: int
    starts: int
    fast_starts: int
    start_p95_ms: float
    moved: int
    waits: tuple[float, ...]
    noticed: int | None = None
    drained: int | None = None
    warm_ms: float | None = None

    @property
    def fast_share(self) -> float:
        return self.fast_starts / self.starts if self.starts else 1.0


def figures(day: Day, seed: int, play: Play) -> Figures:
    """The figures of a play that is over."""
    served = [turn for turn in play.turns if turn.served]
    waits = [turn.ttfb_ms for turn in served]
    starts = [turn for turn in play.turns if turn.turn == 0 and turn.number >= day.warm_up]
    own = play.policy if isinstance(play.policy, Routed) else None
    return Figures(
        seed=seed,
        turns=len(play.turns),
        failed=len(play.turns) - len(served),
        p50_ms=quantile(waits, 0.5),
        p95_ms=quantile(waits, 0.95),
        p99_ms=quantile(waits, 0.99),
        tokens_per_s=quantile([turn.tokens_per_s for turn in served if turn.tokens_per_s is not None], 0.5),
        bad_share=sum(turn.bad for turn in served) / max(1, len(served)),
        cache_rate=sum(turn.cached_tokens for turn in served) / max(1, sum(turn.prompt_tokens for turn in served)),
        probes=len(play.probes),
        probe_tokens=sum(probe.tokens for probe in play.probes),
        starts=len(starts),
        fast_starts=sum(not turn.bad for turn in starts),
        start_p95_ms=quantile([turn.ttfb_ms for turn in starts if turn.served], 0.95),
        moved=sum(turn.moved for turn in play.turns),
        waits=tuple(quantile(waits, place / POINTS) for place in range(POINTS + 1)),
        noticed=_noticed(day.scenario, own) if own is not None else None,
        drained=_drained(day.scenario, own, play.turns) if own is not None else None,
        warm_ms=min((turn.at_ms for turn in play.turns if turn.turn == 0 and not turn.kept_natural), default=None),
    )


def _noticed(scenario: str, own: Routed) -> int | None:
    """Live requests from a flip until the new regime was believed."""
    wanted = FLIPS.get(scenario)
    if wanted is None:
        return None
    before = sum(at < EPOCH_MS + FLIP_MS for at in own.answered_at)
    found = [believed.requests for believed in own.beliefs if believed.regime is wanted and believed.requests > before]
    return min(found) - before if found else None


def _drained(scenario: str, own: Routed, turns: Iterable[Turned]) -> int | None:
    """Spares spent while the whole gateway refused, without those that new conversations began on."""
    most = None
    end = max((turn.at_ms for turn in turns), default=0.0)
    for window in scenario_named(scenario).windows:
        if window.name != "overloaded" or window.endpoint is not None:
            continue
        for began in _begins(window, end):
            inside = [at_ms for at_ms in own.failover_takes if began <= at_ms - EPOCH_MS < began + window.for_ms]
            most = max(most or 0, len(inside))
    return most


def _begins(window: Window, end: float) -> list[float]:
    begins, at = [], window.from_ms
    while at < end:
        begins.append(at)
        if not window.every_ms:
            break
        at += window.every_ms
    return begins


def middle(values: Iterable[float]) -> float:
    """Their median, 0 for none."""
    found = list(values)
    return median(found) if found else 0.0


def curve(plays: Sequence[Figures]) -> list[float]:
    """The waits of all plays as one curve: the median of each quantile."""
    return [middle(play.waits[place] for play in plays) for place in range(POINTS + 1)]
