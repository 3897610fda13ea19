"""``ocpool config``: the settings in force and where each came from, a file to start with, a schema for editors."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proxy.cli.options import json_option, load_settings, print_json, settings_options

if TYPE_CHECKING:
    from config.load import Loaded

_WIDTH = 44


@click.group()
def config() -> None:
    """Make, show and describe the settings."""


@config.command()
@settings_options
@json_option
def show(config_file: Path | None, overrides: Sequence[str], as_json: bool) -> int:
    """Show the settings in force and where each came from; secrets are masked."""
    from config.view import values

    loaded = load_settings(config_file, overrides)
    shown = values(loaded.settings)
    if as_json:
        print_json(
            {
                "file": None if loaded.file is None else str(loaded.file),
                "settings": {name: {"value": value, "origin": loaded.origins[name]} for name, value in shown.items()},
                "warnings": loaded.warnings,
            },
        )
    else:
        click.echo("\n".join(_lines(loaded, shown)))
        for warning in loaded.warnings:
            click.echo(f"ocpool: {warning}", err=True)
    return 0


def _lines(loaded: "Loaded", shown: dict[str, Any]) -> list[str]:
    """TOML, with origins as comments; a key without a value is a comment as a whole."""
    from config.reference import toml
    from config.view import MASK

    lines: list[str] = []
    section = ""
    for name, value in shown.items():
        table, _, field = name.rpartition(".")
        if table != section:
            lines += ["", f"[{table}]"] if section else [f"[{table}]"]
            section = table
        said = f"{field} = {toml(value)}"
        if value is None or value == MASK:  # no value that the file could have
            said = f"# {field} is {'unset' if value is None else 'set'}"
        lines.append(f"{said:<{_WIDTH}} # {loaded.origins[name]}")
    return lines


@config.command()
def schema() -> int:
    """Print the JSON Schema of the settings file."""
    import config.reference

    print_json(config.reference.schema())
    return 0


@config.command()
@click.option("--write", is_flag=True, help="Write the file in place of printing it; one that exists is left alone.")
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The file to write, in place of ~/.config/ocpool/config.toml.",
)
def init(write: bool, config_file: Path | None) -> int:
    """Print or write a settings file in which every key stands as a comment."""
    from config.paths import config_file as default_file
    from config.reference import commented_toml

    if not write:
        click.echo(commented_toml(), nl=False)
        return 0
    path = config_file if config_file is not None else default_file()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"{path.parent} cannot be made: {error.strerror}.") from None
    try:
        _create(path, commented_toml())
    except FileExistsError:
        raise click.ClickException(f"{path} exists already and is left as it is.") from None
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}.") from None
    click.echo(f"{path}")
    return 0


def _create(path: Path, text: str) -> None:
    """A new file that only its owner can read, since it may come to hold a key."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
