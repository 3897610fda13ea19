"""``ocpool serve``: the daemon. What it does is in ``proxy/serve.py``; here are only its options."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proxy.cli.options import load_settings, settings_options

if TYPE_CHECKING:
    from proxy.pages import Control


@click.command()
@settings_options
@click.option("--host", metavar="HOST", help="Address to listen on (listen.host).")
@click.option("--port", metavar="PORT", help="Port to listen on, 0 for a free one (listen.port).")
@click.option("--upstream", metavar="URL", help="Where requests go (upstream.base_url).")
def serve(
    config_file: Path | None, overrides: Sequence[str], host: str | None, port: str | None, upstream: str | None
) -> int:
    """Run the proxy until it is stopped.

    Prints its address on stdout when it accepts connections; the log goes to stderr. SIGHUP reads the settings again,
    SIGTERM stops accepting and lets running answers finish within listen.drain_ms, a second one stops at once.
    """
    flags = {"listen.host": host, "listen.port": port, "upstream.base_url": upstream}
    chosen = [*overrides, *(f"{key}={value}" for key, value in flags.items() if value is not None)]
    loaded = load_settings(config_file, chosen)

    from config.load import load
    from proxy.serve import run

    return run(loaded, control=_control, reload=lambda: load(config_file, chosen))


def _control() -> "Control":
    """The daemon's own pages; loaded once it accepts requests, since aiohttp takes its time."""
    from proxy.control.routes import control

    return control
