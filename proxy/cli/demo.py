"""``ocpool demo``: conversations played direct and through ocpool, against a simulated gateway, in one process."""

from typing import TYPE_CHECKING, Final

import click

from proxy.cli.options import json_option, print_json

if TYPE_CHECKING:
    from proxy.cli.comparing import Comparison, Moved

MOST: Final = 60


@click.command()
@click.option(
    "--scale",
    type=click.FloatRange(1, MOST),
    default=MOST,
    show_default=True,
    help="Simulated seconds that pass in a real one; a smaller scale is more exact and takes longer.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Which world and which conversations.")
@json_option
def demo(scale: float, seed: int, as_json: bool) -> int:
    """Show what ocpool does, offline and without a key, in under half a minute.

    Plays the same conversations direct and through ocpool, once against a gateway that keeps an id on its route and
    once against one that balances every request.
    """
    from proxy.cli import showing

    with showing.progress(quiet=as_json) as moved:
        compared = _compare(scale, seed, moved)
    if as_json:
        print_json(showing.as_json(compared))
        return 0
    from rich.console import Console

    showing.show(Console(highlight=False), compared)
    return 0


def _compare(scale: float, seed: int, moved: "Moved") -> "Comparison":
    import asyncio
    import tempfile
    from pathlib import Path

    from proxy.cli.comparing import compare
    from proxy.serve import loop_factory

    with (
        tempfile.TemporaryDirectory(prefix="ocpool-demo-") as folder,
        asyncio.Runner(loop_factory=loop_factory("uvloop")) as runner,
    ):
        return runner.run(compare(scale, seed, Path(folder), moved))
