"""``python -m proxy.cli.campaign``: play all of it, and write the document and its plots."""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Final

import click

from proxy.cli.campaign.claims import claims
from proxy.cli.campaign.days import SCENARIOS, days
from proxy.cli.campaign.report import write
from proxy.cli.campaign.running import campaign
from proxy.cli.campaign.sockets import Repeat, repeats
from proxy.serve import loop_factory

# A hung stream holds its client for five minutes of the clock: broken replies are played in virtual time alone.
OVER_SOCKETS: Final = tuple(name for name in SCENARIOS if name != "faults")


@click.command()
@click.option("--seeds", type=click.IntRange(1, 1000), default=20, show_default=True)
@click.option("--scenario", "chosen", multiple=True, type=click.Choice(SCENARIOS), help="Only these; default: all.")
@click.option("--workers", type=click.IntRange(1), help="Processes; default: one a core.")
@click.option("--sockets/--no-sockets", default=True, show_default=True, help="Repeat one seed of each over sockets.")
@click.option(
    "--to", type=click.Path(path_type=Path), default=Path("docs"), show_default=True, help="Folder to write to."
)
def main(seeds: int, chosen: tuple[str, ...], workers: int | None, sockets: bool, to: Path) -> int:
    """Play every scenario with every policy. Exit code 1 when a claim does not hold or the sockets do not agree."""
    names = chosen or SCENARIOS
    played = [day for name in names for day in days(name)]
    results = campaign(played, range(1, seeds + 1), workers=workers, moved=_moved)
    again: list[Repeat] = []
    if sockets:
        click.echo("over sockets ...", err=True)
        with (
            tempfile.TemporaryDirectory(prefix="ocpool-campaign-") as folder,
            asyncio.Runner(loop_factory=loop_factory("uvloop")) as runner,
        ):
            again = runner.run(repeats([name for name in names if name in OVER_SOCKETS], 1, Path(folder)))
    for path in write(results, again, to):
        click.echo(path)
    bad = [claim for claim in claims(results) if not claim.held]
    for claim in bad:
        click.echo(f"missed: {claim.scenario}: {claim.says}: {claim.measured}", err=True)
    apart = [one.scenario for one in again if not one.agrees]
    for name in apart:
        click.echo(f"sockets do not agree: {name}", err=True)
    if apart:
        click.echo(f"as for this machine, {again[0].told_late()}", err=True)
    return 1 if bad or apart else 0


def _moved(done: int, of: int) -> None:
    if done % 50 == 0 or done == of:
        click.echo(f"{done} of {of} plays", err=True)


if __name__ == "__main__":
    sys.exit(main(standalone_mode=False))
