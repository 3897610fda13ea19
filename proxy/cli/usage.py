"""``ocpool usage``: what was used, from the file of token counts. Reads only; needs no daemon."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from proxy.cli.instants import parse_since
from proxy.cli.options import json_option, load_settings, print_json, settings_options
from proxy.cli.tables import Row, console, fact, printable, show_table

SHOWN = 40  # rows of a table; --json has all
BY = {
    "model": ("provider", "model"),
    "conversation": ("conversation",),
    "day": ("day",),
    "key": ("key",),
    "provider": ("provider",),
}


@click.command()
@settings_options
@click.option("--since", metavar="T", help="From that day on: 7d, 2w ago, or 2026-11-30. Days are those of UTC.")
@click.option("--by", type=click.Choice(list(BY)), default="model", show_default=True, help="What a row stands for.")
@json_option
def usage(config_file: Path | None, overrides: Sequence[str], since: str | None, by: str, as_json: bool) -> int:
    """Show tokens by model, conversation, day or key, with estimated cost and what the cache saved.

    A running daemon adds what it has counted every few seconds. Exit code 1 when nothing was counted yet.
    """
    import sqlite3

    from config.paths import usage_path
    from pool.clock import Clock
    from proxy.insight.usage_report import report

    try:
        start = parse_since(since, Clock().wall_ms()) if since is not None else None
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--since") from None
    path = usage_path(load_settings(config_file, overrides).settings)
    try:
        seen = report(path, BY[by], start)
    except FileNotFoundError:
        raise click.ClickException(f"nothing was counted yet: there is no file {path}.") from None
    except (sqlite3.Error, OSError) as error:
        raise click.ClickException(f"the usage file {path} cannot be read: {error}.") from None
    if as_json:
        print_json({"path": str(path), **seen})
        return 0
    to = console()
    days = f"from {seen['since']} on" if seen["since"] else "altogether"
    to.print(f"{printable(str(path))}, {days}; money is an estimate from list prices", markup=False)
    rows = [*seen["rows"][:SHOWN], {seen["by"][0]: "all", **seen["total"]}] if seen["rows"] else []
    show_table(to, "Usage", rows, columns(seen["by"]))
    for line in remarks(seen):
        to.print(line, markup=False)
    return 0


def remarks(seen: dict[str, Any]) -> list[str]:
    """What the table does not say by itself."""
    total, lines = seen["total"], []
    if not seen["rows"]:
        lines.append("Nothing was counted.")
    if len(seen["rows"]) > SHOWN:
        lines.append(f"{len(seen['rows']) - SHOWN} further rows: --json has them.")
    if total["unknown"]:
        lines.append(
            f"{total['unknown']} answers reported no tokens ({total['partial']} were cut off); they count as none."
        )
    if total["probes"]:
        cost = f" (about ${total['probe_cost_usd']:.6f})" if total["probe_cost_usd"] else ""
        lines.append(
            f"{total['probes']} probes of ocpool's own cost {total['probe_tokens']} tokens{cost}; "
            "no other column has them."
        )
    if total["unpriced"]:
        lines.append(f"{total['unpriced']} answers are of models without a known price; pricing.path can name one.")
    return lines


def money(name: str) -> Callable[[Row], object]:
    """An amount; four digits, six where it is small."""

    def read(row: Row) -> object:
        value = row.get(name)
        if not isinstance(value, int | float):
            return None
        return f"{value:.6f}" if 0 < abs(value) < 0.01 else f"{value:.4f}"

    return read


def _rate(row: Row) -> object:
    rate = row.get("hit_rate")
    return f"{rate:.0%}" if isinstance(rate, int | float) else None


def _nonzero(name: str) -> Callable[[Row], object]:
    return lambda row: row.get(name) or None


def columns(by: Sequence[str]) -> Sequence[tuple[str, Callable[[Row], object]]]:
    """The columns of a table of counts; ``by`` says what a row stands for."""
    return (
        *((name, fact(name)) for name in by),
        ("turns", fact("turns")),
        ("side", _nonzero("side_calls")),
        ("cut off", _nonzero("partial")),
        ("unknown", _nonzero("unknown")),
        ("tokens in", fact("input")),
        ("cached", fact("cached")),
        ("hit rate", _rate),
        ("out", fact("output")),
        ("reasoning", _nonzero("reasoning")),
        ("cost $", money("cost_usd")),
        ("saved $", money("saved_usd")),
        ("probes", _nonzero("probes")),
    )
