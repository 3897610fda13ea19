"""The tree of settings as a whole."""

import pytest
from pydantic import ValidationError

from config.keys import KEYS, MODEL_KEYS
from config.settings import Settings


def test_defaults_are_those_of_the_design():
    """A few that clients and the documentation rely on."""
    settings = Settings()
    assert (settings.listen.host, settings.listen.port, settings.listen.drain_ms) == ("127.0.0.1", 8377, 8000)
    assert (settings.pool.size, settings.pool.ttl_ms, settings.pool.max_probes_per_hour) == (3, 1_800_000, 40)
    assert (settings.probe.max_upstream_ms, settings.probe.timeout_ms, settings.probe.max_tokens) == (2500, 10_000, 1)
    assert settings.upstream.base_url == "https://opencode.ai"
    assert settings.routing.providers == ("opencode-go", "opencode")


def test_settings_built_in_pieces_equal_those_built_at_once():
    """A section that is absent and a section of its own make the same tree."""
    assert Settings() == Settings.model_validate({"pool": {}})
    assert Settings(pool=Settings().pool) == Settings()


def test_settings_are_frozen():
    """Nobody changes a setting in place."""
    with pytest.raises(ValidationError):
        Settings().pool.size = 4


def test_an_error_does_not_show_what_was_given():
    """Even pydantic's own words hold no value."""
    with pytest.raises(ValidationError) as error:
        Settings.model_validate({"probe": {"api_key": 12345}, "pool": {"size": "canary"}})
    assert "12345" not in str(error.value)
    assert "canary" not in str(error.value)


def test_settings_are_a_table():
    """What is no table is refused as such."""
    with pytest.raises(ValidationError):
        Settings.model_validate([])


def test_a_model_has_its_own_limits_and_the_rest_of_the_common_ones():
    """models."NAME" changes the keys it sets, for that model alone."""
    settings = Settings.model_validate(
        {"probe": {"timeout_ms": 5000}, "models": {"kimi-k3": {"max_upstream_ms": 9000, "failures": 5}}},
    )
    assert settings.probe_for("kimi-k3").max_upstream_ms == 9000
    assert settings.probe_for("kimi-k3").timeout_ms == 5000
    assert settings.quarantine_for("kimi-k3").failures == 5
    assert settings.quarantine_for("kimi-k3").degrade_ms == settings.quarantine.degrade_ms
    assert settings.probe_for("other") == settings.probe
    assert settings.quarantine_for("other") == settings.quarantine


def test_a_model_takes_every_key_of_probe_and_quarantine_and_no_other():
    """They are declared once."""
    assert set(MODEL_KEYS) == {key.field for key in KEYS.values() if key.section in {"probe", "quarantine"}}
    defaults = {key.field: key.default for key in MODEL_KEYS.values() if key.default is not None}
    assert Settings.model_validate({"models": {"m": defaults}}).probe_for("m") == Settings().probe
    for field, value in (("size", 3), ("timeout_ms", 0), ("failures", True)):
        with pytest.raises(ValidationError):
            Settings.model_validate({"models": {"m": {field: value}}})
