"""pool/stores/schema.py"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pool.model import Binding, Shape, Source, Stock, binding_key
from pool.stores import schema
from tests.fakes.pool import GO, MODEL, NOW, spare

SEED_ENTRY = {
    "id": "3f0c6b1e-0000-4000-8000-000000000000",
    "provider": GO,
    "model": MODEL,
    "upstreamMs": 941,
    "verifiedAt": 1794044810123,
    "createdAt": 1794041200000,
}
SEED_BINDING = {
    "routedId": "7d1a90c4-0000-4000-8000-000000000000",
    "provider": GO,
    "model": MODEL,
    "boundAt": 1794044811000,
    "lastSeenAt": 1794044811000,
    "upstreamMs": 1020,
    "verifiedAt": 1794044811000,
    "failures": 0,
}
KEY = binding_key("c1", GO, MODEL)


def test_an_entry_of_the_pi_extension_is_read_and_written_as_it_was():
    read = schema.read_spare(SEED_ENTRY)
    assert read.stock == Stock(GO, MODEL, "", Shape.UUID)
    assert schema.write_spare(read) == SEED_ENTRY


def test_a_binding_of_the_pi_extension_keeps_its_keys_and_values():
    read = schema.read_binding(KEY, SEED_BINDING)
    assert (read.source, read.turns, read.marked) == (Source.SPARE, 0, False)
    written = schema.write_binding(read, SEED_BINDING)
    assert {name: written[name] for name in SEED_BINDING} == SEED_BINDING


def test_unknown_keys_of_a_binding_stay_and_known_ones_that_went_go():
    over = SEED_BINDING | {"marked": True, "standby": "x", "theirs": {"a": 1}}
    read = schema.read_binding(KEY, SEED_BINDING)
    written = schema.write_binding(read, over)
    assert written["theirs"] == {"a": 1}
    assert "marked" not in written
    assert "standby" not in written


@pytest.mark.parametrize("scope", ["", "abc"])
@pytest.mark.parametrize("shape", list(Shape))
def test_scope_and_shape_survive_and_are_left_out_where_they_say_nothing(scope, shape):
    one = spare(stock=Stock(GO, MODEL, scope, shape))
    written = schema.write_spare(one)
    assert ("scope" in written, "shape" in written) == (bool(scope), shape is Shape.SES)
    assert schema.read_spare(written) == one


def test_the_shape_of_an_id_that_says_none_is_how_it_looks():
    assert schema.read_spare(SEED_ENTRY | {"id": "ses_0123456789abABCDEFGHIJKLMN"}).stock.shape is Shape.SES


def test_a_digest_without_a_source_is_a_natural_id():
    read = schema.read_binding(KEY, SEED_BINDING | {"routedId": "digest:abc"})
    assert read.source is Source.NATURAL


@pytest.mark.parametrize(
    ("raw", "wellformed"),
    [
        ({"version": 1, "entries": [], "bindings": {}}, True),
        ({"version": 1}, True),
        ({"version": 2, "entries": "whatever it may be"}, True),
        ({}, False),
        ([], False),
        (None, False),
        ("text", False),
        ({"version": "1"}, False),
        ({"version": True}, False),
        ({"version": 0}, False),
        ({"version": 1, "entries": {}}, False),
        ({"version": 1, "bindings": []}, False),
    ],
)
def test_what_counts_as_a_state_document(raw, wellformed):
    assert schema.is_wellformed(raw) is wellformed


@pytest.mark.parametrize(
    "raw", [None, 3, [], {}, SEED_ENTRY | {"id": ""}, SEED_ENTRY | {"id": 7}, SEED_ENTRY | {"model": None}]
)
def test_what_is_no_entry_is_skipped(raw):
    assert schema.read_spare(raw) is None
    assert schema.read_reserved(raw) is None


@pytest.mark.parametrize("raw", [None, [], {}, SEED_BINDING | {"boundAt": "now"}, SEED_BINDING | {"lastSeenAt": True}])
def test_what_is_no_binding_is_skipped(raw):
    assert schema.read_binding(KEY, raw) is None


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
entry = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys((*SEED_ENTRY, *SEED_BINDING, "scope", "shape", "source", "turns", "standby"), json),
)


@given(raw=st.one_of(json, entry))
def test_reading_never_raises(raw):
    schema.is_wellformed(raw)
    schema.read_spare(raw)
    schema.read_reserved(raw)
    schema.read_binding(KEY, raw)


@given(
    facts=st.fixed_dictionaries(
        {
            "upstream_ms": st.none() | st.integers(0, 10**6).map(float),
            "verified_at": st.none() | st.integers(1, NOW),
            "failures": st.integers(0, 9),
            "turns": st.integers(0, 99),
            "endpoint": st.none() | st.text(min_size=1, max_size=5),
            "scope": st.text(max_size=5),
            "marked": st.booleans(),
            "standby": st.none() | st.text(min_size=1, max_size=5),
            "source": st.sampled_from(Source),
        }
    )
)
def test_a_binding_reads_as_it_was_written(facts):
    one = Binding(key=KEY, provider=GO, model=MODEL, routed_id="r", bound_at=NOW, last_seen_at=NOW, **facts)
    assert schema.read_binding(KEY, schema.write_binding(one, {})) == one


def test_a_number_beyond_all_bounds_is_no_number():
    assert schema.integer(float("inf")) is None
    assert schema.integer(float("nan")) is None
    assert schema.integer(1.6) == 2
