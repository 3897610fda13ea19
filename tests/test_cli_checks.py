"""What `ocpool doctor` looks at, check by check, with real files and sockets."""

import asyncio
import os
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from config.sections.listen import ListenSection
from config.settings import Settings
from pool.stores.lock import exclusive
from proxy import __version__
from proxy.cli.checks import credential, daemon, environment, files, network, settings, unit
from proxy.cli.checks.finding import Finding
from proxy.cli.checks.network import EARLIEST_MS, Reached
from proxy.cli.keys import Key as KeyFound
from proxy.insight import usage_file
from proxy.insight.usage_file import Key, Sums
from proxy.runtime import Running
from proxy.service import templates
from tests.fakes.house import street

NOW = EARLIEST_MS + 1_000_000_000
not_root = pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")


def problems(found: list[Finding]) -> list[str]:
    """What is wrong; every finding must come with a remedy."""
    assert all(finding.remedy for finding in found if not finding.note)
    return [finding.problem for finding in found if not finding.note]


@contextmanager
def page(status: int, content_type: str = "application/json", body: bytes = b"{}", **fields: str) -> Iterator[str]:
    """A server that answers everything with the same; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        seen: list[tuple[str, dict[str, str]]] = []

        def do_GET(self) -> None:
            self.seen.append((self.path, dict(self.headers)))
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            for name, value in fields.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def upstream(url: str, **more: object) -> Settings:
    return Settings.model_validate({"upstream": {"base_url": url, "connect_timeout_ms": 2000, **more}})


# -- settings -----------------------------------------------------------------------------------------


def test_refused_settings_are_findings_and_warnings_are_notes():
    assert problems(settings.refused(["pool.size = 99: must be at most 16"])) == ["pool.size = 99: must be at most 16"]
    assert problems(settings.warned(["PI_OCPOOL_STATE_PATH is ignored"])) == []


@pytest.mark.parametrize(
    ("mode", "wrong"), [(0o600, False), (0o400, False), (0o640, True), (0o604, True), (0o620, True)]
)
def test_a_file_with_secrets_that_others_may_read_is_found(tmp_path: Path, mode: int, wrong: bool):
    path = tmp_path / "config.toml"
    path.touch()
    path.chmod(mode)
    assert bool(problems(settings.private(path, "The settings file"))) == wrong


def test_a_file_that_is_not_there_is_fine(tmp_path: Path):
    assert settings.private(tmp_path / "none", "x") == settings.private(None, "x") == []


def test_windows_has_its_note():
    [found] = settings.loop(Settings(), "win32")
    assert found.note
    assert "asyncio" in found.problem
    assert settings.loop(Settings(), "linux") == []


# -- folders and files ----------------------------------------------------------------------------------


def test_a_good_folder_and_one_to_be_made_are_fine(tmp_path: Path):
    tmp_path.chmod(0o700)
    assert files.folder(tmp_path) == files.folder(tmp_path / "a" / "b") == []


def test_a_folder_that_is_open_to_others_is_found(tmp_path: Path):
    tmp_path.chmod(0o755)
    [found] = problems(files.folder(tmp_path))
    assert "755" in found


def test_a_file_where_the_folder_should_be_is_found(tmp_path: Path):
    (tmp_path / "file").touch()
    [found] = problems(files.folder(tmp_path / "file" / "state"))
    assert "no folder" in found


@not_root
def test_a_folder_that_cannot_be_written_is_found(tmp_path: Path):
    tmp_path.chmod(0o500)
    [found] = problems(files.folder(tmp_path / "state"))
    assert "cannot be written" in found


def test_a_full_disk_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tmp_path.chmod(0o700)
    monkeypatch.setattr(files, "LEAST_FREE_BYTES", 1 << 62)
    [found] = problems(files.folder(tmp_path))
    assert "MiB are free" in found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("", "is empty"),
        ("[]", "is not a state file"),
        ('{"version": 2}', "newer ocpool"),
        (None, ""),
    ],
)
def test_a_state_file_that_is_none_is_found(tmp_path: Path, text: str | None, said: str):
    path = tmp_path / "state.json"
    if text is not None:
        path.write_text(text)
    found = problems(files.state(path))
    assert [said in one for one in found] == [True] * bool(said)


def test_kept_corrupt_files_are_a_note(tmp_path: Path):
    (tmp_path / "state.json.corrupt-1").touch()
    [found] = files.state(tmp_path / "state.json")
    assert found.note


def with_a_table(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as file, file:
        for statement in statements:
            file.execute(statement)


def torn(path: Path) -> None:
    """Counts of many, and a hole in the middle of the file."""
    usage_file.add(path, {Key("2026-11-30", "k", "p", f"m{n}", "c"): Sums(turns=1) for n in range(2000)})
    data = bytearray(path.read_bytes())
    data[8192:12_288] = b"\xff" * 4096
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda _: None, None),
        (lambda path: usage_file.add(path, {Key("2026-11-30", "k", "p", "m", "c"): Sums(turns=1)}), None),
        (lambda path: path.touch(), None),
        (lambda path: path.write_bytes(b"x" * 5000), "broken"),
        (torn, "broken"),
        (lambda path: path.mkdir(), "no file"),
        (os.mkfifo, "no file"),
        (lambda path: with_a_table(path, "PRAGMA user_version = 9"), "newer ocpool"),
        (lambda path: with_a_table(path, "CREATE TABLE usage (things TEXT)"), "cannot be read"),
        (lambda path: with_a_table(path, "CREATE TABLE others (things TEXT)"), "cannot be read"),
    ],
)
def test_a_usage_file_that_cannot_be_used_is_found(tmp_path: Path, make: Callable[[Path], object], said: str | None):
    path = tmp_path / "usage.sqlite3"
    make(path)
    before = sorted(tmp_path.iterdir())
    found = problems(files.usage(path))
    assert [said in one for one in found] == [True] * bool(said)
    if said is None:
        assert sorted(tmp_path.iterdir()) == before, "looking makes nothing"


@not_root
def test_a_usage_file_of_somebody_else_is_found(tmp_path: Path):
    path = tmp_path / "usage.sqlite3"
    path.touch(mode=0o400)
    assert "by this user" in problems(files.usage(path))[0]


def test_a_place_that_cannot_be_looked_into_is_found_once_and_breaks_no_check(tmp_path: Path):
    """As where the folder may not be entered; a name that no file system takes fails in the same way for root, too."""
    path = tmp_path / ("x" * 300) / "state.json"
    assert "cannot be reached" in problems(files.usage(path))[0]
    assert files.lock(path) == []
    assert files.shared(path, {}, tmp_path) == []


def test_kept_broken_usage_files_are_a_note(tmp_path: Path):
    path = tmp_path / "usage.sqlite3"
    usage_file.add(path, {})
    (tmp_path / "usage.sqlite3.corrupt-1").touch()
    [found] = files.usage(path)
    assert found.note


@pytest.mark.parametrize(("size", "wrong"), [(32, False), (40, False), (31, True), (0, True)])
def test_a_secret_that_is_cut_short_is_found(tmp_path: Path, size: int, wrong: bool):
    path = tmp_path / "state.json.key"
    path.write_bytes(b"x" * size)
    assert bool(problems(files.secret(path))) == wrong
    assert files.secret(tmp_path / "none") == []


def test_a_lock_that_is_held_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(files, "LOCK_WAIT_MS", 100)
    path = tmp_path / "state.json"
    assert files.lock(path) == []
    assert list(tmp_path.iterdir()) == [], "looking makes nothing"
    with exclusive(path, 1000):
        [found] = problems(files.lock(path))
    assert "locked by another" in found
    assert files.lock(tmp_path / "none" / "state.json") == []


def test_a_state_file_of_the_extensions_is_found(tmp_path: Path):
    theirs = tmp_path / ".pi" / "opencode-session-pool.json"
    assert files.shared(tmp_path / "state.json", {}, tmp_path) == []
    assert problems(files.shared(theirs, {}, tmp_path))
    assert problems(files.shared(tmp_path / "s.json", {"PI_OCPOOL_STATE_PATH": str(tmp_path / "s.json")}, tmp_path))
    (tmp_path / "state.json.lock").touch()
    assert problems(files.shared(tmp_path / "state.json", {}, tmp_path)), "its lock beside our file"


def test_the_extension_that_pi_loads_is_found(tmp_path: Path):
    agent = tmp_path / ".pi" / "agent"
    agent.mkdir(parents=True)
    (agent / "settings.json").write_text('{"packages": ["npm:@mscststs/pi-opencode-session-pool"]}')
    [found] = problems(files.shared(tmp_path / "state.json", {}, tmp_path))
    assert "picked twice" in found
    assert files.shared(tmp_path / "state.json", {"PI_CODING_AGENT_DIR": str(tmp_path)}, tmp_path) == []


# -- port and daemon --------------------------------------------------------------------------------------


def at_port(number: int) -> Settings:
    return Settings.model_validate({"listen": {"port": number}})


def test_a_port_that_another_program_has_is_found():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        taken.settimeout(0.1)
        number = taken.getsockname()[1]
        monkey = daemon.ANSWER_SECONDS
        daemon.ANSWER_SECONDS = 0.2
        try:
            [found] = problems(daemon.port(at_port(number), []))
        finally:
            daemon.ANSWER_SECONDS = monkey
    assert "another program" in found
    assert problems(daemon.port(at_port(number), [])) == [], "free again"


def test_no_port_is_looked_at_where_any_will_do():
    assert daemon.port(at_port(0), []) == []


async def test_a_daemon_of_another_folder_is_told_from_another_program(tmp_path: Path):
    async with street(tmp_path, settings=["probe.enabled=false"]) as made:
        number = made.place.port
        [found] = problems(await asyncio.to_thread(daemon.port, at_port(number), []))
        assert "ocpool of another state folder" in found
        here = Running(made.url, os.getpid(), __version__, 1)
        assert daemon.port(at_port(number), [here]) == []
        assert await asyncio.to_thread(daemon.versions, [here]) == []
        old = Running(made.url, os.getpid(), "0.0.1", 1)
        [found] = problems(await asyncio.to_thread(daemon.versions, [old]))
        assert "0.0.1" in found


def test_a_daemon_that_does_not_answer_is_found():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        number = closed.getsockname()[1]
    [found] = problems(daemon.versions([Running(f"http://127.0.0.1:{number}", 1, __version__, 1)]))
    assert "does not answer" in found


def test_what_the_daemon_complains_of_is_found():
    seen = {
        "problems": {"state": "cannot be written"},
        "not_probing": {"opencode-go": "no credential", "opencode": None},
    }
    found = daemon.complaints(seen)
    assert problems(found) == ["The daemon says of state: cannot be written"]
    assert sum(one.note for one in found) == 1
    assert daemon.complaints({}) == []


# -- network, clock, credential -------------------------------------------------------------------------------


def test_the_gateway_is_asked_for_its_models():
    with page(200) as url:
        reached = network.reach(upstream(url + "/prefix"), None, [(b"authorization", b"Bearer sk-x")])
    assert isinstance(reached, Reached)
    assert network.answered(reached) == []
    assert network.clock(reached, round(__import__("time").time() * 1000)) == []


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        (302, "text/plain", "captive portal"),
        (200, "text/html; charset=utf-8", "captive portal"),
        (503, "application/json", "answers with 503"),
        (404, "application/json", "no list of models"),
    ],
)
def test_an_answer_that_is_not_the_gateways_is_found(status: int, kind: str, said: str):
    with page(status, kind) as url:
        reached = network.reach(upstream(url), None)
    assert isinstance(reached, Reached)
    [found] = problems(network.answered(reached))
    assert said in found


@pytest.mark.parametrize(
    ("url", "said"),
    [("http://127.0.0.1:1", "cannot be reached"), ("http://no-such-host.invalid", "is not found")],
)
def test_a_gateway_that_cannot_be_reached_is_found(url: str, said: str):
    found = network.reach(upstream(url), None)
    assert isinstance(found, Finding)
    assert said in found.problem
    assert found.remedy


def test_a_certificate_that_is_not_to_be_trusted_is_found(tmp_path: Path):
    import ssl

    import trustme

    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for _ in range(2):
                taken, _ = listening.accept()
                try:
                    with context.wrap_socket(taken, server_side=True) as secure:
                        secure.recv(65_536)
                        secure.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                except OSError:
                    taken.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"https://localhost:{listening.getsockname()[1]}"
        found = network.reach(upstream(url), None)
        assert isinstance(found, Finding)
        assert "not to be trusted" in found.problem
        trusted = tmp_path / "ca.pem"
        authority.cert_pem.write_to_path(str(trusted))
        assert isinstance(network.reach(upstream(url, ca_file=str(trusted)), None), Reached)
        thread.join(5)


def test_a_ca_file_that_is_not_there_is_found(tmp_path: Path):
    found = network.reach(upstream("https://localhost:1", ca_file=str(tmp_path / "none.pem")), None)
    assert isinstance(found, Finding)
    assert "ca_file" in found.remedy


@pytest.mark.parametrize(("off_ms", "said"), [(0, None), (59_000, None), (-62_000, "behind"), (62_000, "ahead of")])
def test_a_clock_that_is_wrong_is_found(off_ms: int, said: str | None):
    reached = Reached(200, "application/json", formatdate(NOW / 1000, usegmt=True))
    found = problems(network.clock(reached, NOW + off_ms))
    assert [said in one for one in found] == [True] * (said is not None)


@pytest.mark.parametrize("date", [None, "", "yesterday"])
def test_an_answer_without_a_date_says_nothing_about_the_clock(date: str | None):
    assert network.clock(Reached(200, "", date), NOW) == network.clock(None, NOW) == []
    assert problems(network.clock(None, 0)), "1970 needs no second opinion"


def test_a_key_that_the_gateway_refuses_is_found_and_not_shown():
    key = KeyFound("sk-planted-secret", "OPENCODE_API_KEY", shared=True)
    [found] = problems(credential.taken(key, Reached(401, "application/json", None)))
    assert "sk-planted" not in found
    assert credential.taken(key, Reached(200, "application/json", None)) == []
    assert credential.taken(None, Reached(401, "application/json", None)) == []


def test_having_no_key_is_no_fault():
    assert problems(credential.key(None)) == []
    assert credential.key(KeyFound("sk-x", "probe.api_key", shared=True)) == []
    [stored] = credential.key(KeyFound("sk-x", "auth.json"))
    assert stored.note


def test_a_clients_key_file_that_others_may_read_is_found(tmp_path: Path):
    environ = {"HOME": str(tmp_path)}
    assert credential.kept(environ) == []
    path = tmp_path / ".pi" / "agent" / "auth.json"
    path.parent.mkdir(parents=True)
    path.touch()
    path.chmod(0o644)
    assert len(problems(credential.kept(environ))) == 1


# -- what else is here --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "wrong"),
    [
        ({}, False),
        ({"HTTPS_PROXY": "http://p"}, False),
        ({"HTTP_PROXY": "http://p"}, True),
        ({"ALL_PROXY": "socks5://p", "NO_PROXY": "localhost"}, True),
        ({"http_proxy": "http://p", "NO_PROXY": "localhost, 127.0.0.1"}, False),
        ({"http_proxy": "http://p", "no_proxy": "*"}, False),
        ({"http_proxy": " "}, False),
    ],
)
def test_proxies_that_localhost_traffic_would_go_to_are_found(environ: dict[str, str], wrong: bool):
    assert bool(problems(environment.proxies(environ))) == wrong


def test_packages_of_the_same_name_are_found():
    assert environment.collisions() == environment.strangers() == []
    [found] = problems(
        environment.collisions({"config": ["ocpool", "config"], "pool": ["ocpool"], "proxy": ["OCPool"]})
    )
    assert "The package config" in found
    places: dict[str, str | None] = {"config": "/cwd/config/__init__.py", "pool": "/app/pool/__init__.py"}
    [found] = problems(environment.strangers({**places, "proxy": "/app/proxy/__init__.py"}))
    assert "/cwd" in found


def looked_at(tmp_path: Path, listen=None) -> list[Finding]:
    return unit.service(tmp_path / "home", tmp_path / "home/.config", "me", listen, tmp_path / "root")


def installed(tmp_path: Path, program: str) -> Path:
    """A user's units that start it, at the default addresses."""
    folder = tmp_path / "home/.config/systemd/user"
    folder.mkdir(parents=True)
    (folder / "ocpool.service").write_text(templates.unit([program, "serve"]))
    (folder / "ocpool.socket").write_text(templates.socket_unit("127.0.0.1", 8377))
    return folder


