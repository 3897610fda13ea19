"""What the campaign is to show, each claim with its bound, and what it measured."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from proxy.cli.campaign.days import BURSTS, EXTENSION, OCPOOL, OFF, PLUGIN, STEADY, TEN_AT_ONCE, TITLES
from proxy.cli.campaign.figures import Figures, middle
from proxy.cli.campaign.running import Results
from proxy.insight.intervals import Interval, interval

RELAY_MS: Final = 3.0  # what the relay adds at most, measured over sockets at scale 1; it is not in virtual time
NOTICED: Final = (30, 60)
FLIPS: Final = ("flip", "flip-back")


class Claim(NamedTuple):
    """One claim: what was to hold, what came out, and whether it held."""

    scenario: str
    says: str
    measured: str
    held: bool


def claims(results: Results) -> list[Claim]:
    """All claims on what was played; those whose scenario was not played are left out."""
    found: list[Claim] = []
    for scenario, judge in _JUDGES:
        if results.of(scenario, STEADY, OCPOOL):
            found += judge(results)
    return found


def paired(results: Results, scenario: str, policy: str, of: Callable[[Figures], float]) -> list[float]:
    """The figure of ocpool over another's, seed by seed."""
    ours, theirs = results.of(scenario, STEADY, OCPOOL), results.of(scenario, STEADY, policy)
    return [of(one) / of(other) for one, other in zip(ours, theirs, strict=True) if of(other)]


def _best(results: Results, scenario: str, policies: Sequence[str]) -> tuple[str, float]:
    """The policy with the lowest median p95, and ocpool's median ratio to it."""
    best = min(policies, key=lambda name: middle(one.p95_ms for one in results.of(scenario, STEADY, name)))
    return best, middle(paired(results, scenario, best, lambda one: one.p95_ms))


def _sticky(results: Results) -> list[Claim]:
    best, ratio = _best(results, "sticky", (EXTENSION, PLUGIN))
    plays = results.of("sticky", STEADY, OCPOOL)
    share, worst = middle(one.fast_share for one in plays), min(one.fast_share for one in plays)
    bursts = results.of("sticky", BURSTS, OCPOOL)
    pooled = sum(one.fast_starts for one in bursts) / max(1, sum(one.starts for one in bursts))
    return [
        Claim(
            "sticky",
            "p95 within 3 % of the better published policy, or better",
            f"{_change(ratio)} against {TITLES[best]}",
            ratio <= 1.03,
        ),
        Claim(
            "sticky",
            "at least 98 % of conversations start on a fast route (median; worst seed 95 %)",
            f"{share:.1%}, worst {worst:.1%}",
            share >= 0.98 and worst >= 0.95,
        ),
        Claim("sticky", "the same in bursts of 3, all seeds together", f"{pooled:.1%}", pooled >= 0.98),
    ]


def _balanced(results: Results) -> list[Claim]:
    ours = sum(one.probes for one in results.of("balanced", STEADY, OCPOOL))
    theirs = sum(one.probes for one in results.of("balanced", STEADY, EXTENSION))
    off, own = (results.of("balanced", STEADY, name) for name in (OFF, OCPOOL))
    later = interval([one.p95_ms - other.p95_ms for one, other in zip(own, off, strict=True)])
    return [
        Claim(
            "balanced",
            "at most a tenth of the probes of pi-opencode-session-pool",
            f"{ours} against {theirs} ({ours / max(1, theirs):.1%})",
            ours * 10 <= theirs,
        ),
        Claim(
            "balanced",
            f"p95 no more than the relay's time ({RELAY_MS:.0f} ms) above ocpool off, beyond chance",
            _later(later),
            later is not None and (later.estimate <= RELAY_MS or (later.low is not None and later.low <= RELAY_MS)),
        ),
    ]


def _later(found: Interval | None) -> str:
    if found is None:
        return "nothing"
    bounds = "" if found.low is None or found.high is None else f" (95 %: {found.low:+.0f} to {found.high:+.0f})"
    return f"{found.estimate:+.0f} ms in the median seed{bounds}"


def _flips(scenario: str) -> Callable[[Results], list[Claim]]:
    def judge(results: Results) -> list[Claim]:
        best, ratio = _best(results, scenario, (OFF, EXTENSION, PLUGIN))
        plays = results.of(scenario, STEADY, OCPOOL)
        noticed = sorted(one.noticed if one.noticed is not None else one.turns for one in plays)
        within = f"{middle(noticed):.0f} in the median, {noticed[-1]} at worst"
        never = sum(one.noticed is None for one in plays)
        return [
            Claim(
                scenario,
                f"noticed within {NOTICED[0]} requests in the median, {NOTICED[1]} at worst",
                f"{within}, never in {never} of {len(plays)}" if never else within,
                middle(noticed) <= NOTICED[0] and noticed[-1] <= NOTICED[1],
            ),
            Claim(
                scenario,
                "p95 within 10 % of the best policy that does not change its mind",
                f"{_change(ratio)} against {TITLES[best]}",
                ratio <= 1.1,
            ),
        ]

    return judge


def _hops(results: Results) -> list[Claim]:
    off, own = (results.of("hops", STEADY, name) for name in (OFF, OCPOOL))
    points = middle(100 * (one.cache_rate - other.cache_rate) for one, other in zip(own, off, strict=True))
    says = "cache hit rate at most 1 point below ocpool off"
    return [Claim("hops", says, f"{points:+.1f} points in the median seed", points >= -1.0)]


def _limits(results: Results) -> list[Claim]:
    plays = [*results.of("limits", STEADY, OCPOOL), *results.of("limits", TEN_AT_ONCE, OCPOOL)]
    moved = sum(one.moved for one in plays)
    return [Claim("limits", "no id is rotated", f"{moved} turns on another id than the one before", moved == 0)]


def _overload(results: Results) -> list[Claim]:
    off, own = (results.of("overload", STEADY, name) for name in (OFF, OCPOOL))
    failed = [one.failed - other.failed for one, other in zip(own, off, strict=True)]
    drained = [one.drained for one in own if one.drained is not None]
    return [
        Claim(
            "overload",
            "failed requests no more than with ocpool off, every seed",
            f"{middle(failed):+.0f} in the median, {max(failed):+d} at worst",
            max(failed) <= 0,
        ),
        Claim(
            "overload",
            "spares are not drained while the whole gateway refuses (at most one for each conversation)",
            f"{middle(drained):.0f} spent in the median, {max(drained, default=0)} at most in a window",
            max(drained, default=0) <= 2,
        ),
    ]


def _legacy(results: Results) -> list[Claim]:
    sticky, legacy = (results.of(name, STEADY, OCPOOL) for name in ("sticky", "legacy"))
    ratio = middle(one.p95_ms / other.p95_ms for one, other in zip(legacy, sticky, strict=False) if other.p95_ms)
    says = "without timing headers p95 within 10 % of sticky"
    return [Claim("legacy", says, f"{_change(ratio)}", 0.0 < ratio <= 1.1)]


def _change(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"


_JUDGES: Final[tuple[tuple[str, Callable[[Results], list[Claim]]], ...]] = (
    ("sticky", _sticky),
    ("balanced", _balanced),
    *((scenario, _flips(scenario)) for scenario in FLIPS),
    ("hops", _hops),
    ("limits", _limits),
    ("overload", _overload),
    ("legacy", _legacy),
)
