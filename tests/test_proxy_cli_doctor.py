"""`ocpool doctor` as a command: what it prints, its exit code, and that it changes nothing."""

import json
import os
from pathlib import Path

import pytest

from proxy.cli import doctor as module
from proxy.cli.commands import run

DEAD = ("--set", "upstream.base_url=http://127.0.0.1:1")
FREE = ("--set", "listen.port=0")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if "OCPOOL" in name or name.lower().endswith("_proxy") or name == "OPENCODE_API_KEY":
            monkeypatch.delenv(name)
    tmp_path.chmod(0o700)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict]:
    code = run(["doctor", "--json", *FREE, *arguments])
    return code, json.loads(capsys.readouterr().out)


def test_nothing_wrong_is_exit_0(place: Path, capsys):
    code, said = asked(capsys, "--offline")
    assert (code, said["findings"]) == (0, [])
    assert set(said["looked_at"]) >= {
        "settings",
        "folders",
        "state",
        "secret",
        "usage",
        "lock",
        "port",
        "proxies",
        "packages",
        "service",
    }
    assert list(place.iterdir()) == []


def test_a_gateway_that_cannot_be_reached_is_exit_1(place: Path, capsys):
    code, said = asked(capsys, *DEAD)
    assert code == 1
    [finding] = said["findings"]
    assert finding["check"] == "network"
    assert finding["remedy"]


def test_refused_settings_leave_the_rest_to_be_looked_at(place: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTP_PROXY", "http://10.0.0.1:3128")
    code, said = asked(capsys, "--set", "pool.size=99")
    assert code == 1
    assert {finding["check"] for finding in said["findings"]} == {"settings", "proxies"}


def test_every_finding_is_printed_with_its_remedy(place: Path, capsys):
    (place / "state").mkdir()
    (place / "state").chmod(0o755)
    (place / "state" / "state.json").write_text("{")
    assert run(["doctor", "--offline", *FREE]) == 1
    lines = capsys.readouterr().out.splitlines()
    wrong = [number for number, line in enumerate(lines) if line.startswith("WRONG")]
    assert len(wrong) >= 2
    assert all(lines[number + 1].startswith("      -> ") for number in wrong)
    assert any(line == "ok    packages" for line in lines)


def test_a_stored_key_is_never_printed(place: Path, capsys):
    path = place / ".pi" / "agent" / "auth.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"opencode-go": {"type": "api_key", "key": "sk-planted-secret"}}')
    path.chmod(0o600)
    run(["doctor", *FREE, *DEAD])
    said = capsys.readouterr()
    assert "auth.json" in said.out
    assert "sk-planted" not in said.out + said.err


def test_a_check_that_breaks_is_a_finding_and_the_others_go_on():
    looked = module._look("odd", lambda: 1 / 0)
    [finding] = looked.found
    assert "ZeroDivisionError" in finding.problem
    assert not finding.note