def linger(tmp_path: Path) -> None:
    (tmp_path / "root/var/lib/systemd/linger").mkdir(parents=True)
    (tmp_path / "root/var/lib/systemd/linger/me").touch()


def test_without_a_unit_there_is_a_note(tmp_path: Path):
    [none] = looked_at(tmp_path)
    assert none.note


def test_a_unit_is_checked_for_what_it_starts_and_for_lingering(tmp_path: Path):
    installed(tmp_path, "/nowhere/100% bin/ocpool")
    starts, lingers = problems(looked_at(tmp_path, Settings().listen))
    assert "starts /nowhere/100% bin/ocpool, which is not there" in starts
    assert "logs out" in lingers


def test_a_good_unit_is_as_the_installation_writes_it(tmp_path: Path):
    installed(tmp_path, "/bin/sh")
    linger(tmp_path)
    assert looked_at(tmp_path, Settings().listen) == []
    assert looked_at(tmp_path) == []


def test_a_unit_that_listens_elsewhere_than_the_settings_say_is_found(tmp_path: Path):
    folder = installed(tmp_path, "/bin/sh")
    linger(tmp_path)
    [found] = problems(looked_at(tmp_path, ListenSection(port=8380)))
    assert "127.0.0.1:8377" in found
    assert "127.0.0.1:8380" in found
    (folder / "ocpool.socket").unlink()
    [found] = problems(looked_at(tmp_path, Settings().listen))
    assert "ocpool.socket is missing" in found


def test_the_machines_unit_and_the_agent_are_looked_at_too(tmp_path: Path):
    system, agent = tmp_path / "root/etc/systemd/system", tmp_path / "home/Library/LaunchAgents"
    system.mkdir(parents=True)
    agent.mkdir(parents=True)
    (system / "ocpool.service").write_text("[Service]\nType=notify\n")
    (agent / "org.ocpool.plist").write_bytes(templates.agent(["/nowhere/ocpool", "serve"], tmp_path))
    assert ["starts /nowhere/ocpool" in problem for problem in problems(looked_at(tmp_path))] == [True, False]
    (system / "ocpool.service").write_text("[Service]\nExecStart=-/bin/sh -c true\n")
    (agent / "org.ocpool.plist").write_text("not at all")
    [found] = problems(looked_at(tmp_path))
    assert "no plist" in found
