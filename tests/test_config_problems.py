"""The words of refusals."""

import pytest

from config.load import SettingsError, load
from config.problems import show

HOME = {"HOME": "/nonexistent"}


def problems(*overrides, **environ):
    """The refusals of overrides and variables."""
    with pytest.raises(SettingsError) as error:
        load(None, overrides, {**HOME, **environ})
    return error.value.problems


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("pool.size=17", "pool.size = 17 (command line): must be a whole number from 1 to 16"),
        ("pool.size=0", "pool.size = 0 (command line): must be a whole number from 1 to 16"),
        ("pool.size=x", "pool.size = 'x' (command line): must be a whole number from 1 to 16"),
        ("pool.size=2.5", "pool.size = 2.5 (command line): must be a whole number from 1 to 16"),
        ("pool.ttl_ms=0", "pool.ttl_ms = 0 (command line): must be a whole number of milliseconds from 1 to 86400000"),
        ("listen.max_body_bytes=0", "must be a whole number of bytes from 1 to 4294967296"),
        ("headers.expose=2", "headers.expose = '2' (command line): must be true or false"),
        ("routing.mode=of", "routing.mode = 'of' (command line): must be one of route, observe, off"),
        ("routing.providers=x", "routing.providers[0] = 'x' (command line): must be one of opencode-go, opencode"),
        ("routing.models=[1]", "routing.models[0] = 1 (command line): must be text"),
        ("routing.models={}", "routing.models = {} (command line): must be a list"),
        ("upstream.base_url=x", "upstream.base_url = 'x' (command line): must be a URL such as"),
        ("listen.host=" + "h" * 2000, "(command line): must not be longer than 1024 characters"),
        ("listen.allowed_hosts=" + "a," * 300, "(command line): must not hold more than 256"),
        ("log.path=\udcff", "log.path = '\\udcff' (command line): must hold only printable characters"),
        (
            'conversation.rules=[{heder = "a", class = "owner"}]',
            "conversation.rules[0].heder = 'a' (command line): no such key of a rule; the nearest is header",
        ),
        (
            'conversation.rules=[{path = "/", class = "boss"}]',
            "conversation.rules[0].class = 'boss' (command line): must be one of owner, cohort, ignore",
        ),
        ('conversation.rules=[{class = "owner"}]', "a rule needs exactly one of header, path and user_agent"),
        ('conversation.rules=[{path = "/"}]', "conversation.rules[0].class (command line): is missing"),
        ("conversation.rules=[3]", "conversation.rules[0] = 3 (command line): must be a table"),
        (
            "models.m.timeout_ms=0",
            'models."m".timeout_ms = 0 (command line): must be a whole number of milliseconds from 1 to 300000',
        ),
        ("listen.host=0.0.0.0", "listen.host = '0.0.0.0': is open to other machines, which needs listen.token"),
    ],
)
def test_a_refusal_names_key_value_origin_and_range(override, problem):
    """In one line of our own words."""
    told = problems(override)
    assert any(problem in line for line in told), told
    assert all("\n" not in line and len(line) < 400 for line in told)


SECRETS = [
    ("listen.token", "can ary/"),
    ("listen.tokens", '{alice = "can/ary"}'),
    ("listen.tokens", '{"canary/" = "x"}'),
    ("listen.tokens", "canary"),
    ("listen.tokens", '["canary"]'),
    ("probe.api_key", "sk-canary ü"),
    ("state.secret", "canary"),
    ("upstream.proxy", "http://user:canary@host?x"),
    ("upstream.proxy", "http://user:canary/x@host"),
    ("upstream.base_url", "https://user:canary@host"),
    ("models.m.api_key", "sk-canary ü"),
]


@pytest.mark.parametrize(("name", "value"), SECRETS)
def test_a_refusal_never_tells_a_secret(name, value):
    """Neither on the command line nor in the environment, also when the value is nonsense."""
    told = problems(f"{name}={value}")
    assert name.rpartition(".")[2] in told[0]
    assert "canary" not in str(told)
    if not name.startswith("models"):
        variable = "OCPOOL_" + name.upper().replace(".", "__")
        assert "canary" not in str(problems(**{variable: value}))


def test_everything_wrong_is_told_at_once():
    """Whoever mends one thing should not meet the next one at the next start."""
    told = problems(
        "pool.size=99", "pool.sise=1", "log.level=loud", OCPOOL_POOL__TTL_MS="x", OCPOOL_SZIE="1", OCPOOL="2"
    )
    assert len(told) == 6


def test_a_value_is_shown_short():
    """A long list, a deep table and a number that Python will not spell are one short line."""
    deep = {}
    for _ in range(100_000):
        deep = {"a": deep}
    assert show(deep) == "{'a': {'a': {'a': {...}}}}"
    assert len(show(["x"] * 1000)) < 100
    assert len(show("x" * 1000)) < 100
    assert show(int("f" * 5000, 16)) == "..."
