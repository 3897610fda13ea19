"""`ocpool serve`: its options become settings, its exit code is the daemon's."""

import pytest

import proxy.serve
from config.load import SettingsError
from proxy.cli.commands import run
from proxy.control.routes import control


@pytest.fixture
def served(monkeypatch, tmp_path):
    """What the daemon would have been run with."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    calls = []

    def serve(loaded, *, control, reload):
        calls.append((loaded, control, reload))
        return 3

    monkeypatch.setattr(proxy.serve, "run", serve)
    return calls


def test_flags_are_settings_and_the_exit_code_is_passed_on(served):
    """--host, --port and --upstream are short for --set, and win over it."""
    arguments = ["serve", "--set", "listen.port=1", "--host", "::1", "--port", "0", "--upstream", "http://127.0.0.1:9"]
    assert run(arguments) == 3
    loaded, given, _ = served[0]
    assert (loaded.settings.listen.host, loaded.settings.listen.port) == ("::1", 0)
    assert loaded.settings.upstream.base_url == "http://127.0.0.1:9"
    assert loaded.origins["listen.port"] == "command line"
    assert given() is control


def test_a_reload_reads_the_same_file_and_flags_again(served, tmp_path):
    """A changed file counts, the command line still wins, a bad file raises."""
    file = tmp_path / "c.toml"
    file.write_text("[pool]\nsize = 5\n")
    assert run(["serve", "--config", str(file), "--port", "0"]) == 3
    reload = served[0][2]
    file.write_text("[pool]\nsize = 7\n[listen]\nport = 99\n")
    again = reload().settings
    assert (again.pool.size, again.listen.port) == (7, 0)
    file.write_text("[pool]\nsize = 700\n")
    with pytest.raises(SettingsError):
        reload()


@pytest.mark.parametrize(
    "arguments", [["--port", "x"], ["--port", "70000"], ["--host", "0.0.0.0"], ["--config", "/nowhere/c.toml"]]
)
def test_bad_settings_are_exit_code_2_before_anything_runs(served, arguments, capsys):
    """The daemon is not even called."""
    assert run(["serve", *arguments]) == 2
    assert served == []
    assert capsys.readouterr().err.startswith("ocpool: ")
