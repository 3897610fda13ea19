"""Settings from the command line."""

from contextlib import suppress
from functools import reduce
from operator import getitem

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from config.keys import KEYS
from config.load import SettingsError, load
from config.notes import Notes
from config.overrides import overridden

HOME = {"HOME": "/nonexistent"}


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("pool.size=4", ("pool", "size"), 4),
        (" pool.size = 4 ", ("pool", "size"), 4),
        ("listen.host=::1", ("listen", "host"), "::1"),
        ("upstream.base_url=http://h/a?b=c", ("upstream", "base_url"), "http://h/a?b=c"),
        ("routing.models=a,b", ("routing", "models"), ["a", "b"]),
        ('models."kimi-k3".timeout_ms=5', ("models", "kimi-k3", "timeout_ms"), 5),
        ("models.kimi-k2.6.failures=5", ("models", "kimi-k2.6", "failures"), 5),
        ("models.'a.b'.failures=5", ("models", "a.b", "failures"), 5),
    ],
)
def test_an_override_is_a_key_and_a_value(text, path, value):
    """What stands behind the first equals sign is the value."""
    notes = Notes()
    said = overridden([text], notes)
    assert (reduce(getitem, path, said), notes.origins) == (value, {path: "command line"})


def test_of_two_overrides_the_later_wins():
    """As with any option of a command."""
    assert load(None, ["pool.size=4", "pool.size=5"], HOME).settings.pool.size == 5


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("pool.sise=4", "command line: pool.sise: no such setting; the nearest is pool.size"),
        ("port=4", "command line: port: no such setting; the nearest is listen.port"),
        ("models.timeout_ms=4", 'command line: models."timeout_ms": no such setting; the nearest is probe.timeout_ms'),
        ("models.m.size=4", 'command line: models."m".size: no such setting; the nearest is'),
        ("listen.tokens.alice=x", "command line: listen.tokens.alice: no such setting; the nearest is listen.token"),
        ("probe.api_key:canary", "command line: override 1 must be section.key=value, such as pool.size=4"),
        ("", "command line: override 1 must be section.key=value"),
    ],
)
def test_an_override_of_nothing_is_refused(text, problem):
    """With the nearest name, and without quoting what may be half a secret."""
    notes = Notes()
    assert overridden([text], notes) == {}
    (told,) = notes.problems
    assert told.startswith(problem)
    assert "canary" not in told


def test_a_secret_on_the_command_line_is_warned_of():
    """Other processes can read it there."""
    loaded = load(None, ["listen.token=canary"], HOME)
    assert loaded.settings.listen.token is not None
    (warning,) = loaded.warnings
    assert "OCPOOL_LISTEN__TOKEN" in warning
    assert "canary" not in warning


OVERRIDES = st.one_of(
    st.text(),
    st.tuples(st.sampled_from([*sorted(KEYS), "models.m.timeout_ms", "models.m.failures"]), st.text()).map("=".join),
    st.tuples(st.text(), st.text()).map(lambda pair: f"models.{pair[0]}.timeout_ms={pair[1]}"),
    st.tuples(
        st.sampled_from(["conversation.rules", "listen.tokens"]),
        st.sampled_from(["[{}]", "{}", "[1]", "{a = 1}", "[[]]"]),
    ).map("=".join),
)


@given(st.lists(OVERRIDES, max_size=5))
@example(["pool.size=0x" + "f" * 5000])
@example(["conversation.rules=" + "[" * 5000])
@example(["models..timeout_ms=1"])
@example(["log.path=~\0/x"])
@example(["upstream.base_url=http://[::1"])
@example(["pool.size=1979-05-27T07:32:00Z", "headers.expose=nan", "listen.tokens={a.b.c = 1}"])
def test_no_override_raises_anything_but_a_settings_error(overrides):
    """Whatever stands behind --set."""
    with suppress(SettingsError):
        load(None, overrides, HOME)
