"""``ocpool repin``: drop a conversation's route, so that its next turn picks again."""

from collections.abc import Sequence
from pathlib import Path

import click

from proxy.cli import daemon
from proxy.cli.options import daemon_options, json_option, load_settings, print_json


@click.command()
@click.argument("conversation", required=False)
@daemon_options
@json_option
def repin(
    conversation: str | None, config_file: Path | None, overrides: Sequence[str], url: str | None, as_json: bool
) -> int:
    """Drop the route of CONVERSATION (its label, as in `ocpool status` or x-ocpool-conversation), or of all.

    The next turn takes a fresh spare, else its natural id; the provider's prompt cache starts anew.
    """
    settings = load_settings(config_file, overrides).settings
    answer = daemon.choose(settings, url).post("/-/repin", conversation=conversation)
    if as_json:
        print_json(answer)
    else:
        count = answer.get("repinned", 0)
        click.echo(f"{count} route{'' if count == 1 else 's'} dropped; the next turn picks again.")
    return 0
