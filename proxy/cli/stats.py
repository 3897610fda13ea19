"""``ocpool stats``: did routing help? Reads the event log with its rotated files; needs no daemon."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from proxy.cli.instants import clock_time, parse_since
from proxy.cli.options import json_option, load_settings, print_json, settings_options
from proxy.cli.tables import Row, console, fact, printable, show_table

if TYPE_CHECKING:
    from rich.console import Console

SHOWN: Final = 15


@click.command()
@settings_options
@click.option("--since", metavar="T", help="From then on: 90s, 15m, 2h, 7d ago, or 2026-11-30T14:00. Default: all.")
@json_option
def stats(config_file: Path | None, overrides: Sequence[str], since: str | None, as_json: bool) -> int:
    """Show whether routing helped: the decisions, what they gained, and days with routing beside days without.

    Says "no effect" when that is what the data say. Intervals are 95 % bootstrap intervals.
    """
    from config.paths import events_path
    from pool.clock import Clock

    try:
        start = parse_since(since, Clock().wall_ms()) if since is not None else None
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--since") from None
    settings = load_settings(config_file, overrides).settings
    found = _read(events_path(settings), start, settings.quarantine.degrade_ms)
    if as_json:
        print_json(found)
    else:
        show(found, console())
    return 0


def _read(path: Path, since: int | None, slow_ms: float) -> dict[str, Any]:
    from proxy.insight.stored import effectiveness

    try:
        found = effectiveness(path, since, slow_ms)
    except OSError as error:
        raise click.ClickException(f"the event log {path} cannot be read: {error.strerror}.") from None
    if not found["events"] and not path.exists():
        raise click.ClickException(f"there is no event log at {path} yet.")
    return found


def show(found: dict[str, Any], to: "Console") -> None:
    """The statistics as text and tables."""
    decisions, natural = found["decisions"], found["natural"]
    to.print(printable(str(found["says"])), markup=False)
    made = f"kept natural {decisions['kept_natural']} · switched {decisions['switched']}"
    for line in (
        f"{clock_time(found['from'])} to {clock_time(found['to'])}, {found['events']} events",
        f"decisions {decisions['total']} · {made} · nothing better {decisions['skipped']}",
        "natural route: " + " · ".join(f"{name} {count}" for name, count in natural.items()),
        f"probes {found['probes']['sent']} ({found['probes']['tokens']} tokens) · evicted {found['evicted']}",
    ):
        to.print(printable(line), markup=False)
    for belief in found["routing"]:
        to.print(printable(f"{belief['model']}: {belief['regime']}; {belief['because']}"), markup=False)
    _show_routes(found["routes"], to)
    gains = [{"profile": profile, **gain} for profile, gain in found["gain"].items() if gain["measured"]]
    show_table(to, "Gain of switched conversations", gains, _GAINS)
    show_table(to, "Latest decisions", list(reversed(found["rows"]))[:SHOWN], _ROWS)
    days = found["days"]
    if days["without"]["conversations"] and days["with"]["conversations"]:
        show_table(to, "Days", [{"days": name, **days[name]} for name in ("without", "with")], _DAYS)
        for name in ("faster", "sooner"):
            to.print(printable(_contrast(name, days[name])), markup=False)


def _show_routes(routes: dict[str, Any], to: "Console") -> None:
    told = []
    for kind, what in (("unchosen", "new ids probed"), ("chosen", "turns on chosen ids")):
        seen, bad = routes[kind]["seen"], routes[kind]["bad"]
        if seen:
            told.append(f"{what}: {bad} of {seen} slow or refused ({bad / seen:.1%})")
    if told:
        to.print(printable(" · ".join(told)), markup=False)


def _contrast(name: str, found: dict[str, Any]) -> str:
    what = "tokens per second" if name == "faster" else "the first event"
    if found["median"] is None:
        return f"{what}: nothing to compare"
    word = {"helps": "better with routing", "harms": "worse with routing", "none": "no effect"}
    said = word.get(found["effect"], "too few conversations to say")
    return f"{what}: {said}, {_bounds(found)} times as {'fast' if name == 'faster' else 'soon'}"


def _bounds(found: Row) -> str:
    if found.get("median") is None:
        return "-"
    if found.get("low") is None:
        return f"{found['median']:.2f}"
    return f"{found['median']:.2f} ({found['low']:.2f} to {found['high']:.2f})"


def _side(side: str) -> Any:
    def shown(row: Row) -> object:
        tps, ms = row.get(f"{side}_tps"), row.get(f"{side}_ms")
        if isinstance(tps, int | float):
            return f"{tps:.0f} tok/s"
        return f"{ms:.0f} ms" if isinstance(ms, int | float) else "-"

    return shown


def _of_day(name: str) -> Any:
    return lambda row: _bounds(row[name])


_GAINS: Final = (
    ("profile", fact("profile")),
    ("measured", fact("measured")),
    ("median gain", _bounds),
    ("effect", fact("effect")),
)
_ROWS: Final = (
    ("time", lambda row: clock_time(row.get("at"))[5:19]),
    ("conversation", fact("conversation")),
    ("model", fact("model")),
    ("decision", fact("decision")),
    ("source", fact("source")),
    ("natural route", fact("natural")),
    ("natural", _side("natural")),
    ("chosen", _side("chosen")),
    ("gain", fact("gain")),
)
_DAYS: Final = (
    ("days", lambda row: f"{row['days']} routing"),
    ("conversations", fact("conversations")),
    ("median tokens/s", _of_day("tps")),
    ("median first event, ms", _of_day("first_event_ms")),
)
