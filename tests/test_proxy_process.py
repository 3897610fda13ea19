"""What concerns the process as a whole: what a daemon has loaded when it accepts, what it leaves for later, its threads."""

import subprocess
import sys

import pytest

from proxy.process import _LATER, hurry_the_loop
from tests.fakes.daemon import COMMAND, environment

NOT_YET = {
    "aiohttp", "brotli", "difflib", "http.client", "multidict", "platformdirs",
    "prometheus_client", "pydantic_settings", "rich", "structlog", "tomllib", "urllib.request", "yarl",
    "proxy.control.routes", "proxy.insight.exposition", "proxy.pages", "proxy.simulator",
}  # fmt: skip
COMMANDS = {"proxy.cli", "proxy.cli.main", "proxy.cli.commands", "proxy.cli.options", "proxy.cli.serve"}
OURS, ALL = 195, 510  # a little more than there are: each takes half a millisecond and what it does


@pytest.mark.parametrize("more", [[], ["--set", "pool.size=4", "--set", "routing.mode=observe"]])
def test_little_is_loaded_before_the_first_request_can_be_answered(tmp_path, more):
    """No server, no renderer, no client: what a start does not need waits until it is over."""
    settings = ["--port", "0", "--upstream", "http://127.0.0.1:9", "--set", f"state.path={tmp_path / 'state.json'}"]
    env = environment(tmp_path, PYTHONPROFILEIMPORTTIME="1")
    with subprocess.Popen(
        [*COMMAND, "serve", *settings, *more], env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline().startswith(b"ocpool ")
        process.kill()  # the rest is loaded half a second later
        told = process.stderr.read().decode().splitlines()
    loaded = {line.rpartition("|")[2].strip() for line in told if line.startswith("import time:")}
    assert "proxy.serve" in loaded
    assert not loaded & NOT_YET
    assert {name for name in loaded if f"{name}.".startswith("proxy.cli.")} <= COMMANDS
    assert len([name for name in loaded if name.split(".")[0] in {"proxy", "pool", "config"}]) <= OURS
    assert len(loaded) <= ALL


def test_what_is_left_for_later_is_there_then():
    """All but the libraries of other versions of Python."""
    code = "import sys; from proxy.process import load_the_rest; load_the_rest(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    either = {"backports.zstd", "compression.zstd"}
    loaded = set(done.stdout.split())
    assert set(_LATER) - either <= loaded
    assert either & loaded


def test_a_thread_that_computes_hands_the_interpreter_over_within_a_millisecond():
    before = sys.getswitchinterval()
    try:
        hurry_the_loop()
        assert sys.getswitchinterval() < 0.001
    finally:
        sys.setswitchinterval(before)
