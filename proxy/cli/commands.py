"""The commands as one table. A command's module is imported when it is called, so none pays for another's imports."""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

import click

from proxy import __version__

FAILURE, BAD_USAGE = 1, 2


class Entry(NamedTuple):
    """Where a command lives, as module:attribute, and what it does in one line."""

    place: str
    about: str


COMMANDS: dict[str, Entry] = {
    "serve": Entry("proxy.cli.serve:serve", "Run the proxy."),
    "demo": Entry("proxy.cli.demo:demo", "Show what it does, offline, against the simulated gateway."),
    "simulate": Entry("proxy.cli.simulate:simulate", "Run the simulated gateway alone."),
    "inspect": Entry("proxy.cli.inspection:inspect", "Show spares and bindings from the state file, read-only."),
    "status": Entry("proxy.cli.status:status", "Show the running daemon."),
    "probe": Entry("proxy.cli.probe:probe", "Send real probes and show their timings."),
    "diagnose": Entry("proxy.cli.diagnose:diagnose", "Is routing sticky, and does the classifier reject fast answers?"),
    "stats": Entry("proxy.cli.stats:stats", "Did routing help? What decisions gained."),
    "repin": Entry("proxy.cli.repin:repin", "Drop a conversation's route and pick again."),
    "usage": Entry("proxy.cli.usage:usage", "Show tokens, estimated cost and what the cache saved."),
    "events": Entry("proxy.cli.events:events", "Show the event log."),
    "explain": Entry("proxy.cli.explaining:explain", "Say which conversation a request would belong to, and why."),
    "service": Entry("proxy.cli.service:service", "Have ocpool started by systemd or launchd."),
    "setup": Entry("proxy.cli.setup:setup", "Show how a client is pointed at ocpool."),
    "doctor": Entry("proxy.cli.doctor:doctor", "Look for what is wrong here, with a remedy for each finding."),
    "import": Entry("proxy.cli.importing:import_", "Take over bindings from the state file of pi's extension."),
    "config": Entry("proxy.cli.config:config", "Make, show and describe the settings."),
}


class Commands(click.Group):
    """A group that knows its commands by name and loads the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.place.partition(":")
        try:
            found: click.Command = getattr(import_module(module), attribute)
        except ModuleNotFoundError as missing:
            if missing.name != module:
                raise
            raise click.UsageError(f"{cmd_name} is not part of this installation.", ctx) from None
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The table's own words: click would load every command to ask for its help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.about) for name, entry in COMMANDS.items()])


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done or stopped, 1 failure or finding, 2 bad settings or usage, 3 port taken.",
)
@click.version_option(__version__, "-V", "--version", message="ocpool %(version)s")
def ocpool() -> None:
    """A local reverse proxy that gives every coding conversation its own verified route."""


def run(arguments: Sequence[str]) -> int:
    """Run a command; what click would print and exit with, as an exit code."""
    try:
        with ocpool.make_context("ocpool", list(arguments)) as context:
            code = ocpool.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as end:  # --help
        return end.exit_code
    except click.UsageError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        for line in error.format_message().splitlines():
            click.echo(f"ocpool: {line}", err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt, EOFError):
        print(file=sys.stderr)
        return FAILURE
    except BrokenPipeError:  # `ocpool events | head`: whoever read has seen enough
        _silence()
        return 0
    return code if isinstance(code, int) else 0


def _silence() -> None:
    """Keep the interpreter from complaining about the same pipe once more when it exits."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
