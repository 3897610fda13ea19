"""The command line as a user types it."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from proxy import __version__
from proxy.cli.commands import COMMANDS, Entry, ocpool, run
from proxy.cli.main import main
from proxy.cli.options import load_settings, settings_options

ROOT = Path(__file__).parents[1]


def python(code):
    """Run code in a fresh interpreter; its stdout."""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, timeout=60
    ).stdout.decode()


def test_the_version_is_told_without_importing_anything_slow(capsys):
    """Shell prompts and scripts ask for it: not even click is loaded."""
    for flag in ("--version", "-V"):
        assert main([flag]) == 0
        assert capsys.readouterr().out == f"ocpool {__version__}\n"
    code = "import sys; from proxy.cli.main import main; main(['--version']); print(*sys.modules)"
    loaded = set(python(code).split())
    assert not loaded & {
        "click",
        "asyncio",
        "aiohttp",
        "pydantic",
        "rich",
        "structlog",
        "orjson",
        "json",
        "importlib.metadata",
    }


def test_the_version_is_the_packages():
    """pyproject.toml and proxy.__version__ cannot drift apart."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == __version__
    assert project["scripts"] == {"ocpool": "proxy.cli.main:main"}


def test_help_lists_every_command_without_loading_any():
    """One line each, from the table."""
    code = "import sys; from proxy.cli.main import main; main(['--help']); print(*[m for m in sys.modules if m.startswith('proxy.cli')])"
    said = python(code)
    for name, entry in COMMANDS.items():
        assert f"{name} " in said
        assert entry.about in said
    assert set(said.splitlines()[-1].split()) == {"proxy.cli", "proxy.cli.main", "proxy.cli.commands"}


@pytest.mark.parametrize("name", list(COMMANDS))
def test_each_command_explains_itself(name, capsys):
    """Every command that is in this tree loads and has help."""
    module, _, attribute = COMMANDS[name].place.partition(":")
    if find_spec(module) is None:
        pytest.skip("not written yet")
    assert run([name, "--help"]) == 0
    assert f"Usage: ocpool {name}" in capsys.readouterr().out
    assert ocpool.get_command(click.Context(ocpool), name).name == attribute.rstrip("_").replace("_", "-")


def test_a_command_that_is_not_installed_breaks_no_other(monkeypatch, capsys):
    """It says so, exit code 2."""
    monkeypatch.setitem(COMMANDS, "ghost", Entry("proxy.cli.ghost:ghost", "Not there."))
    assert run(["ghost"]) == 2
    assert "not part of this installation" in capsys.readouterr().err
    assert run(["--help"]) == 0


@pytest.mark.parametrize("arguments", [["nope"], ["serve", "--nope"], ["status", "--url"], []])
def test_bad_usage_is_exit_code_2(arguments, capsys):
    """And says how to get help."""
    assert run(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "Usage: ocpool" in said.err or "Error: Option" in said.err


def test_bad_settings_are_told_one_a_line_and_exit_code_2(capsys):
    """Each problem by its key; nothing else is printed."""
    assert run(["inspect", "--set", "pool.sise=3", "--set", "pool.size=99"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("ocpool: ") for line in lines)
    assert "pool.size" in said.err


def test_flags_config_and_set_reach_the_settings(tmp_path):
    """The shared options are the loader's arguments."""
    (tmp_path / "c.toml").write_text("[pool]\nsize = 5\nttl_ms = 60000\n")
    seen = []

    @click.command()
    @settings_options
    def command(config_file, overrides):
        seen.append(load_settings(config_file, overrides).settings)

    command.main(["--config", str(tmp_path / "c.toml"), "--set", "pool.size=7"], standalone_mode=False)
    assert (seen[0].pool.size, seen[0].pool.ttl_ms) == (7, 60000)


def test_a_reader_that_leaves_early_is_no_failure(tmp_path):
    """`ocpool events | head -1` prints no traceback."""
    line = json.dumps({"at": 1, "event": "request", "text": "x" * 500}) + "\n"
    (tmp_path / "events.jsonl").write_text(line * 5000)
    command = [sys.executable, "-m", "proxy.cli.main", "events", "--json"]
    env = {**os.environ, "OCPOOL_STATE__EVENTS_PATH": str(tmp_path / "events.jsonl")}
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(20) == 0
        assert process.stderr.read() == b""


def test_an_interrupted_command_is_exit_code_1():
    """Ctrl-C is no success and no traceback."""
    import signal

    code = "import time, click; from proxy.cli import commands\n@click.command()\ndef slow():\n    print('here', flush=True); time.sleep(20)\ncommands.ocpool.get_command = lambda ctx, name: slow\nraise SystemExit(commands.run(['slow']))"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"here\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 1
        assert b"Traceback" not in process.stderr.read()
