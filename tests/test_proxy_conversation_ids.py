"""Which of several ids decides, what is no id, and that no bytes ever raise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.conversation.body import BodyFacts
from proxy.conversation.ids import Reading, read_ids
from proxy.conversation.precedence import PRECEDENCE, SIGNALS, Kind, Where
from proxy.gateway import fields as gateway

LONG = "0198c1f2-7a4b-7c3d-9e8f-0123456789ab"


def read(*headers, named=None, ids=()):
    facts = BodyFacts(True, "kimi-k3", True, tuple(ids))
    return read_ids([(name.encode(), value) for name, value in headers], named, facts)


def test_a_lower_rank_wins_and_every_other_owner_that_disagrees_is_named():
    """The values of the others are not in what is logged."""
    reading = read(
        ("x-session-id", b"four"),
        ("x-task-id", b"five"),
        ("x-opencode-session", b"one"),
        ("session-id", b"cohorts may differ"),
        ids=[("chat_id", "six"), ("prompt_cache_key", "nine")],
    )
    assert (reading.rank, reading.value) == (1, "one")
    assert reading.disagrees == ("x-session-id", "x-task-id", "chat_id")


def test_owners_that_agree_are_no_disagreement():
    """Clients send one id in several fields."""
    reading = read(("x-session-affinity", b"s-1"), ("x-session-id", b"s-1"), ids=[("session_id", "s-1")])
    assert (reading.match, reading.disagrees) == ("owner:x-session-affinity", ())


def test_a_name_in_the_path_outranks_all_and_disagrees_with_none():
    """The user's own word is final."""
    reading = read(("x-opencode-session", LONG.encode()), ("x-ocpool-conversation", b"other"), named="work")
    assert reading[:5] == (0, "owner:/s/<name>/", Kind.OWNER, "/s/<name>/", "work")
    assert (reading.session, reading.disagrees) == (LONG, ())


def test_our_own_field_outranks_the_clients():
    """``x-ocpool-conversation`` is the same as a name in the path, for those who cannot change the path."""
    reading = read(("x-opencode-session", b"s-1"), ("X-Ocpool-Conversation", b"work"))
    assert reading[:5] == (0, "owner:x-ocpool-conversation", Kind.OWNER, "x-ocpool-conversation", "work")


@pytest.mark.parametrize(
    "value",
    [
        b"", b"  ", b"a\x00b", b"a\nb", b"a\x1bb", b"\x7f", b"a\tb", b"\xff\xfe", b"\xc3", b"x" * 257, b"x" * 5000,
        "a\u200bb".encode(), "\u202eab".encode(), b"null", b"None", b"undefined", b"{{CHAT_ID}}",
    ],
)  # fmt: skip
def test_a_value_that_is_no_id_is_passed_over_and_the_next_one_decides(value):
    """Control characters, over 256 characters, nothing at all: the request goes on without that id."""
    assert read(("x-opencode-session", value)).match == "new"
    assert read(("x-opencode-session", value), ("x-session-id", b"good")).value == "good"


@pytest.mark.parametrize(
    ("sent", "value"),
    [(b" \t abc \t", "abc"), (b"x" * 256, "x" * 256), (b"two words", "two words"), ("Grüße".encode(), "Grüße")],
)
def test_an_id_is_trimmed_and_compared_exactly(sent, value):
    """Case and inner spaces count."""
    assert read(("x-opencode-session", sent)).value == value


@pytest.mark.parametrize("name", ["\x00", "x" * 257, " ", "a\nb"])
def test_a_name_in_the_path_that_is_no_id_is_passed_over(name):
    """A bad name does not stop the request."""
    assert read(named=name).match == "new"


def test_of_one_field_sent_twice_the_first_counts():
    """As most servers read it."""
    reading = read(("x-session-id", b"first"), ("X-Session-Id", b"second"))
    assert (reading.value, reading.session) == ("first", "first")


@pytest.mark.parametrize(
    "metadata",
    [b"", b"{", b"[]", b"null", b'{"thread_id": 7}', b'{"thread_id": "a\\u0000b"}', b"\xff", b'{"thread_id":"' + b"x" * 20000 + b'"}', b"[" * 9000],
)  # fmt: skip
def test_turn_metadata_that_cannot_be_read_is_passed_over(metadata):
    """It is the client's JSON; it may be anything."""
    assert read(("x-codex-turn-metadata", metadata), ("session-id", b"s-1")).match == "cohort:session-id"


def test_an_agent_without_a_session_is_nobody():
    """The agent's id is only half of a pair."""
    assert read(("x-claude-code-agent-id", b"agent-7")).match == "new"


def test_without_a_body_the_fields_still_decide():
    """A compressed or unread body costs only its own ids."""
    assert read_ids([(b"x-session-id", b"s-1")], None, None).value == "s-1"


def test_long_names_do_not_fill_the_memo():
    """A client may send what names it likes."""
    from proxy.conversation.precedence import find

    before = find.cache_info().currsize
    read(*((f"x-{'a' * 100}{number}-session-id", b"v") for number in range(50)))
    assert find.cache_info().currsize == before


def test_what_is_read_as_a_session_is_what_leaves_as_none():
    """Every session field of ranks 1 to 5 and 8 is one that the way up replaces, and the other way round."""
    read_here = {name for row in PRECEDENCE if row.where is Where.FIELD and row.rank > 0 for name in row.names} | {
        "x-claude-code-agent-id"
    }
    assert {name.decode().replace("_", "-") for name in gateway.SESSION_FIELDS} - read_here <= {
        "x-deepseek-harness-session-id"  # known here by the pattern
    }
    for name in read_here:
        spellings = (name.encode(), name.replace("-", "_").encode())
        assert any(gateway.is_session_field(spelled) for spelled in spellings), name
    parents = {name for name, signal in SIGNALS.items() if signal.where is Where.PARENT}
    assert parents == {name.decode() for name in gateway.PARENT_FIELDS}


names = st.sampled_from([name.encode() for name in SIGNALS]) | st.binary(max_size=80)


@given(
    st.lists(st.tuples(names, st.binary(max_size=300)), max_size=12),
    st.none() | st.text(max_size=300),
    st.lists(st.tuples(st.sampled_from(list(SIGNALS)), st.text(max_size=20)), max_size=4),
)
def test_no_fields_ever_raise(fields, named, ids):
    """Whatever is sent, there is a reading, and its value is an id or nothing."""
    reading = read_ids(fields, named, BodyFacts(True, ids=tuple(ids)))
    assert isinstance(reading, Reading)
    assert (reading.kind is Kind.NONE) == (reading.match == "new") == (reading.rank == 11)
    assert reading.match.isprintable()
    assert reading.match.isascii()
