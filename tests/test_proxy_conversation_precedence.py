"""The table itself: one declaration, in order, with nothing in two places."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.conversation.precedence import (
    BODY_KEYS,
    MARKS,
    NEVER_FIELDS,
    NEVER_PLACES,
    PRECEDENCE,
    SIGNALS,
    Kind,
    Where,
    accept,
    canonical,
    find,
    signal_of,
)


def test_rows_stand_in_the_order_of_their_ranks():
    """So the place in the table is the precedence."""
    ranks = [row.rank for row in PRECEDENCE]
    assert ranks == sorted(ranks)
    assert set(ranks) == {0, 1, 2, 3, 4, 5, 6, 8, 9}


def test_no_signal_is_declared_twice():
    """Every name has one rank and one class."""
    names = [name for row in PRECEDENCE + MARKS for name in row.names]
    assert len(names) == len(set(names)) == len(SIGNALS)


def test_every_owner_is_stronger_than_every_cohort():
    """A cohort never decides where an owner speaks."""
    kinds = [row.kind for row in PRECEDENCE]
    assert kinds == sorted(kinds, key=[Kind.OWNER, Kind.COHORT].index)


def test_what_is_never_an_identity_is_not_in_the_table():
    """Neither a field nor a place in a body."""
    assert not NEVER_FIELDS & SIGNALS.keys()
    assert not NEVER_PLACES & set(BODY_KEYS)


def test_field_names_are_canonical():
    """Else they would not be found."""
    for row in PRECEDENCE + MARKS:
        if row.where not in {Where.BODY, Where.PATH, Where.RULE, Where.PATTERN, Where.PAIR}:
            assert all(name == canonical(name.encode()) for name in row.names)


@given(st.binary(max_size=100))
def test_any_name_is_a_signal_or_none_and_the_memo_says_the_same(name):
    """No bytes raise."""
    assert find(name) == signal_of(name)


@pytest.mark.parametrize("name", sorted(NEVER_FIELDS))
def test_a_never_field_is_not_found(name):
    """Whatever it looks like."""
    assert signal_of(name.encode()) is None


@given(st.text(max_size=300))
def test_what_is_accepted_is_printable_short_and_trimmed(text):
    """And accepting it again changes nothing."""
    value = accept(text)
    if value is not None:
        assert value.isprintable()
        assert 0 < len(value) <= 256
        assert value == value.strip(" \t") == accept(value)
