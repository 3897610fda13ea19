"""Settings from the environment, under our names and under those of pi-opencode-session-pool."""

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from config.keys import KEYS
from config.load import SettingsError, load
from config.notes import Notes
from config.reference import toml
from config.variables import EXTENSION_KEYS, variables
from config.view import shown

HOME = {"HOME": "/nonexistent"}

# Each of the extension's variables, a value that is not the default, and what comes of it.
EXTENSION = [
    ("", "0", "routing.mode", "off"),
    ("SIZE", "5", "pool.size", 5),
    ("TTL_MS", "60000", "pool.ttl_ms", 60_000),
    ("MAX_UPSTREAM_MS", "3000", "probe.max_upstream_ms", 3000),
    ("PROBE_TIMEOUT_MS", "9000", "probe.timeout_ms", 9000),
    ("STARTUP_BUDGET_MS", "6000", "pool.startup_budget_ms", 6000),
    ("REQUEST_BUDGET_MS", "4000", "pool.request_budget_ms", 4000),
    ("PROBE_COOLDOWN_MS", "0", "pool.probe_cooldown_ms", 0),
    ("REFRESH_INTERVAL_MS", "0", "pool.refresh_interval_ms", 0),
    ("REFILL_DELAY_MS", "0", "pool.refill_delay_ms", 0),
    ("MIN_PROBE_INTERVAL_MS", "1000", "probe.min_interval_ms", 1000),
    ("LEASE_TTL_MS", "3600000", "binding.lease_ttl_ms", 3_600_000),
    ("QUARANTINE_FAILURES", "3", "quarantine.failures", 3),
    ("DEGRADE_MS", "7000", "quarantine.degrade_ms", 7000),
    ("QUARANTINE_MS", "9000", "quarantine.quarantine_ms", 9000),
    ("MAX_BINDINGS", "12", "binding.max_count", 12),
    ("REQUIRE_GATEWAY_ID", "1", "probe.require_gateway_id", True),
    ("DEBUG", "1", "log.level", "debug"),
    ("STATE_PATH", "/home/u/.pi/opencode-session-pool.json", None, None),
]


UNSET = {"upstream.proxy": "http://proxy.example:3128"}


def value(settings, name):
    """The value of a key by its name."""
    section, _, field = name.partition(".")
    return getattr(getattr(settings, section), field)


def problems(**environ):
    """The refusals of an environment."""
    with pytest.raises(SettingsError) as error:
        load(environ={**HOME, **environ})
    return error.value.problems


def test_the_extension_has_19_variables():
    """None is forgotten."""
    assert len(EXTENSION) == 19
    assert {suffix for suffix, _, name, _ in EXTENSION if name} - {"", "DEBUG"} == set(EXTENSION_KEYS)


@pytest.mark.parametrize("prefix", ["PI_OCPOOL", "OCPOOL"])
@pytest.mark.parametrize(("suffix", "text", "name", "expected"), [row for row in EXTENSION if row[2]])
def test_a_variable_of_the_extension_works_under_both_names(prefix, suffix, text, name, expected):
    """With and without PI_ in front, and its origin says which."""
    variable = f"{prefix}_{suffix}".rstrip("_")
    loaded = load(environ={**HOME, variable: text})
    assert value(loaded.settings, name) == expected
    assert loaded.origins[name] == f"environment {variable}"


@pytest.mark.parametrize("variable", ["PI_OCPOOL_STATE_PATH", "OCPOOL_STATE_PATH"])
def test_the_extensions_state_file_is_ignored_aloud(variable):
    """Its file is never shared, and the warning says what to set instead."""
    loaded = load(environ={**HOME, variable: "/x/pool.json"})
    assert loaded.settings.state.path is None
    (warning,) = loaded.warnings
    assert variable in warning
    assert "OCPOOL_STATE__PATH" in warning


