"""``docs/scenarios.md``: what was played, what came out, and where ocpool had no effect."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from proxy.cli.campaign.claims import claims, paired
from proxy.cli.campaign.days import BURSTS, OCPOOL, OFF, POLICIES, SCENARIOS, STEADY, TEN_AT_ONCE, TITLES, days
from proxy.cli.campaign.figures import Figures, curve, middle
from proxy.cli.campaign.plots import waits
from proxy.cli.campaign.running import Results
from proxy.cli.campaign.sockets import Repeat
from proxy.insight.intervals import Interval, interval
from proxy.simulator.scenarios import scenario_named

SMALL: Final = 0.02  # a change of less is not worth the name

_INTRO: Final = """# Scenarios: does routing help?

Written by `make scenarios`; do not edit. The simulated gateway lives through {scenarios} scenarios, each with {seeds}
seeds. The same conversations (the same prompts, pauses and retries, grown to as much as 150,000 tokens) meet the same
world four times: with ocpool off, with the policies of pi-opencode-session-pool and of dsh-plugin-opencode-route as
their documents say, and with ocpool at its defaults.

It is played in virtual time: the pool, its verdicts, its refill and its probing are the real ones, the sockets are left
out; so is the relay's own time, a millisecond or two a request. One seed of each scenario is repeated over real
sockets, at the end. What the world does to a request is drawn from its session, model and time, so that no probe and no
policy shifts what others meet.

- **first byte**: from the client's first attempt to the first byte of the answer that served it; probes that it waited
  for and retries included. Medians over the seeds; *worst* is the worst seed's p95.
- **bad turns**: served by an endpoint to stay away from. **Cache**: prompt tokens that did not have to be read again.
- **probes**: sent in the whole play, and the tokens they cost. **Failed**: turns that their client gave up. **Moved**:
  turns on another id than the turn before, which loses the prompt cache.
- The whole play counts, the first conversation on an empty pool too. An effect is told with a 95 % interval, over the
  seeds.
