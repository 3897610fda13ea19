"""The ruler of the traces: it shows a resolver that joins too much, one that parts too much, and one that is right."""

from dataclasses import replace
from functools import lru_cache

import pytest

from tests.traces import bars
from tests.traces.report import line, played
from tests.traces.score import Judged, score

ROW = "openai-sdk"


class Naive:
    """A label from what a request looks like."""

    def __init__(self, label):
        self._label = label
        self._count = 0

    def begin(self, sent, now):
        self._count += 1
        return self._label(sent, self._count), "naive", None

    def end(self, token, reply, now):
        pass


def key_of(sent):
    return next(value for name, value in sent.fields if name == b"Authorization").decode()


def by(label, row=ROW):
    lanes = played(row, lambda: Naive(label))
    return line(row, *lanes)


@lru_cache
def told(row):
    return played(row, lambda: Naive(lambda sent, count: str(count)))


def right(row):
    """The same row as one who knows the answer would have played it."""
    removed, present = ([replace(one) for one in lane] for lane in told(row))
    for one in removed:
        one.label = f"{one.request.key}/{one.request.content or one.request.truth}"
    for one in present:
        one.label = f"{one.request.key}/{one.request.truth}"
    return removed, present


def pairs(*judged):
    found = score([Judged(*one) for one in judged])
    return found.joined, found.wrong, found.due, found.missed


def test_a_resolver_that_joins_everything_has_no_precision():
    found = by(lambda sent, count: "one")
    assert found.removed.recall == 1
    assert found.removed.precision < 0.1
    assert found.crossed > 0
    assert any("precision" in wrong for wrong in bars.under([found]))
    assert any("credential" in wrong for wrong in bars.under([found]))


def test_a_resolver_that_parts_everything_has_no_recall():
    found = by(lambda sent, count: str(count))
    assert found.removed.precision == 1
    assert found.removed.recall < 0.01
    assert any("recall" in wrong for wrong in bars.under([found]))


@pytest.mark.parametrize(
    ("row", "label"),
    [
        (ROW, lambda sent, count: key_of(sent)),
        (ROW, lambda sent, count: sent.chunks[0][:300].decode(errors="replace")),
        ("one opener, live at once", lambda sent, count: sent.chunks[0][-60:].decode(errors="replace")),
    ],
    ids=["the credential", "how a body begins", "how a body ends"],
)
def test_what_simple_proxies_go_by_is_under_the_bar(row, label):
    assert bars.under([by(label, row)])


def test_one_who_knows_the_answer_is_over_every_bar():
    for row in (ROW, "pi", "identical openers and answers, 2 turns", "a static header", "edits"):
        assert not bars.under([line(row, *right(row))])


def test_one_conversation_cut_in_two_is_seen():
    removed, present = right(ROW)
    victim = removed[-1].request.truth
    mine = [one for one in removed if one.request.truth == victim]
    for one in mine[: len(mine) // 2]:
        one.label += "/first"
    assert line(ROW, removed, present).removed.missed == len(mine) // 2 * (len(mine) - len(mine) // 2)


def test_two_conversations_made_one_are_seen():
    removed, present = right(ROW)
    labels = sorted({one.label for one in removed if one.request.key.startswith("sk-first")})[:2]
    sizes = [sum(one.label == label for one in removed) for label in labels]
    for one in removed:
        one.label = labels[0] if one.label == labels[1] else one.label
    assert line(ROW, removed, present).removed.wrong == sizes[0] * sizes[1]


def test_with_ids_a_single_pair_under_one_fails():
    removed, present = right(ROW)
    present[0] = replace(present[0], label="elsewhere")
    assert any("ids present" in wrong for wrong in bars.under([line(ROW, removed, present)]))


def test_a_swap_of_what_nothing_tells_apart_harms_nobody():
    swapped = [
        ("a", "x", "hi"),
        ("b", "y", "hi"),
        ("a", "y", "a2"),
        ("b", "x", "b2"),
        ("a", "y", "a3"),
        ("b", "x", "b3"),
    ]
    assert pairs(*swapped) == (6, 0, 6, 0)


def test_two_that_nothing_tells_apart_are_still_two():
    assert pairs(("a", "x", "hi"), ("b", "x", "hi")) == (1, 1, 0, 0)


def test_a_repeated_request_is_one_conversation():
    assert pairs(("a", "x", "hi"), ("a", "y", "hi")) == (0, 0, 1, 1)


def test_a_swap_does_not_excuse_what_came_after_it():
    joined = [("a", "x", "hi"), ("b", "y", "hi"), ("a", "x", "a2"), ("b", "x", "b2")]
    assert pairs(*joined) == (3, 1, 2, 0)


def test_to_join_two_that_began_alike_is_no_swap():
    assert pairs(("a", "x", "hi"), ("b", "x", "hi"), ("a", "x", "a2"), ("b", "x", "b2")) == (6, 4, 2, 0)
