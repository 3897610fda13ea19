"""The commands about settings."""

import json
import tomllib

import pytest

from config.keys import KEYS
from proxy.cli.main import main


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    """A home of one's own, without variables of ours."""
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "STATE_DIRECTORY", "OPENCODE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_show_is_toml_with_origins(monkeypatch, capsys):
    """A key, its value, and where it came from; a secret is only said to be set."""
    monkeypatch.setenv("PI_OCPOOL_SIZE", "5")
    monkeypatch.setenv("OCPOOL_LISTEN__TOKEN", "canary")
    assert main(["config", "show", "--set", "models.m.timeout_ms=5000"]) == 0
    out = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "size = 5 # environment PI_OCPOOL_SIZE" in lines
    assert "# token is set # environment OCPOOL_LISTEN__TOKEN" in lines
    assert "# ca_file is unset # default" in lines
    assert "timeout_ms = 5000 # command line" in lines
    assert '[models."m"]' in lines
    assert "canary" not in out
    assert tomllib.loads(out)["pool"]["size"] == 5


def test_show_as_json_has_every_key(home, capsys):
    """Value and origin of each, the file and the warnings."""
    file = home / "x.toml"
    file.write_text("[quarantine]\ndegrade_ms = 9000\n")
    assert main(["config", "show", "--json", "--config", str(file)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert list(shown["settings"]) == list(KEYS)
    assert shown["settings"]["quarantine.degrade_ms"] == {"value": 9000, "origin": f"file {file}"}
    assert shown["file"] == str(file)
    assert len(shown["warnings"]) == 1


def test_warnings_go_to_stderr(capsys):
    """stdout carries the result alone."""
    assert main(["config", "show", "--set", "quarantine.degrade_ms=9000"]) == 0
    captured = capsys.readouterr()
    assert "quarantine_ms (8000)" in captured.err
    assert "(8000)" not in captured.out


def test_bad_settings_exit_with_2_and_are_all_told(capsys):
    """On stderr, one a line."""
    assert main(["config", "show", "--set", "pool.size=99", "--set", "pool.sise=1"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "pool.size = 99 (command line): must be a whole number from 1 to 16" in captured.err
    assert "the nearest is pool.size" in captured.err


def test_the_schema_is_json(capsys):
    """For editors."""
    assert main(["config", "schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "ocpool settings"


def test_init_prints_a_file_that_sets_nothing(capsys, home):
    """Without --write nothing is written."""
    assert main(["config", "init"]) == 0
    assert "# size = 3" in capsys.readouterr().out
    assert list(home.iterdir()) == []


def test_init_writes_a_private_file_once(capsys, home):
    """It may come to hold a key; one that exists is left alone."""
    path = home / ".config" / "ocpool" / "config.toml"
    assert main(["config", "init", "--write"]) == 0
    assert capsys.readouterr().out.strip() == str(path)
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("[pool]\nsize = 4\n")
    assert main(["config", "init", "--write"]) == 1
    assert "exists already" in capsys.readouterr().err
    assert path.read_text() == "[pool]\nsize = 4\n"
    assert main(["config", "show"]) == 0
    assert f"# file {path}" in capsys.readouterr().out


def test_init_where_nothing_can_be_written_says_so(capsys, home):
    """With the path and the reason."""
    (home / "file").write_text("")
    assert main(["config", "init", "--write", "--config", str(home / "file" / "x.toml")]) == 1
    assert "cannot be made" in capsys.readouterr().err
    assert main(["config", "init", "--write", "--config", f"{home}/{'x' * 300}"]) == 1
    assert "cannot be written" in capsys.readouterr().err