"""
_COLUMNS: Final = (
    "",
    "first byte p50",
    "p95",
    "p99",
    "worst",
    "tokens/s",
    "bad turns",
    "cache",
    "probes",
    "tokens",
    "failed",
    "moved",
)


def write(results: Results, repeats: Sequence[Repeat], folder: Path) -> list[Path]:
    """Write the document and its plots below ``folder``; returns what was written."""
    plots = folder / "scenarios"
    plots.mkdir(parents=True, exist_ok=True)
    written = [folder / "scenarios.md"]
    written[0].write_text(document(results, repeats), encoding="utf-8")
    for scenario in _played(results):
        shown = {TITLES[name]: curve(results.of(scenario, STEADY, name)) for name in POLICIES}
        path = plots / f"{scenario}.svg"
        path.write_text(waits(f"{scenario}: turns with their first byte within a time", shown), encoding="utf-8")
        written.append(path)
    return written


def document(results: Results, repeats: Sequence[Repeat]) -> str:
    """The whole document."""
    played = _played(results)
    parts = [_INTRO.format(scenarios=len(played), seeds=len(results.seeds)), _claims(results)]
    parts += [_scenario(results, scenario) for scenario in played]
    parts.append(_repeats(repeats))
    return "\n".join(part for part in parts if part)


def _played(results: Results) -> list[str]:
    return [scenario for scenario in SCENARIOS if results.of(scenario, STEADY, OCPOOL)]


def _claims(results: Results) -> str:
    rows = [
        (claim.scenario, claim.says, claim.measured, "yes" if claim.held else "**no**") for claim in claims(results)
    ]
    table = _table(("scenario", "is to hold", "measured", "holds"), rows)
    return f"## What is to hold\n\n{table}\n"


def _scenario(results: Results, scenario: str) -> str:
    steady = days(scenario)[0]
    lines = [
        f"## {scenario}",
        "",
        f"{_sentence(scenario_named(scenario).says)} {steady.count} conversations, one every 4 minutes.",
        "",
        effect(results, scenario),
        "",
        _table(_COLUMNS, [_row(name, results.of(scenario, STEADY, name)) for name in POLICIES]),
        "",
        f"![{scenario}](scenarios/{scenario}.svg)",
        "",
        _starts(results, scenario),
        "",
    ]
    return "\n".join(lines)


def effect(results: Results, scenario: str) -> str:
    """What ocpool changed against ocpool off, in words: or that it changed nothing."""
    said = []
    for name, of in (("median", lambda one: one.p50_ms), ("p95", lambda one: one.p95_ms)):
        found = interval(paired(results, scenario, OFF, of))
        said.append((name, found))
    failed = middle(
        one.failed - other.failed
        for one, other in zip(results.of(scenario, STEADY, OCPOOL), results.of(scenario, STEADY, OFF), strict=True)
    )
    shown = [f"{name} {_ratio(found)}" for name, found in said if found is not None and not _none(found)]
    more = f" Failed turns: {failed:+.0f}." if abs(failed) >= 1 else ""
    if not shown:
        nothing = ", ".join(f"{name} {_ratio(found)}" for name, found in said if found is not None)
        return f"**No effect** on waits: with ocpool / off {nothing}.{more}"
    return f"Waits with ocpool / off: {', '.join(shown)}.{more}"


def _none(found: Interval) -> bool:
    return (found.low is not None and found.holds(1.0)) or abs(found.estimate - 1.0) < SMALL


def _ratio(found: Interval) -> str:
    if found.low is None or found.high is None:
        return f"{found.estimate:.3g} times"
    return f"{found.estimate:.3g} times ({found.low:.3g} to {found.high:.3g})"


def _row(policy: str, plays: Sequence[Figures]) -> tuple[str, ...]:
    return (
        TITLES[policy],
        _seconds(one.p50_ms for one in plays),
        _seconds(one.p95_ms for one in plays),
        _seconds(one.p99_ms for one in plays),
        f"{max(one.p95_ms for one in plays) / 1000:.2f} s",
        f"{middle(one.tokens_per_s for one in plays):.0f}",
        f"{middle(one.bad_share for one in plays):.1%}",
        f"{middle(one.cache_rate for one in plays):.1%}",
        f"{middle(one.probes for one in plays):.0f}",
        f"{middle(one.probe_tokens for one in plays):.0f}",
        f"{middle(one.failed for one in plays):.0f}",
        f"{middle(one.moved for one in plays):.0f}",
    )


def _starts(results: Results, scenario: str) -> str:
    """Warm-up, and how conversations started: one by one, in bursts, ten at once."""
    own = results.of(scenario, STEADY, OCPOOL)
    warm = [one.warm_ms for one in own if one.warm_ms is not None]
    told = f"first verified id after {middle(warm) / 60_000:.0f} min" if warm else "no conversation began on a spare"
    rows = []
    for name in POLICIES:
        row = [TITLES[name]]
        for arrivals in (STEADY, BURSTS, TEN_AT_ONCE):
            plays = results.of(scenario, arrivals, name)
            shares = [one.fast_share for one in plays]
            row.append(f"{middle(shares):.1%} (worst {min(shares):.1%})" if plays else "-")
        tens = results.of(scenario, TEN_AT_ONCE, name)
        row.append(
            _seconds(one.start_p95_ms for one in tens) if tens and all(one.start_p95_ms for one in tens) else "-"
        )
        rows.append(tuple(row))
    head = ("started on a good route", "one by one", "three at once", "ten at once", "their first byte p95")
    return f"Warm-up of ocpool: {told}.\n\n{_table(head, rows)}"


def _repeats(repeats: Sequence[Repeat]) -> str:
    if not repeats:
        return ""
    rows = [(one.scenario, *one.shown(), "yes" if one.agrees else "**no**") for one in repeats]
    head = ("virtual / sockets", "first byte p50", "p95", "bad turns", "cache", "probes", "failed", "agrees")
    bounds = repeats[0].says()
    return f"## One seed of each over sockets\n\n{bounds}\n\n{_table(head, rows)}\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def _seconds(values: Iterable[float]) -> str:
    return f"{middle(values) / 1000:.2f} s"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
