"""``ocpool service``: have ocpool started by the system, for one user and without privileges."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proxy import __version__
from proxy.cli.options import json_option, load_settings, print_json

if TYPE_CHECKING:
    from config.settings import Settings
    from proxy.service.listening import Answer
    from proxy.service.supervisors import Standing, Supervisor

_START_WAIT_S = 20.0

config_option = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="The settings file, in place of ~/.config/ocpool/config.toml.",
)


@click.group()
def service() -> None:
    """Have ocpool started by systemd or launchd, for this user and without privileges."""


@service.command()
@config_option
def install(config_file: Path | None) -> int:
    """Install and start the service, or bring an installed one up to date.

    Nothing is changed when it cannot work here.
    """
    from proxy.service.programs import installed_program, unseen_variables

    settings = load_settings(config_file, ()).settings
    supervisor = _known(_supervisor)
    command = [str(_known(installed_program)), "serve"]
    if config_file is not None:
        command += ["--config", str(config_file.absolute())]
    _refuse_a_second_one(supervisor, settings)
    _known(lambda: supervisor.install(command, settings.listen))
    click.echo(f"Installed a {supervisor.kind}: {', '.join(map(str, supervisor.files))}")
    answer = _wait_for(supervisor, settings)
    if answer is None:
        raise click.ClickException(f"it was installed but does not answer. Its log: `{_log_command(supervisor)}`")
    click.echo(f"ocpool {answer.version} listens on {answer.address}, process {answer.pid}.")
    click.echo(supervisor.survival()[1])
    click.echo(f"Log: {_log_command(supervisor)}")
    unseen = unseen_variables(os.environ)
    if unseen:
        click.echo(f"The service does not see {', '.join(unseen)} of this shell; what they say belongs into the file.")
    return 0


@service.command()
@config_option
def uninstall(config_file: Path | None) -> int:
    """Stop the service and remove its files; state, settings and logs stay."""
    supervisor = _known(_supervisor)
    there = [file for file in supervisor.files if file.exists()]
    if not there:
        click.echo(f"No {supervisor.kind} is installed.")
    else:
        _known(supervisor.uninstall)
        click.echo(f"Stopped and removed: {', '.join(map(str, there))}")
    staying = _staying(config_file)
    if staying:
        click.echo("These stay, for a next time; delete them if there is none:")
        for path in staying:
            click.echo(f"  {path}")
    return 0


@service.command()
@config_option
@json_option
def status(config_file: Path | None, as_json: bool) -> int:
    """Show the service, and which process really listens.

    Exit code 1 unless the service is installed and answers.
    """
    from dataclasses import asdict

    from proxy.service.listening import listeners

    settings = load_settings(config_file, ()).settings
    supervisor = _known(_supervisor)
    answers = listeners(settings)  # may have systemd start the service, so it is asked first
    standing = _known(supervisor.standing)
    survives, explained = supervisor.survival()
    well = standing.installed and any(answer.pid and answer.pid == standing.pid for answer in answers)
    if as_json:
        found = {"kind": supervisor.kind, **asdict(standing), "files": [str(file) for file in supervisor.files]}
        listening = [{**asdict(answer), "service": answer.pid == standing.pid != 0} for answer in answers]
        more = {"survives_logout": survives, "installed_version": __version__, "listening": listening, "ok": well}
        print_json({**found, **more})
        return 0 if well else 1
    for line in _told(supervisor, standing, answers):
        click.echo(line)
    if standing.installed:
        click.echo(explained)
    return 0 if well else 1


def _told(supervisor: "Supervisor", standing: "Standing", answers: "list[Answer]") -> list[str]:
    """The status in words."""
    if not standing.installed:
        lines = [f"No {supervisor.kind} is installed (`ocpool service install`)."]
    else:
        enabled = "enabled" if standing.enabled else "NOT enabled"
        process = f", process {standing.pid}" if standing.pid else ""
        lines = [f"{supervisor.kind}: {standing.state}, {enabled}{process}"]
    for answer in answers:
        if answer.problem:
            lines.append(f"! {answer.problem}")
            continue
        whose = "the service" if answer.pid == standing.pid else "NOT the service: started in another way"
        lines.append(f"ocpool {answer.version} answers at {answer.address}, process {answer.pid}, {whose}")
        if answer.version != __version__:
            lines.append(f"! ocpool {__version__} is installed; `ocpool service install` starts it.")
    if not answers:
        lines.append("No ocpool listens.")
    return lines


def _known(work: Callable[[], Any]) -> Any:
    """What the work returns; what cannot be done is a message and exit code 1."""
    from proxy.service.programs import ServiceError

    try:
        return work()
    except (ServiceError, OSError) as error:
        raise click.ClickException(str(error)) from None


def _supervisor() -> "Supervisor":
    from config.paths import config_file
    from proxy.service.supervisors import supervisor

    return supervisor(Path.home(), config_file().parent.parent)


def _refuse_a_second_one(supervisor: "Supervisor", settings: "Settings") -> None:
    """Whoever has the address already keeps it until its owner stops it."""
    from proxy.service.listening import answer_at, configured_address

    answer = answer_at(configured_address(settings))
    if answer.silent or (answer.pid and answer.pid == _known(supervisor.standing).pid):
        return
    if answer.pid:
        raise click.ClickException(
            f"ocpool {answer.version} listens on {answer.address} already, process {answer.pid}. Stop that one first."
        )
    raise click.ClickException(f"{answer.address} is taken: {answer.problem} Choose another listen.port.")


def _wait_for(supervisor: "Supervisor", settings: "Settings") -> "Answer | None":
    """The service's own answer, once it comes."""
    from time import sleep

    from pool.clock import Clock
    from proxy.service.listening import answer_at, configured_address

    clock = Clock()
    deadline = clock.mono_ms() + _START_WAIT_S * 1000
    while clock.mono_ms() < deadline:
        answer = answer_at(configured_address(settings))
        if answer.pid and answer.pid == supervisor.standing().pid:
            return answer
        sleep(0.2)
    return None


def _log_command(supervisor: "Supervisor") -> str:
    logs = getattr(supervisor, "logs", None)
    return f"tail -f {logs}/ocpool.log" if logs is not None else "journalctl --user -u ocpool.service"


def _staying(config_file: Path | None) -> list[Path]:
    """The files that an uninstallation leaves where they are."""
    from config import paths

    settings = load_settings(config_file, ()).settings
    state = paths.state_path(settings)
    named = [state.parent, paths.events_path(settings), config_file or paths.config_file(), _agent_logs()]
    found = [path for path in dict.fromkeys(named) if path.exists()]
    return [path for path in found if path == state.parent or state.parent not in path.parents]


def _agent_logs() -> Path:
    return Path.home() / "Library/Logs/ocpool"
