"""``ocpool events``: the event log, past and as it grows. Reads files; needs no daemon."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proxy.cli.instants import clock_time, parse_since
from proxy.cli.options import json_option, load_settings, settings_options
from proxy.cli.tables import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from proxy.insight.reading import EventReader

POLL_MS = 250


@click.command()
@settings_options
@click.option("--follow", "-f", is_flag=True, help="Go on with what is written from now on.")
@click.option("--since", metavar="T", help="From then on: 90s, 15m, 2h, 7d ago, or 2026-11-30T14:00.")
@json_option
def events(config_file: Path | None, overrides: Sequence[str], follow: bool, since: str | None, as_json: bool) -> int:
    """Show the event log: a line for each request and each decision, oldest first.

    With --json the lines are printed as they are stored.
    """
    from config.paths import events_path
    from pool.clock import Clock
    from proxy.insight.reading import EventReader

    clock = Clock()
    try:
        start = parse_since(since, clock.wall_ms()) if since is not None else None
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--since") from None
    path = events_path(load_settings(config_file, overrides).settings)
    reader = EventReader(path, start)
    write = _write_json if as_json else _pretty()
    try:
        found = _show(reader, write, clock.seconds(POLL_MS), follow=follow)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise click.ClickException(f"the event log {path} cannot be read: {error.strerror}.") from None
    if reader.broken:
        click.echo(f"ocpool: {reader.broken} broken line{'s' if reader.broken > 1 else ''} skipped.", err=True)
    if not found and not path.exists():
        raise click.ClickException(f"there is no event log at {path} yet.")
    return 0


def _show(reader: "EventReader", write: "Callable[[dict[str, Any]], None]", pause: float, *, follow: bool) -> bool:
    """Write every event; True when there were any. With ``follow`` until it is interrupted."""
    import time

    found = False
    try:
        for event in reader.stored():
            found = True
            write(event)
        while follow:
            for event in reader.more():
                found = True
                write(event)
            time.sleep(pause)
    except KeyboardInterrupt:
        return True
    finally:
        reader.close()
    return found


def _write_json(event: dict[str, Any]) -> None:
    click.echo(json.dumps(event, ensure_ascii=False))


# What a request's line begins with, in this order; the rest follows as name=value.
_LEADING = ("conversation", "route", "model", "status", "verdict", "blame")
_STYLES = {"request": "", "retire": "red", "strike": "yellow", "mark": "yellow", "pause": "yellow"}
_BAD_BLAME = {"route": "yellow", "upstream": "red", "ourselves": "red", "limit": "magenta"}


def _pretty() -> "Callable[[dict[str, Any]], None]":
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)

    def write(event: dict[str, Any]) -> None:
        facts = {name: value for name, value in event.items() if name not in {"at", "event"}}
        name = str(event.get("event", "?"))
        line = Text(f"{clock_time(event['at'])}  ", style="dim")
        line.append(f"{printable(name):<14} ", style=_STYLES.get(name, "cyan"))
        for leading in _LEADING:
            value = facts.pop(leading, None)
            if value is not None:
                style = _BAD_BLAME.get(str(value), "") if leading == "blame" else ""
                line.append(f"{shown(value)} ", style=style)
        for fact, value in facts.items():
            if value is not None:
                line.append(f"{printable(fact)}=", style="dim")
                line.append(f"{shown(value)} ")
        line.rstrip()
        console.print(line)

    return write


def shown(value: object) -> str:
    """A fact as people read it: text bare, the rest as JSON."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return printable(json.dumps(value, ensure_ascii=False, default=str))
