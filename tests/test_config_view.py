"""Settings as they may be shown."""

import json

from config.keys import KEYS
from config.settings import Settings
from config.view import MASK, shown, values


def test_every_key_is_shown_in_types_of_json():
    """Lists, tables, paths and rules included."""
    settings = Settings.model_validate(
        {
            "log": {"path": "/x"},
            "conversation": {"rules": [{"path": "/a", "class": "owner"}]},
            "models": {"m.1": {"timeout_ms": 5}},
            "routing": {"models": ["a"]},
        },
    )
    shown_values = values(settings)
    assert list(shown_values)[: len(KEYS)] == list(KEYS)
    assert shown_values["log.path"] == "/x"
    assert shown_values["conversation.rules"] == [{"path": "/a", "class": "owner"}]
    assert shown_values['models."m.1".timeout_ms'] == 5
    assert shown_values["routing.models"] == ["a"]
    assert json.loads(json.dumps(shown_values)) == shown_values


def test_no_secret_is_shown_or_hidden_in_a_repr():
    """Tokens, keys, the secret, and the password of a proxy, for all and for one model."""
    settings = Settings.model_validate(
        {
            "listen": {"token": "canary-1", "tokens": {"alice": "canary-2"}},
            "probe": {"api_key": "canary-3"},
            "state": {"secret": "canary-4-canary-4"},
            "upstream": {"proxy": "http://u:canary-5@proxy:1"},
            "models": {"m": {"api_key": "canary-6"}},
        },
    )
    everything = json.dumps(values(settings))
    assert everything.count(MASK) == 6
    assert "alice" in everything
    for text in (everything, repr(settings), str(settings), settings.model_dump_json(exclude={"upstream"})):
        assert "canary" not in text


def test_a_value_that_is_not_set_is_none():
    """An unset secret is not a mask."""
    assert values(Settings())["listen.token"] is None
    assert shown("http://a/b@c") == "http://a/b@c"
