"""A comparison for people, and the same as JSON for programs."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from proxy.cli.comparing import Comparison, Moved
from proxy.cli.figures import Arm, Effect
from proxy.cli.instants import duration

if TYPE_CHECKING:
    from rich.console import Console

SHOWS = (
    "Shows: ids that were verified ahead of time keep conversations off a relay that a gateway with sticky routes puts "
    "half of them on, and what that costs in probes."
)
SHOWS_NOT = (
    "Does not show: how fast the real gateway is, or which of the two ways it routes today; every latency here comes "
    "from a model of it."
)


@contextmanager
def progress(*, quiet: bool) -> Iterator[Moved]:
    """A bar on stderr while something is played, on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("playing"), BarColumn(), TextColumn("{task.percentage:.0f} %"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=1.0)
        yield lambda share: shown.update(task, completed=share)


def show(to: "Console", compared: Comparison) -> None:
    """Print it all."""
    from rich.table import Table

    to.print(_introduction(compared), markup=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("scenario")
    table.add_column("client")
    for name in ("first byte p50", "p95", "bad turns", "bad starts", "probes", "tokens"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in compared.arms:
        table.add_row(*_row(one))
    to.print()
    to.print(table)
    to.print()
    for line in _notes(compared):
        to.print(line, markup=False)


def as_json(compared: Comparison) -> dict[str, Any]:
    """The same facts in JSON's types."""
    overhead = compared.overhead
    return {
        "clock": {"kind": "scaled", "scale": compared.scale, "simulated_ms": round(compared.simulated_ms)},
        "seed": compared.seed,
        "conversations": compared.conversations,
        "error": {
            "relay_overhead_p50_ms": round(overhead.p50_ms, 3),
            "relay_overhead_p95_ms": round(overhead.p95_ms, 3),
            "measured_at_scale": 1,
            "requests": overhead.requests,
            "simulated_p50_ms": round(overhead.p50_ms * compared.scale, 1),
            "simulated_p95_ms": round(overhead.p95_ms * compared.scale, 1),
        },
        "changed_settings": {
            name: [change._asdict() for change in changes] for name, changes in compared.changes.items()
        },
        "warm_up_conversations": compared.warm_up,
        "arms": [one.facts() for one in compared.arms],
        "effects": [
            {
                "scenario": one.scenario,
                "p50_change_ms": round(one.p50_change_ms, 1),
                "p95_change_ms": round(one.p95_change_ms, 1),
                "bad_starts": list(one.bad_starts),
                "bad_starts_p": round(one.p, 4),
                "rank_sum_z": round(one.z, 2),
                "no_effect": one.none,
            }
            for one in compared.effects
        ],
        "shows": SHOWS,
        "does_not_show": SHOWS_NOT,
    }


def _introduction(compared: Comparison) -> str:
    return (
        f"{compared.conversations} conversations against a simulated gateway, direct and through ocpool: the same "
        f"conversations, the same world (seed {compared.seed}).\n"
        f"One scaled clock for gateway, ocpool and client: {compared.scale:g} simulated seconds in a real one, "
        f"{duration(compared.simulated_ms)} in all. Times below are simulated."
    )


def _row(one: Arm) -> tuple[str, ...]:
    through = one.client == "ocpool"
    return (
        one.scenario,
        one.client,
        _seconds(one.ttfb_p50_ms),
        _seconds(one.ttfb_p95_ms),
        f"{one.bad_turns} of {one.turns}",
        f"{one.bad_starts} of {one.conversations}",
        str(one.probes) if through else "-",
        str(one.probe_tokens) if through else "-",
    )


def _notes(compared: Comparison) -> Iterator[str]:
    yield "Bad: an endpoint to stay away from, by the gateway's own log; a start is a conversation's first turn."
    for one in compared.effects:
        yield f"{one.scenario} ({compared.says[one.scenario]}): {_effect(one)}"
    overhead, scale = compared.overhead, compared.scale
    p50_ms, p95_ms = overhead.p50_ms, overhead.p95_ms
    yield (
        f"Error: relay overhead x scale. Measured in this run at scale 1 over {overhead.requests} requests, the relay "
        f"takes {p50_ms:.2f} ms (p95 {p95_ms:.2f}); x {scale:g} that is {p50_ms * scale:.0f} ms (p95 "
        f"{p95_ms * scale:.0f}) of each time through ocpool."
    )
    counts = ", ".join(f"{count} in {name}" for name, count in compared.warm_up.items())
    yield f"Warm-up, left out on both sides: conversations that began before the first spare was ready ({counts})."
    failed = sum(one.failed for one in compared.arms)
    if failed:
        yield f"{failed} turns were not answered to their end; they count as turns and not in the times."
    changes = next(iter(compared.changes.values()), [])
    told = ", ".join(f"{change.key} {_told(change.default)} -> {_told(change.value)}" for change in changes)
    yield f"Settings changed to run here: {told}. All else is at its default."
    yield ""
    yield SHOWS
    yield SHOWS_NOT


def _effect(one: Effect) -> str:
    change = f"median {_change(one.p50_change_ms)}, p95 {_change(one.p95_change_ms)}"
    if one.on_routes:
        before, after = one.bad_starts
        fewer = f"{'fewer' if after < before else 'more'} conversations start on a bad route"
        return f"{fewer}, {after} in place of {before} (by chance: p {one.p:.3f}); {change}."
    if one.on_waits:
        return f"{'shorter' if one.z < 0 else 'longer'} waits: {change} (rank sum z {one.z:+.1f})."
    return f"no effect; {change} is what chance gives (rank sum z {one.z:+.1f})."


def _change(ms: float) -> str:
    return f"{ms / 1000:+.1f} s"


def _seconds(ms: float) -> str:
    return f"{ms / 1000:.1f} s"


def _told(value: object) -> str:
    return "unset" if value is None else str(value)
