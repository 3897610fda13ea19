"""Token counts in every spelling, with what was not said kept apart from zero."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.answers.usage import Usage, merged, normalised

NAMES = [
    "prompt_tokens", "input_tokens", "promptTokenCount", "completion_tokens", "output_tokens", "candidatesTokenCount",
    "cached_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "thoughtsTokenCount",
    "cachedContentTokenCount", "prompt_cache_hit_tokens", "cache_creation", "prompt_tokens_details",
    "completion_tokens_details",
]  # fmt: skip


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({}, None),
        ({"prompt_tokens": "many", "prompt_tokens_details": None, "completion_tokens": True}, None),
        ({"prompt_tokens": 5, "completion_tokens": 1}, Usage(5, None, None, 1)),
        ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 0}}, Usage(5, 0)),
        ({"prompt_tokens": 5, "cached_tokens": 2, "completion_tokens": 1}, Usage(5, 2, None, 1)),
        ({"prompt_tokens": 5, "prompt_cache_hit_tokens": 3, "prompt_cache_miss_tokens": 2}, Usage(5, 3)),
        (
            {
                "prompt_tokens": 1000,
                "completion_tokens": 50,
                "prompt_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 200},
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            Usage(1000, 600, 200, 50, 20),
        ),
        (
            {
                "input_tokens": 5,
                "output_tokens": 3,
                "input_tokens_details": {"cached_tokens": 1},
                "output_tokens_details": {"reasoning_tokens": 2},
            },
            Usage(5, 1, None, 3, 2),
        ),
        ({"input_tokens": 5, "cache_read_input_tokens": 4, "output_tokens": 1}, Usage(9, 4, None, 1)),
        (
            {"input_tokens": 5, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 3},
            Usage(12, 4, 3),
        ),
        (
            {
                "input_tokens": 5,
                "cache_read_input_tokens": 0,
                "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 1},
            },
            Usage(8, 0, 3),
        ),
        ({"input_tokens": 5}, Usage(5)),
        (
            {"promptTokenCount": 9, "cachedContentTokenCount": 4, "candidatesTokenCount": 3, "thoughtsTokenCount": 2},
            Usage(9, 4, None, 5, 2),
        ),
        ({"prompt_tokens": 100, "cached_tokens": 140, "prompt_tokens_details": {"cache_write_tokens": 20}}, Usage(100, 100, 0)),
        ({"prompt_tokens": 10**13, "completion_tokens": -1}, None),
    ],
)  # fmt: skip
def test_usage_in_every_spelling(usage, expected):
    assert normalised(usage) == expected


@given(
    st.dictionaries(
        st.sampled_from(NAMES),
        st.integers()
        | st.text(max_size=3)
        | st.none()
        | st.dictionaries(st.sampled_from(NAMES), st.integers(), max_size=3),
    )
)
def test_parts_never_exceed_the_whole_and_nothing_raises(raw):
    usage = normalised(raw)
    if usage is not None and usage.uncached is not None:
        assert usage.uncached >= 0


CHAT = {
    "prompt_tokens": st.integers(-1, 9),
    "completion_tokens": st.integers(-1, 9),
    "total_tokens": st.integers(),
    "prompt_tokens_details": st.dictionaries(
        st.sampled_from(["cached_tokens", "cache_write_tokens", "audio_tokens"]), st.integers(-1, 12) | st.none()
    )
    | st.none(),
    "completion_tokens_details": st.dictionaries(st.just("reasoning_tokens"), st.integers(-1, 9) | st.booleans())
    | st.integers(),
}


@given(st.fixed_dictionaries({}, optional=CHAT))
def test_a_plain_chat_completions_counts_are_those_of_any_spelling(raw):
    """A name of another protocol that tells nothing changes nothing, but how the object is read."""
    if raw:
        assert normalised(raw) == normalised({**raw, "input_tokens": None})


def test_uncached_is_unknown_where_the_prompt_is():
    assert Usage(cached=5).uncached is None
    assert Usage(10, 4, 1).uncached == 5


def test_a_later_report_completes_an_earlier_one():
    assert merged({"a": 1, "b": 2}, {"a": 3, "b": None}) == {"a": 3, "b": 2}