@pytest.mark.parametrize("key", KEYS.values(), ids=lambda key: key.name)
def test_every_key_has_a_variable_of_our_own(key):
    """OCPOOL_<SECTION>__<KEY> takes the default's own text, so it is known and in range."""
    text = UNSET.get(key.name, "sixteen-or-more-letters") if key.default is None else toml(shown(key.default))
    loaded = load(environ={**HOME, key.variable: text})
    assert loaded.origins[key.name] == f"environment {key.variable}"
    if key.default is not None:
        assert value(loaded.settings, key.name) == key.default


@pytest.mark.parametrize("text", ["[" * 5000, "9" * 5000, "null"], ids=["brackets", "digits", "null"])
def test_the_text_of_a_variable_is_never_json(text):
    """Where a URL belongs it is refused as text; text in quotes is TOML's."""
    (problem,) = problems(OCPOOL_UPSTREAM__PROXY=text)
    assert problem.startswith(f"upstream.proxy = '{text[:1]}")
    assert load(environ={**HOME, "OCPOOL_UPSTREAM__PROXY": "'http://p:1'"}).settings.upstream.proxy == "http://p:1"


def test_a_model_keeps_the_case_of_its_name():
    """OCPOOL_MODELS__NAME__KEY."""
    loaded = load(environ={**HOME, "OCPOOL_MODELS__Kimi-K2.6__TIMEOUT_MS": "5000"})
    assert loaded.settings.probe_for("Kimi-K2.6").timeout_ms == 5000
    assert loaded.origins['models."Kimi-K2.6".timeout_ms'] == "environment OCPOOL_MODELS__Kimi-K2.6__TIMEOUT_MS"


@pytest.mark.parametrize("suffix", [row[0] for row in EXTENSION])
def test_an_empty_variable_is_not_set(suffix):
    """A compose file leaves it so."""
    loaded = load(environ={**HOME, f"PI_OCPOOL_{suffix}".rstrip("_"): " ", "OCPOOL_POOL__SIZE": ""})
    assert set(loaded.origins.values()) == {"default"}
    assert not loaded.warnings


@pytest.mark.parametrize(
    ("variable", "near"),
    [
        ("OCPOOL_POOL__SISE", "OCPOOL_POOL__SIZE"),
        ("OCPOOL_POOL_SIZE", "OCPOOL_POOL__SIZE"),
        ("OCPOOL_SZIE", "OCPOOL_SIZE"),
        ("OCPOOL_PROB__TIMEOUT_MS", "OCPOOL_PROBE__TIMEOUT_MS"),
        ("OCPOOL_MODELS__TIMEOUT_MS", "OCPOOL_PROBE__TIMEOUT_MS"),
        ("OCPOOL_PI_OCPOOL_SIZE", "OCPOOL_POOL__SIZE"),
    ],
)
def test_an_unknown_variable_is_refused_with_the_nearest_name(variable, near):
    """A typo never passes in silence."""
    assert problems(**{variable: "canary"}) == [f"environment {variable}: no such setting; the nearest is {near}"]


def test_an_unknown_variable_of_the_extension_is_only_warned_of():
    """It may be for a newer version of the extension."""
    loaded = load(environ={**HOME, "PI_OCPOOL_NEWER": "1"})
    assert loaded.warnings == ["PI_OCPOOL_NEWER is ignored: ocpool has no such variable"]


@pytest.mark.parametrize(
    "variable", ["OCPOOLX", "XOCPOOL_SIZE", "PI_PI_OCPOOL_SIZE", "PIOCPOOL", "ocpool_size", "OPENCODE"]
)
def test_variables_of_others_are_nobodys_business(variable):
    """Only names that begin with OCPOOL or PI_OCPOOL are read."""
    notes = Notes()
    assert variables({variable: "x"}, notes) == {}
    assert notes.problems == []


