"""What is allowed and probably not meant."""

import pytest

from config.doubts import doubts
from config.settings import Settings


def doubted(**sections):
    """The doubts about settings."""
    return doubts(Settings.model_validate(sections))


def test_the_defaults_are_beyond_doubt():
    """Nothing is said to a user who sets nothing."""
    assert doubted() == []


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        (
            {"quarantine": {"degrade_ms": 8000}},
            "quarantine.degrade_ms (8000) is not below quarantine.quarantine_ms (8000)",
        ),
        ({"probe": {"timeout_ms": 2000}}, "probe.max_upstream_ms (2500) is above probe.timeout_ms (2000)"),
        ({"models": {"m": {"degrade_ms": 9000}}}, 'models."m".degrade_ms (9000) is not below'),
        ({"models": {"m": {"max_upstream_ms": 20_000}}}, 'models."m".max_upstream_ms (20000) is above'),
        ({"listen": {"host": "0.0.0.0", "insecure": True}}, "listen.host 0.0.0.0 is open to other machines"),
        ({"upstream": {"base_url": "http://gateway.example"}}, "upstream.base_url is http"),
    ],
)
def test_what_is_probably_not_meant_is_said(sections, words):
    """In one line, by the names of the keys."""
    (doubt,) = doubted(**sections)
    assert words in doubt


def test_a_gateway_on_this_machine_may_speak_http():
    """As the simulated one does."""
    for url in ("http://127.0.0.1:1", "http://[::1]:1/x", "http://localhost"):
        assert doubted(upstream={"base_url": url}) == []


def test_an_open_listener_with_a_token_is_meant():
    """That is how it is done."""
    assert doubted(listen={"host": "0.0.0.0", "token": "x"}) == []
    assert doubted(listen={"host": "0.0.0.0", "tokens": {"a": "x"}}) == []
