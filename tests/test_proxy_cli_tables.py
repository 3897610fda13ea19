"""Tables for people."""

import io

import pytest
from rich.console import Console

from proxy.cli.tables import cell, fact, milliseconds, show_table


def shown(rows, columns):
    """A table as text."""
    out = io.StringIO()
    show_table(Console(file=out, width=80), "Title", rows, columns)
    return out.getvalue()


def test_no_rows_no_table():
    """Not even its title."""
    assert shown([], [("a", fact("a"))]) == ""


def test_columns_that_are_empty_throughout_are_left_out():
    """An older daemon does not know them."""
    text = shown([{"a": 1, "c": None}, {"a": None, "b": 2}], [("a", fact("a")), ("b", fact("b")), ("c", fact("c"))])
    title, header, *lines = [line.split() for line in text.splitlines() if line.strip()]
    assert (title, header, lines) == (["Title"], ["a", "b"], [["1", "-"], ["-", "2"]])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        ("", "-"),
        ([], "-"),
        (True, "yes"),
        (False, "no"),
        (1.25, "1.2"),
        (["a", None], "a, -"),
        ("[red]x", "[red]x"),
        ("\x1b[2J\n", "\\x1b[2J\\x0a"),
    ],
)
def test_a_cell_is_plain_text(value, text):
    """Markup and control characters of a client do nothing."""
    assert cell(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(941.4, "941 ms"), (12_000, "12 s"), (-1, "in the future"), (None, None), (True, None)]
)
def test_durations_are_shown_in_a_sensible_unit(value, text):
    """Below ten seconds the milliseconds matter."""
    assert milliseconds("x")({"x": value}) == text