@pytest.mark.parametrize(("suffix", "text", "name", "expected"), [row for row in EXTENSION if row[2]])
def test_one_key_under_two_names_with_two_values_is_refused(suffix, text, name, expected):
    """The extension's variable and ours, both set and different: the refusal names both and no value."""
    theirs, ours = f"PI_OCPOOL_{suffix}".rstrip("_"), KEYS[name].variable
    other = {"off": "route", "debug": "info", True: "false"}.get(expected, "777")
    (problem,) = [p for p in problems(**{theirs: text, ours: other}) if "differ" in p]
    assert theirs in problem
    assert ours in problem
    assert name in problem
    assert "777" not in problem


def test_the_two_names_of_the_extension_may_not_differ_either():
    """PI_OCPOOL_SIZE and OCPOOL_SIZE are one variable."""
    (problem,) = problems(PI_OCPOOL_SIZE="3", OCPOOL_SIZE="4")
    assert problem == "environment OCPOOL_SIZE and PI_OCPOOL_SIZE differ, and both set pool.size; unset one of them"
    assert any("differ" in text for text in problems(PI_OCPOOL="1", OCPOOL="0"))


def test_one_key_under_two_names_with_one_value_is_fine():
    """Equal is compared as a value, not as text."""
    loaded = load(environ={**HOME, "PI_OCPOOL_SIZE": "5", "OCPOOL_POOL__SIZE": " 5", "OCPOOL_SIZE": "5"})
    assert loaded.settings.pool.size == 5
    assert load(environ={**HOME, "OCPOOL": "0", "OCPOOL_ROUTING__MODE": "off"}).settings.routing.mode == "off"


def test_a_switch_in_its_usual_position_says_only_what_it_is_not():
    """OCPOOL=1 is anything but off, DEBUG=0 anything but debug: neither overrides a mode or a level."""
    loaded = load(environ={**HOME, "OCPOOL": "1", "OCPOOL_ROUTING__MODE": "observe", "OCPOOL_DEBUG": "0"})
    assert (loaded.settings.routing.mode, loaded.settings.log.level) == ("observe", "info")
    assert loaded.origins["log.level"] == "default"
    assert load(environ={**HOME, "OCPOOL": "1", "PI_OCPOOL": "1"}).settings.routing.mode == "route"
    assert any("differ" in text for text in problems(OCPOOL="1", OCPOOL_ROUTING__MODE="off"))
    assert any("differ" in text for text in problems(PI_OCPOOL_DEBUG="0", OCPOOL_LOG__LEVEL="debug"))


@pytest.mark.parametrize("variable", ["PI_OCPOOL", "OCPOOL", "OCPOOL_DEBUG"])
def test_a_switch_is_0_or_1(variable):
    """Anything else is refused under the variable's own name."""
    assert problems(**{variable: "maybe"}) == [f"environment {variable} = 'maybe': must be 0 or 1"]


NAMES = st.one_of(
    st.text(),
    st.sampled_from([row[0] for row in EXTENSION]).map(lambda suffix: f"PI_OCPOOL_{suffix}".rstrip("_")),
    st.sampled_from([key.variable for key in KEYS.values()]),
    st.text().map(lambda text: f"OCPOOL_{text}"),
    st.tuples(st.text(), st.sampled_from(["TIMEOUT_MS", "FAILURES"])).map(
        lambda pair: f"OCPOOL_MODELS__{'__'.join(pair)}"
    ),
)


@given(st.dictionaries(NAMES, st.text(), max_size=6))
@example({"OCPOOL_MODELS____TIMEOUT_MS": "1"})
@example({"OCPOOL_MODELS__\udcff__TIMEOUT_MS": "\udcff"})
@example({"OCPOOL_": "1"})
@example({"PI_OCPOOL__": "1"})
@example({"OCPOOL_POOL__SIZE": "0x" + "f" * 5000})
@example({"OCPOOL_MODELS__m__API_KEY": "[" * 5000, "OCPOOL_MODELS__m__TIMEOUT_MS": "9" * 5000})
def test_no_environment_raises_anything_but_a_settings_error(environ):
    """Whatever the variables are named and say."""
    with suppress(SettingsError):
        load(environ={**environ, "HOME": "/nonexistent", "XDG_CONFIG_HOME": ""})
