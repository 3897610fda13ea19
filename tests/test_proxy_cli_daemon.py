"""The commands that ask a running daemon, against a small one on a real socket."""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from proxy.cli.commands import run
from proxy.runtime import Running, announce

LABEL = "0123456789abcdef"
STATUS = {
    "version": "9.9.9",
    "address": "http://127.0.0.1:8377",
    "now": 1_796_057_852_391,
    "uptime_ms": 7_200_000,
    "ready": True,
    "reason": None,
    "mode": "route",
    "problems": {"state": "The state file cannot be written."},
    "upstream": {"base_url": "https://opencode.ai", "connections": 3, "idle": 1},
    "in_flight": 1,
    "pool": [
        {"provider": "opencode-go", "model": "kimi-k3", "fresh": 2, "stale": 0, "target": 3, "bound": 1, "live": True}
    ],
    "pauses": [{"provider": "opencode-go", "model": None, "until": None, "reason": "unauthorized"}],
    "faults": None,
    "bindings": [{"conversation": LABEL, "source": "spare", "id": "947dfb20", "age_ms": 65_000, "endpoint": "novita"}],
    "conversations": [{"label": LABEL, "match": "x-session-id", "turns": 4, "models": ["kimi-k3"]}],
    "last_requests": [
        {"at": 1_796_057_852_391, "conversation": LABEL, "model": "bad\x1b[2Jmodel", "status": 200, "total_ms": 12_345}
    ],
}


class Fake:
    """A daemon's addresses, answered from a table."""

    def __init__(self):
        self.seen = []
        self.answers = {"/-/status": (200, STATUS), "/-/repin": (200, {"conversation": None, "repinned": 2})}
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self):
                fake.seen.append((self.command, self.path, self.headers.get("x-ocpool-token")))
                status, body = fake.answers.get(
                    self.path.partition("?")[0], (404, {"error": {"message": "no such page"}})
                )
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = answer

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def fake():
    daemon = Fake()
    yield daemon
    daemon.close()


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """A state folder and no settings of whoever runs the tests."""
    for name in [name for name in os.environ if "OCPOOL" in name or name == "OPENCODE_API_KEY"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path


def test_status_finds_the_daemon_by_its_runtime_file(fake, state, capsys):
    """No address needed on the machine it runs on."""
    announce(state, Running(fake.url, os.getpid(), "9.9.9", 1))
    assert run(["status"]) == 0
    said = capsys.readouterr().out
    for text in (
        "ocpool 9.9.9",
        "up 2 h",
        "ready",
        "mode route",
        "kimi-k3",
        LABEL,
        "947dfb20",
        "novita",
        "unauthorized",
        "cannot be written",
    ):
        assert text in said
    assert "\x1b" not in said


def test_status_as_json_is_what_the_daemon_said(fake, capsys):
    """Nothing is left out or renamed."""
    assert run(["status", "--url", fake.url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == STATUS


def test_status_of_one_conversation_asks_for_it(fake, capsys):
    """The label goes into the query, quoted."""
    assert run(["status", "a b&c", "--url", fake.url]) == 0
    assert fake.seen == [("GET", "/-/status?conversation=a+b%26c", None)]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"pool": 3, "bindings": [1, None], "upstream": [], "now": "x", "problems": []},
        {"last_requests": [{"at": "x"}]},
    ],
)
def test_status_shows_what_another_version_says_as_far_as_it_goes(fake, capsys, body):
    """A missing or strange part is left out."""
    fake.answers["/-/status"] = (200, body)
    assert run(["status", "--url", fake.url]) == 0


def test_the_token_of_the_settings_is_sent_as_a_field_and_never_in_the_address(fake, monkeypatch):
    """Addresses end up in logs."""
    monkeypatch.setenv("OCPOOL_LISTEN__TOKEN", "letmein-please")
    assert run(["status", "--url", fake.url]) == 0
    assert fake.seen == [("GET", "/-/status", "letmein-please")]


def test_an_address_with_a_path_keeps_it(fake):
    """/t/<token>/ is how clients are configured, so it works here as well."""
    assert run(["status", "--url", f"{fake.url}/t/abc/"]) == 1
    assert fake.seen[0][1] == "/t/abc/-/status"


def test_no_daemon_is_said_clearly_and_exit_code_1(state, capsys):
    """What to do next is in the line."""
    assert run(["status"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "no daemon runs here" in said.err
    assert "ocpool serve" in said.err
    assert list(state.iterdir()) == []


def test_a_daemon_that_does_not_answer_is_said_clearly(state, capsys):
    """It is listed, but its port is closed."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        port = server.server_port
    announce(state, Running(f"http://127.0.0.1:{port}", os.getpid(), "1", 1))
    assert run(["status"]) == 1
    assert "no daemon answers" in capsys.readouterr().err


@pytest.mark.parametrize("body", [b"<html>", b"", b"[1]"])
def test_somebody_else_on_the_port_is_no_daemon(fake, capsys, body):
    """Another program answers HTML."""
    fake.answers["/-/status"] = (200, body)
    assert run(["status", "--url", fake.url]) == 1
    assert "is not ocpool" in capsys.readouterr().err


def test_a_refusal_is_told_in_the_daemons_own_words(fake, capsys):
    """A wrong token, say."""
    fake.answers["/-/status"] = (401, {"error": {"message": "This listener wants its token.", "code": "token_refused"}})
    assert run(["status", "--url", fake.url]) == 1
    assert capsys.readouterr().err == "ocpool: This listener wants its token.\n"


def test_several_daemons_are_named_and_the_last_one_is_asked(fake, state, capsys):
    """--url chooses another."""
    announce(state, Running("http://127.0.0.1:1", os.getppid(), "1", 1))
    announce(state, Running(fake.url, os.getpid(), "1", 2))
    assert run(["status"]) == 0
    assert "2 daemons run" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://host:99999", "://"])
def test_an_address_that_is_none_is_bad_usage(url, capsys):
    """Exit code 2, with an example."""
    assert run(["status", "--url", url]) == 2
    assert "http://127.0.0.1:8377" in capsys.readouterr().err


def test_repin_posts_and_says_how_many(fake, capsys):
    """One conversation, or all."""
    assert run(["repin", "--url", fake.url]) == 0
    assert "2 routes dropped" in capsys.readouterr().out
    assert run(["repin", LABEL, "--url", fake.url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["repinned"] == 2
    assert [call[:2] for call in fake.seen] == [("POST", "/-/repin"), ("POST", f"/-/repin?conversation={LABEL}")]


def test_repin_of_nobody_is_exit_code_1(fake, capsys):
    """The daemon's 404 in its own words."""
    fake.answers["/-/repin"] = (404, {"error": {"message": "No conversation has this label."}})
    assert run(["repin", "nobody", "--url", fake.url]) == 1
    assert "No conversation has this label" in capsys.readouterr().err


def test_proxy_variables_are_not_heeded(fake, monkeypatch):
    """Localhost is never asked through a company's proxy."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert run(["status", "--url", fake.url]) == 0
