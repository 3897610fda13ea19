"""Values given as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.keys import KEYS
from config.values import NotTomlError, read_text, toml_value


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("pool.size", "4", 4),
        ("pool.size", " 4 ", 4),
        ("pool.ttl_ms", "1_800_000", 1_800_000),
        ("pool.size", "four", "four"),
        ("pool.size", "1\ny = 2", "1\ny = 2"),
        ("pool.size", "4.0", 4.0),
        ("headers.expose", "0", False),
        ("headers.expose", "True", True),
        ("headers.expose", "off", False),
        ("headers.expose", "maybe", "maybe"),
        ("listen.token", "12345", "12345"),
        ("listen.token", "'12345'", "12345"),
        ("listen.token", "true", "true"),
        ("listen.token", '"half', '"half'),
        ("listen.host", "127.0.0.1", "127.0.0.1"),
        ("routing.mode", "off", "off"),
        ("routing.models", "kimi-k3", ["kimi-k3"]),
        ("routing.models", "kimi-k3, glm-5", ["kimi-k3", "glm-5"]),
        ("routing.models", "3", ["3"]),
        ("routing.models", '["a", "b"]', ["a", "b"]),
        ("routing.models", '"a,b"', ["a,b"]),
        ("routing.models", "[a]", "[a]"),
        ("routing.models", "", []),
        ("listen.tokens", '{alice = "x"}', {"alice": "x"}),
        ("listen.tokens", "alice", "alice"),
        ("conversation.rules", '[{path = "/", class = "owner"}]', [{"path": "/", "class": "owner"}]),
    ],
)
def test_text_is_read_as_the_file_would_with_bare_words_as_strings(name, text, value):
    """The type of the key decides where TOML alone would not."""
    read = read_text(KEYS[name], text)
    assert read == value
    assert type(read) is type(value)


@given(st.sampled_from(sorted(KEYS)), st.text())
def test_reading_never_fails(name, text):
    """What cannot be read is left for the range check."""
    read_text(KEYS[name], text)


@pytest.mark.parametrize("text", ["", "[" * 5000, "9" * 5000, "a", "1\nb = 2", "1 2", "{"])
def test_what_is_no_toml_value_says_so(text):
    """Endless brackets and digits included."""
    with pytest.raises(NotTomlError):
        toml_value(text)
