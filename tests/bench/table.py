"""The figures as tables."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from tests.bench.measures import CONNECTIONS, EVERY_MS, OPEN_STREAMS, STREAMS
from tests.bench.rounds import DISTURBED, Patience, Results
from tests.bench.targets import AIOHTTP, DIRECT, OCPOOL, PLAIN, TLS

_WIDTH = 120
_NONE = "-"

Row = list[str]


def _shown(value: float | None, form: str) -> str:
    return format(value, form) if value is not None else _NONE


def _ratio(results: Results, target: str, way: str, name: str) -> str:
    ours, plain = results.mid(target, way, name), results.mid(AIOHTTP, way, name)
    return f"{ours / plain:.2f}" if ours is not None and plain else _NONE


def _added(results: Results, target: str, way: str, name: str) -> str:
    """A transit, without what it takes without a proxy."""
    value, direct = results.mid(target, way, name), results.mid(DIRECT, way, name)
    return f"{value - direct:,.0f}" if target != DIRECT and value is not None and direct is not None else _NONE


def relay_rows(results: Results) -> list[Row]:
    """Requests and events."""
    rows = []
    for way in (PLAIN, TLS):
        for target in (DIRECT, AIOHTTP, OCPOOL):
            at = target, way
            rows.append(
                [
                    target,
                    way,
                    _shown(results.mid(*at, "requests_per_s"), ",.0f"),
                    _shown(results.mid(*at, "cpu_us_per_request"), ".1f"),
                    _ratio(results, *at, "cpu_us_per_request"),
                    _shown(results.mid(*at, "events_per_s"), ",.0f"),
                    _shown(results.mid(*at, "cpu_us_per_event"), ".1f"),
                    _ratio(results, *at, "cpu_us_per_event"),
                    _added(results, *at, "transit_p50_us"),
                    _added(results, *at, "transit_p99_us"),
                ]
            )
    return rows


def other_rows(results: Results) -> list[Row]:
    """Memory, large bodies, starts, and conversations that nobody names."""
    rows = []
    for target in (DIRECT, AIOHTTP, OCPOOL):
        at = target, PLAIN
        opened, known = results.mid(*at, "openings_per_s"), results.mid(*at, "requests_per_s")
        rows.append(
            [
                target,
                _shown(results.mid(*at, "mib_per_1000_streams"), ".1f"),
                _shown(results.mid(*at, "routed_10mib_ms"), ".1f"),
                _shown(results.mid(*at, "unrouted_10mib_ms"), ".1f"),
                _shown(results.mid(*at, "start_ms"), ",.0f"),
                _shown(opened, ",.0f"),
                f"{opened / known:.2f}" if opened is not None and known else _NONE,
            ]
        )
    return rows


WORDS = {"proxy", "upstream", "part"}
RELAY = (
    "proxy",
    "upstream",
    "requests/s",
    "CPU us/req",
    "x aiohttp",
    "events/s",
    "CPU us/event",
    "x aiohttp",
    "+p50 us",
    "+p99 us",
)
OTHER = ("proxy", "MiB/1,000 streams", "10 MiB ms", "unrouted ms", "first 200 ms", "new/s", "x known")


def made_console() -> Console:
    """Where tables are printed."""
    return Console(width=_WIDTH, highlight=False)


def table_of(title: str, columns: Sequence[str], rows: list[Row], *, markdown: bool) -> Table:
    """One table, for people or for a document."""
    table = Table(title=None if markdown else title, title_justify="left", box=box.MARKDOWN if markdown else box.SIMPLE)
    for name in columns:
        table.add_column(name, justify="left" if name in WORDS else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def show(results: Results, patience: Patience, number: int, *, markdown: bool) -> None:
    """Print all of it, and how undisturbed it was."""
    console = made_console()
    load = f"{CONNECTIONS} connections; {STREAMS} streams of an event each {EVERY_MS} ms"
    console.print(table_of(f"Medians of {number} rounds: {load}", RELAY, relay_rows(results), markdown=markdown))
    console.print(table_of(f"Memory with {OPEN_STREAMS} streams open", OTHER, other_rows(results), markdown=markdown))
    console.print(
        f"{patience.measured} measurements, {patience.repeated} repeated because others used over {DISTURBED:.0%} of the "
        f"machine; {patience.kept} stayed disturbed" + (f", by up to {patience.worst:.0%}." if patience.kept else ".")
    )
