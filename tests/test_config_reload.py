"""What a running daemon takes over, and when it looks."""

import os

import pytest

from config.keys import KEYS
from config.reload import Change, Watch, carried, diff
from config.settings import Settings

DEFAULTS = Settings()


def after(**sections):
    """What changes when the defaults become these."""
    return diff(DEFAULTS, Settings.model_validate(sections))


def test_equal_settings_are_no_change():
    """Secrets are compared too."""
    secret = {"listen": {"token": "x"}, "models": {"m": {"timeout_ms": 5}}}
    change = diff(Settings.model_validate(secret), Settings.model_validate(secret))
    assert change == Change([], [])
    assert not change


def test_a_change_is_told_by_key():
    """What can be taken over, and what waits for a restart."""
    change = after(pool={"size": 4}, listen={"port": 1, "token": "x"}, log={"level": "debug", "path": "/x"})
    assert change
    assert sorted(change.applied) == ["listen.token", "log.level", "pool.size"]
    assert sorted(change.needs_restart) == ["listen.port", "log.path"]


def test_a_models_keys_come_change_and_go():
    """Each is a key of its own."""
    one = Settings.model_validate({"models": {"a": {"timeout_ms": 5, "failures": 3}, "b": {"failures": 3}}})
    two = Settings.model_validate({"models": {"a": {"timeout_ms": 6, "failures": 3}, "c": {"api_key": "x"}}})
    assert diff(one, two).applied == ['models."a".timeout_ms', 'models."b".failures', 'models."c".api_key']
    assert diff(one, two).needs_restart == []


def test_what_waits_for_a_restart_is_this():
    """Sockets, files and the connections to the gateway are opened once."""
    assert {name for name, key in KEYS.items() if key.restart} == {
        "listen.host",
        "listen.port",
        "listen.loop",
        "upstream.base_url",
        "upstream.connect_timeout_ms",
        "upstream.keepalive_ms",
        "upstream.ca_file",
        "upstream.proxy",
        "state.path",
        "state.events_path",
        "state.events_max_bytes",
        "state.events_keep",
        "state.usage_path",
        "state.secret",
        "log.path",
    }


def test_a_running_daemon_keeps_what_waits_for_a_restart():
    """All else is new, so a second reload tells the waiting keys again."""
    new = Settings.model_validate({"listen": {"port": 1, "token": "x"}, "pool": {"size": 4}, "state": {"path": "/x"}})
    running = carried(DEFAULTS, new)
    assert (running.listen.port, running.state.path, running.pool.size) == (8377, None, 4)
    assert running.listen.token == new.listen.token
    assert diff(running, new) == Change([], ["listen.port", "state.path"])


@pytest.fixture
def file(tmp_path):
    """A settings file."""
    path = tmp_path / "config.toml"
    path.write_text("a")
    os.utime(path, ns=(1, 1))
    return path


def test_a_file_that_is_left_alone_has_not_changed(file):
    """However often one asks."""
    watch = Watch(file)
    assert not watch.changed()
    assert not watch.changed()


def test_new_content_is_a_change_once(file):
    """By time, or by size when the clock is coarse."""
    watch = Watch(file)
    os.utime(file, ns=(2, 2))
    assert [watch.changed(), watch.changed()] == [True, False]
    file.write_text("ab")
    os.utime(file, ns=(2, 2))
    assert [watch.changed(), watch.changed()] == [True, False]


def test_another_file_in_its_place_is_a_change(file, tmp_path):
    """As editors save: same size, same time, another file."""
    watch = Watch(file)
    new = tmp_path / "new"
    new.write_text("b")
    os.utime(new, ns=(1, 1))
    new.replace(file)
    assert [watch.changed(), watch.changed()] == [True, False]


def test_a_file_that_is_away_for_a_moment_has_not_changed(file):
    """It takes two looks to call it gone."""
    watch = Watch(file)
    away = file.with_suffix(".away")
    file.rename(away)
    assert not watch.changed()
    away.rename(file)
    assert not watch.changed()
    file.rename(away)
    assert [watch.changed(), watch.changed(), watch.changed()] == [False, True, False]
    away.rename(file)
    assert [watch.changed(), watch.changed()] == [True, False]


def test_a_file_that_comes_is_a_change(tmp_path):
    """The default file may be written after the start."""
    watch = Watch(tmp_path / "later.toml")
    assert not watch.changed()
    watch.path.write_text("a")
    assert [watch.changed(), watch.changed()] == [True, False]
