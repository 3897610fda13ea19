"""What several commands take: where the settings come from, which daemon, and JSON for programs."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from config.load import Loaded

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class BadSettings(click.ClickException):
    """Settings that were refused: every problem on a line of its own."""

    exit_code = 2

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))


def settings_options(command: Decorated) -> Decorated:
    """``--config`` and ``--set``, as the arguments ``config_file`` and ``overrides``."""
    command = click.option(
        "--set", "overrides", multiple=True, metavar="SECTION.KEY=VALUE", help="Override one setting; may be repeated."
    )(command)
    return click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="The settings file, in place of ~/.config/ocpool/config.toml.",
    )(command)


def daemon_options(command: Decorated) -> Decorated:
    """``--url`` beside the settings' options: which daemon to talk to."""
    command = click.option("--url", metavar="URL", help="Address of the daemon, in place of the one that runs here.")(
        command
    )
    return settings_options(command)


def json_option(command: Decorated) -> Decorated:
    """``--json``, as the argument ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(command)


def load_settings(config_file: Path | None, overrides: Sequence[str]) -> "Loaded":
    """The settings in force.

    Raises:
        BadSettings: they are refused.
    """
    from config.load import SettingsError, load

    try:
        return load(config_file, list(overrides))
    except SettingsError as error:
        raise BadSettings(error.problems) from None


def print_json(value: object) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))
