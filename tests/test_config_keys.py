"""Keys by their names."""

import pytest

from config.keys import KEYS, Kind, find, nearest, spell, unknown


def test_a_key_knows_what_its_section_declares():
    """Kind, range, unit and names are read off the section."""
    key = KEYS["pool.ttl_ms"]
    assert (key.kind, key.low, key.high, key.noun) == (Kind.NUMBER, 1, 86_400_000, "milliseconds")
    assert (key.name, key.variable, key.default) == ("pool.ttl_ms", "OCPOOL_POOL__TTL_MS", 1_800_000)
    assert key.expects == "must be a whole number of milliseconds from 1 to 86400000"


@pytest.mark.parametrize(
    ("name", "kind", "expects"),
    [
        ("pool.size", Kind.NUMBER, "must be a whole number from 1 to 16"),
        ("headers.expose", Kind.SWITCH, "must be true or false"),
        ("routing.mode", Kind.CHOICE, "must be one of route, observe, off"),
        ("routing.providers", Kind.LIST, "must be a list of opencode-go, opencode"),
        ("routing.models", Kind.LIST, "must be a list"),
        ("listen.tokens", Kind.TABLE, "must be a table"),
        ("conversation.rules", Kind.LIST, "must be a list"),
        ("log.path", Kind.TEXT, "must be text"),
    ],
)
def test_a_refusal_says_what_a_key_expects(name, kind, expects):
    """The words of a refusal follow from the type."""
    assert KEYS[name].kind is kind
    assert KEYS[name].expects == expects


def test_the_secret_keys_are_these():
    """A new secret must be declared as one."""
    secret = {name for name, key in KEYS.items() if key.secret}
    assert secret == {"listen.token", "listen.tokens", "probe.api_key", "state.secret"}


def test_every_number_has_a_unit_in_its_name_or_is_a_count_and_has_a_range():
    """A unit is never only in the description."""
    nouns = {"_ms": "milliseconds", "_bytes": "bytes", "_tokens": "tokens", "_tps": "tokens a second"}
    for key in KEYS.values():
        if key.kind is Kind.NUMBER:
            assert key.low is not None, key.name
            assert key.high is not None, key.name
            assert key.low <= key.default <= key.high, key.name
            assert key.noun == next((noun for end, noun in nouns.items() if key.field.endswith(end)), ""), key.name


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("pool.sise", "pool.size"),
        ("pool.min_interval_ms", "probe.min_interval_ms"),
        ("pol.size", "pool.size"),
        ("port", "listen.port"),
        ("log.lvl", "log.level"),
    ],
)
def test_the_nearest_name_is_one_a_user_would_mean(name, near):
    """There always is a nearest one."""
    assert nearest(name, KEYS) == near
    assert nearest("", KEYS) in KEYS


def test_a_path_finds_its_key():
    """A model's keys are those of probe and quarantine."""
    assert find(("pool", "size")) is KEYS["pool.size"]
    assert find(("models", "kimi-k3", "timeout_ms")) is KEYS["probe.timeout_ms"]
    for path in ((), ("pool",), ("pool", "x"), ("models", "m"), ("models", "m", "size"), ("pool", "size", "x")):
        assert find(path) is None


def test_a_models_name_is_spelled_in_quotes():
    """As in the file."""
    assert spell(("models", "kimi-k2.6", "timeout_ms")) == 'models."kimi-k2.6".timeout_ms'
    assert spell(("pool", "size")) == "pool.size"
    assert (
        unknown(("models", "m", "timeout"))
        == 'models."m".timeout: no such setting; the nearest is models."m".timeout_ms'
    )
    assert unknown(("pool", "x", "y")).startswith("pool.x.y: no such setting; the nearest is ")
