"""Tables for people, from rows that came as JSON: a fact that is missing is a dash, never an error."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from proxy.cli.instants import duration

if TYPE_CHECKING:
    from rich.console import Console

Row = Mapping[str, Any]
Column = tuple[str, Callable[[Row], object]]


def console() -> "Console":
    """stdout; not cut to 80 columns where nobody looks."""
    from rich.console import Console

    made = Console(highlight=False)
    return made if made.is_terminal else Console(highlight=False, width=200)


def fact(name: str) -> Callable[[Row], object]:
    """A column's value by its name."""
    return lambda row: row.get(name)


def milliseconds(name: str) -> Callable[[Row], object]:
    """A duration as people read it; below ten seconds to the millisecond."""

    def read(row: Row) -> object:
        value = row.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            return None
        if value < 0:
            return "in the future"
        return f"{value:.0f} ms" if value < 10_000 else duration(value)

    return read


def show_table(to: "Console", title: str, rows: Sequence[Row], columns: Sequence[Column]) -> None:
    """Print a table; nothing where there are no rows. Columns that are empty throughout are left out."""
    if not rows:
        return
    from rich.table import Table
    from rich.text import Text

    cells = [[cell(read(row)) for _, read in columns] for row in rows]
    used = [number for number in range(len(columns)) if any(line[number] != "-" for line in cells)]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for number in used:
        table.add_column(columns[number][0], style="", header_style="dim", no_wrap=True)
    for line in cells:
        table.add_row(*(Text(line[number]) for number in used))
    to.print()
    to.print(Text(title, style="bold"))
    to.print(table)


def cell(value: object) -> str:
    """One value. What a client chose must not move the cursor."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, list | tuple):
        return ", ".join(cell(item) for item in value) or "-"
    return printable(str(value))


def printable(text: str) -> str:
    """Text with everything that is not printed shown as an escape."""
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)
