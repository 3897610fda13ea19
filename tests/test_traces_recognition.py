"""Conversations are told apart by what they contain: precision and recall on the traces, row by row."""

from functools import lru_cache

import pytest

from tests.traces import bars
from tests.traces.report import ROWS, TOGETHER, Line, run
from tests.traces.resolver import Ocpool

pytestmark = pytest.mark.xdist_group("traces")  # one process, so that a row is played once


@lru_cache
def result(name: str) -> Line:
    return run(name, Ocpool)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_over_its_bar(name):
    """Ids removed: 0.95 and 0.85. Ids present: everything. Never a conversation of two credentials."""
    assert not bars.under_row(result(name))


@pytest.mark.timeout(600)
def test_the_means_are_over_theirs():
    """Ids removed: 0.99 and 0.95, of the clients and of the cases."""
    assert not bars.under_means([result(name) for name in ROWS])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_all_of_them_are_told_apart_in_one_daemon():
    """More than a thousand conversations of every client, live at once under two credentials."""
    assert not bars.under_row(result(TOGETHER))
