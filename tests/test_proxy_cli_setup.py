"""Snippets are what their clients read, have this daemon's address, and are those of the document."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from proxy.cli.clients import CLIENTS, Client, Place, Snippet
from proxy.cli.clients.document import document
from proxy.cli.commands import run
from proxy.runtime import Running, announce

ROOT = Path(__file__).parent.parent
NAMES = {
    "pi", "opencode", "codex", "kilo", "cline", "roo", "continue", "aider", "zed", "open-webui", "litellm", "langchain", "openai-sdk",
    "openai-sdk-node", "crush", "goose", "curl", "claude-code-router",
}  # fmt: skip
SNIPPETS = [pytest.param(c, s, id=f"{c.name}-{n}") for c in CLIENTS.values() for n, s in enumerate(c.snippets)]


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert run(["setup", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_client_is_there_and_complete():
    assert set(CLIENTS) >= NAMES
    for name, client in CLIENTS.items():
        assert name == client.name
        assert client.snippets
        assert client.sends
        assert client.limits


@pytest.mark.parametrize(("client", "snippet"), SNIPPETS)
def test_every_snippet_is_well_formed_and_has_the_address(client: Client, snippet: Snippet):
    text = Place("http://127.0.0.1:9999", "a/b").fill(snippet.text)
    assert not re.search(r"%[A-Z]+%", text)
    if "%" in snippet.text:
        assert "http://127.0.0.1:9999/t/a%2Fb/" in text
    match snippet.form:
        case "json":
            assert json.loads(text)
        case "toml":
            assert tomllib.loads(text)
        case "python":
            ast.parse(text)
        case "sh":
            subprocess.run(["sh", "-n"], input=text, text=True, check=True)
        case "js" if shutil.which("node"):
            subprocess.run(["node", "--check", "--input-type=module", "-"], input=text, text=True, check=True)
        case form:
            assert form in {"yaml", "text", "js"}
            assert "\t" not in text


def test_the_document_is_that_of_the_table():
    assert (ROOT / "docs/clients.md").read_text(encoding="utf-8") == document(), "run `make docs`"


def test_what_was_not_run_says_so_with_its_date():
    lines = [line for line in document().splitlines() if line.startswith("| ") and "`" in line]
    assert all("run: " in line or "from documentation, 2026-11-30" in line for line in lines[1:])


def test_without_a_client_the_clients_are_listed(settled_here: Path, capsys):
    assert [row["name"] for row in shown(capsys)] == list(CLIENTS)
    assert run(["setup"]) == 0
    assert "claude-code-router" in capsys.readouterr().out


def test_the_running_daemons_address_is_filled_in(settled_here: Path, capsys):
    announce(settled_here, Running("http://127.0.0.1:9123", os.getpid(), "1", 1))
    got = shown(capsys, "opencode")
    assert (
        json.loads(got["snippets"][0]["text"])["provider"]["opencode-go"]["options"]["baseURL"]
        == "http://127.0.0.1:9123/zen/go/v1"
    )
    assert got["address_from"] == "the daemon that runs here"


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        ((), "http://127.0.0.1:8377"),
        (("--url", "http://box:1/"), "http://box:1"),
        (("--url", "box:1"), "http://box:1"),
        (("--set", "listen.port=9000"), "http://127.0.0.1:9000"),
        (("--set", "listen.host=0.0.0.0", "--set", "listen.token=s3cret"), "http://127.0.0.1:8377/t/s3cret"),
        (("--set", "listen.host=::1", "--set", "listen.port=9000"), "http://[::1]:9000"),
    ],
)
def test_the_address_comes_from_the_url_or_the_settings(
    settled_here: Path, capsys, arguments: tuple[str, ...], address: str
):
    assert shown(capsys, "curl", *arguments)["address"] == address


def test_the_snippet_alone_goes_to_stdout(settled_here: Path, capsys):
    assert run(["setup", "zed"]) == 0
    said = capsys.readouterr()
    json.loads(said.out)
    assert "from documentation" in said.err


def test_an_unknown_client_names_the_nearest(settled_here: Path, capsys):
    assert run(["setup", "opncode"]) == 2
    assert "Did you mean opencode?" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_real_clients_work_from_their_snippet_alone():
    """Installs them from PyPI and npm; see scripts/check-clients."""
    done = subprocess.run([sys.executable, ROOT / "scripts/check-clients"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
