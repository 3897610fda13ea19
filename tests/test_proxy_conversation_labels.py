"""Labels: opaque, stable, and known again when they are sent back."""

import re

from hypothesis import given
from hypothesis import strategies as st

from proxy.conversation.labels import identity, is_label, label_of, new_label

SECRET = bytes(32)
A, B = "a" * 16, "b" * 16
SES = "ses_4a1b2c3d4e5fABCDEFGHIJKLMN"


def test_a_label_is_the_same_in_every_process():
    """A fixed secret gives a fixed label: bindings are found by it after a restart."""
    assert label_of(SECRET, A, identity("x-session-id", SES)) == "f008228dd0003210"


def test_a_long_value_is_one_session_in_whatever_field():
    """Clients do not always send all of their fields."""
    assert (
        identity("x-session-affinity", SES) == identity("x-opencode-session", SES) == identity("prompt_cache_key", SES)
    )


def test_a_short_value_counts_together_with_its_field():
    """Two programs may both count their chats from 1."""
    assert identity("chat_id", "1") != identity("x-task-id", "1")
    assert identity("chat_id", "1") == identity("chat_id", "1")


def test_a_name_given_to_ocpool_is_never_a_clients_id():
    """However long it is, in the path or in the field."""
    assert identity("/s/<name>/", SES) == identity("x-ocpool-conversation", SES) != identity("x-session-id", SES)


values = st.text(min_size=1, max_size=40).filter(str.isprintable)


@given(values, values)
def test_labels_are_opaque_and_differ_by_scope_and_value(one, two):
    """16 hex; the same value in two scopes gives two labels."""
    label = label_of(SECRET, A, identity("x-session-id", one))
    assert re.fullmatch(r"[0-9a-f]{16}", label)
    assert label != label_of(SECRET, B, identity("x-session-id", one))
    assert label != label_of(b"x" * 32, A, identity("x-session-id", one))
    assert (label == label_of(SECRET, A, identity("x-session-id", two))) is (one == two)


@given(values)
def test_a_label_is_known_again_in_its_own_scope_only(value):
    """With nothing stored."""
    for label in (label_of(SECRET, A, value), new_label(SECRET, A)):
        assert is_label(SECRET, A, label)
        assert not is_label(SECRET, B, label)
        assert not is_label(b"x" * 32, A, label)


@given(st.text(max_size=20) | st.text("0123456789abcdef", min_size=16, max_size=16))
def test_another_text_is_no_label(text):
    """A name a user made up is a name."""
    assert not is_label(SECRET, A, text)


def test_new_labels_do_not_repeat():
    """Each request that names nothing has its own."""
    assert len({new_label(SECRET, A) for _ in range(1000)}) == 1000
