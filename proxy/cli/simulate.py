"""``ocpool simulate``: the simulated gateway alone, for a client or an ``ocpool serve --upstream`` to talk to."""

from typing import TYPE_CHECKING

import click

from proxy.simulator.scenarios import SCENARIOS

if TYPE_CHECKING:
    from proxy.simulator.record import Record
    from proxy.simulator.server import Gateway

PORT_TAKEN = 3


@click.command()
@click.option("--host", metavar="HOST", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=0, show_default=True, help="Port to listen on; 0: a free one."
)
@click.option(
    "--scenario",
    type=click.Choice(list(SCENARIOS)),
    default="sticky",
    show_default=True,
    help="How the gateway behaves.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Which world; the same seed makes the same.")
@click.option(
    "--time-scale",
    type=click.FloatRange(0.01, 600),
    default=1.0,
    show_default=True,
    help="Simulated seconds that pass in a real one.",
)
@click.option("--json", "as_json", is_flag=True, help="Print each line as JSON, for programs.")
def simulate(*, host: str, port: int, scenario: str, seed: int, time_scale: float, as_json: bool) -> int:
    """Run a double of the gateway until it is stopped.

    Its first line is its address, then each request is a line. Any key that starts with sk- works.
    """
    import asyncio

    from pool.clock import Clock
    from proxy.simulator.server import Gateway

    gateway = Gateway(scenario, seed, Clock(time_scale), on_end=_json_line if as_json else _line, keep=1000)
    try:
        asyncio.run(_run(gateway, host, port, as_json, time_scale))
    except KeyboardInterrupt:
        return 0
    except OSError as error:
        click.echo(f"ocpool: cannot listen on {host} port {port}: {error.strerror or error}", err=True)
        return PORT_TAKEN
    return 0


async def _run(gateway: "Gateway", host: str, port: int, as_json: bool, time_scale: float) -> None:
    import asyncio
    import contextlib
    import signal

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C raises instead
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopped.set)
    await gateway.start(host, port)
    world = gateway.world
    address = {"address": gateway.url, "scenario": world.scenario.name, "seed": world.seed, "timeScale": time_scale}
    _say(address if as_json else f"{gateway.url}  ({world.scenario.name}: {world.scenario.says})")
    try:
        await stopped.wait()
    finally:
        await gateway.stop()


def _say(line: object) -> None:
    import json

    print(line if isinstance(line, str) else json.dumps(line), flush=True)


def _json_line(record: "Record") -> None:
    _say(record.facts())


def _line(record: "Record") -> None:
    """One request: when it came first, then what it asked, then who served it and how long that took."""
    facts = record.facts()
    who = record.endpoint or "-"
    what = record.fault or record.error or ""
    ttfb = "-" if record.ttfb_ms is None else f"{record.ttfb_ms:.0f}"
    flags = " ".join(word for word, set_ in (("probe", record.probe), ("aborted", record.aborted)) if set_)
    _say(
        f"{record.number:>5} {record.method} {record.path} {record.model or '-'} session={facts['session'] or '-'} "
        f"{record.status or '-'} {who}{' (bad)' if record.bad else ''} ttfb={ttfb}ms "
        f"prompt={record.prompt_tokens} cached={record.cached_tokens} {what} {flags}".rstrip()
    )
