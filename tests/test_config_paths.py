"""Where files are, whatever the environment looks like."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.paths import config_file, events_path, key_path, state_folder, state_path, usage_path
from config.settings import Settings

DEFAULTS = Settings()
pytestmark = pytest.mark.skipif(sys.platform in {"darwin", "win32"}, reason="folders of Linux")


def at(**keys):
    """Settings with paths."""
    return Settings.model_validate({"state": keys})


def test_a_users_files_are_in_xdg_folders():
    """Below HOME, unless XDG variables name other places."""
    home = {"HOME": "/home/u"}
    assert config_file(home) == Path("/home/u/.config/ocpool/config.toml")
    assert state_path(DEFAULTS, home) == Path("/home/u/.local/state/ocpool/state.json")
    assert events_path(DEFAULTS, home) == Path("/home/u/.local/state/ocpool/events.jsonl")
    assert usage_path(DEFAULTS, home) == Path("/home/u/.local/state/ocpool/usage.sqlite3")
    assert usage_path(at(path="/x/s.json"), home) == Path("/x/usage.sqlite3")
    assert usage_path(at(usage_path="/y/u.db"), home) == Path("/y/u.db")
    assert key_path(DEFAULTS, home) == Path("/home/u/.local/state/ocpool/state.json.key")
    xdg = {**home, "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"}
    assert config_file(xdg) == Path("/c/ocpool/config.toml")
    assert state_folder(xdg) == Path("/s/ocpool")


def test_a_services_state_is_where_systemd_says():
    """$STATE_DIRECTORY is the folder itself, and the first of several."""
    assert state_folder({"HOME": "/h", "XDG_STATE_HOME": "/s", "STATE_DIRECTORY": "/var/lib/ocpool"}) == Path(
        "/var/lib/ocpool"
    )
    assert state_folder({"STATE_DIRECTORY": "/var/lib/a:/var/lib/b"}) == Path("/var/lib/a")


@pytest.mark.parametrize(
    "environ",
    [
        {"XDG_STATE_HOME": "relative"},
        {"XDG_STATE_HOME": " "},
        {"STATE_DIRECTORY": "relative"},
        {"STATE_DIRECTORY": ":"},
    ],
)
def test_a_relative_folder_is_ignored(environ):
    """The XDG specification says so; a service's folder is absolute as well."""
    assert state_folder({"HOME": "/h", **environ}) == Path("/h/.local/state/ocpool")


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"HOME": "relative"}])
def test_without_a_home_the_users_own_is_looked_up(environ):
    """From the list of users."""
    assert state_folder(environ).is_absolute()
    assert state_folder(environ).parts[-3:] == (".local", "state", "ocpool")


def test_a_user_whom_nobody_knows_has_the_root_as_home(monkeypatch):
    """Where nothing can be written: the store says so, and the start goes on."""
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)
    assert state_path(DEFAULTS, {}) == Path("/.local/state/ocpool/state.json")


def test_a_home_that_is_listed_as_relative_is_the_root(monkeypatch):
    """Odd lists of users exist."""
    import pwd

    monkeypatch.setattr(pwd, "getpwuid", lambda uid: pwd.struct_passwd(("u", "x", uid, 0, "", "", "")))
    assert config_file({}) == Path("/.config/ocpool/config.toml")


def test_paths_that_are_set_win():
    """Each on its own; the rest stays beside the state file."""
    environ = {"HOME": "/h", "STATE_DIRECTORY": "/var/lib/ocpool"}
    assert state_path(at(path="/d/pool.json"), environ) == Path("/d/pool.json")
    assert key_path(at(path="/d/pool.json"), environ) == Path("/d/pool.json.key")
    assert events_path(at(path="/d/pool.json"), environ) == Path("/d/events.jsonl")
    assert events_path(at(events_path="/e/x.log"), environ) == Path("/e/x.log")


def test_a_relative_path_is_against_the_current_folder(monkeypatch, tmp_path):
    """Also when that folder was deleted meanwhile."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    assert state_path(at(path="x.json")) == gone / "x.json"
    gone.rmdir()
    assert state_path(at(path="x.json")) == Path("/x.json")


def test_an_empty_environment_starts():
    """env -i, in a process of its own."""
    program = "from config.load import load; from config.paths import state_path; print(state_path(load().settings))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env={})
    assert done.stdout.strip().endswith("/ocpool/state.json")


@given(st.dictionaries(st.sampled_from(["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "STATE_DIRECTORY"]), st.text()))
def test_no_environment_is_a_crash(environ):
    """And every folder is absolute."""
    assert state_folder(environ).is_absolute()
    assert config_file(environ).is_absolute()


def test_elsewhere_the_folders_are_the_systems_own(monkeypatch):
    """macOS and Windows keep such files where platformdirs says."""
    monkeypatch.setattr(sys, "platform", "darwin")
    assert state_folder({"HOME": "/h"}).name == "ocpool"
    assert config_file({"HOME": "/h"}).parent.name == "ocpool"
    assert state_folder({"XDG_STATE_HOME": "/s"}) == Path("/s/ocpool")
