"""`ocpool service`, before programs that stand in for systemd and launchd and really start what they are given."""

import json
import os
import plistlib
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from proxy import __version__
from proxy.service import programs, templates
from tests.fakes.daemon import Daemon
from tests.fakes.services import Machine

OCPOOL = Path(sys.executable).absolute().with_name("ocpool")
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not OCPOOL.exists(), reason="needs Linux, and ocpool installed beside this Python"
)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


@pytest.fixture
def machine(tmp_path) -> Iterator[Machine]:
    made = Machine(tmp_path / "it")
    yield made
    made.close()


@pytest.fixture
def mac(tmp_path) -> Iterator[Machine]:
    made = Machine(tmp_path / "mac", "launchd")
    yield made
    made.close()


def test_a_service_is_installed_told_of_brought_up_to_date_and_removed(machine):
    """With absolute paths, on the port of the settings; what it left behind is named."""
    port = free_port()
    settings = machine.configure(f"[listen]\nport = {port}\n[probe]\nenabled = false\n")
    done = machine.run("service", "install", OPENCODE_API_KEY="sk-canary")
    assert done.returncode == 0, done.stderr
    units = machine.config_home / "systemd/user"
    unit, addresses = (units / "ocpool.service").read_text(), (units / "ocpool.socket").read_text()
    assert f"ExecStart={OCPOOL} serve\n" in unit
    assert f"ListenStream=127.0.0.1:{port}\nListenStream=[::1]:{port}\n" in addresses
    assert f"ocpool {__version__} listens on http://127.0.0.1:{port}, process {machine.pid}." in done.stdout
    assert "enable-linger" in done.stdout
    assert "OPENCODE_API_KEY" in done.stdout
    assert "sk-canary" not in done.stdout + done.stderr + unit

    said = machine.run("service", "status")
    assert (said.returncode, said.stderr) == (0, "")
    assert f"active (running), enabled, process {machine.pid}" in said.stdout
    assert f"process {machine.pid}, the service" in said.stdout
    (machine.fake / "lingers").touch()
    found = json.loads(machine.run("service", "status", "--json").stdout)
    assert found["ok"] is found["survives_logout"] is found["installed"] is True
    assert [listener["pid"] for listener in found["listening"]] == [found["pid"]] == [machine.pid]

    first = machine.pid
    again = machine.run("service", "install")
    assert again.returncode == 0, again.stderr
    assert machine.pid not in {0, first}

    gone = machine.run("service", "uninstall")
    assert gone.returncode == 0, gone.stderr
    assert machine.pid == 0
    assert list(units.iterdir()) == []
    assert f"  {machine.state_folder}\n" in gone.stdout
    assert f"  {settings}\n" in gone.stdout
    assert machine.calls[-2:] == [
        ["systemctl", "--user", "disable", "--now", "ocpool.service", "ocpool.socket"],
        ["systemctl", "--user", "daemon-reload"],
    ]
    after = machine.run("service", "status")
    assert after.returncode == 1
    assert "No systemd user unit is installed" in after.stdout
    assert "No ocpool listens." in after.stdout
    assert (machine.state_folder / "state.json.key").exists()


@pytest.mark.parametrize("command", ["install", "uninstall", "status"])
def test_without_a_running_systemd_it_says_so_and_changes_nothing(machine, command):
    """As in a container, or over sudo."""
    machine.without("Failed to connect to bus: No medium found")
    done = machine.run("service", command)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no systemd runs for this user here (Failed to connect to bus: No medium found)" in done.stderr
    assert "ocpool serve" in done.stderr
    assert not machine.config_home.exists()
    assert machine.calls == [["systemctl", "--user", "show-environment"]]


def test_without_any_service_manager_it_says_what_to_do_instead(tmp_path):
    """One line, exit code 1."""
    done = Machine(tmp_path, "nothing").run("service", "install")
    assert (done.returncode, done.stdout) == (1, "")
    assert "neither systemd nor launchd" in done.stderr


async def test_a_daemon_that_was_started_by_hand_is_not_the_service(machine):
    """It keeps the port: nothing is installed, and status says whose process it is."""
    daemon = await Daemon.start(
        machine.folder / "hand", env=machine.env, state__path=machine.state_folder / "state.json"
    )
    try:
        machine.configure(f"[listen]\nport = {daemon.port}\n")
        done = machine.run("service", "install")
        assert done.returncode == 1
        assert f"already, process {daemon.process.pid}. Stop that one first." in done.stderr
        assert not (machine.config_home / "systemd").exists()
        said = machine.run("service", "status")
        assert said.returncode == 1
        assert f"process {daemon.process.pid}, NOT the service" in said.stdout
    finally:
        await daemon.stop()


def test_somebody_else_on_the_port_is_named(machine):
    """No ocpool answers there; nothing is installed."""
    with socket.create_server(("127.0.0.1", 0)) as web:
        port = web.getsockname()[1]
        machine.configure(f"[listen]\nport = {port}\n")

        def answer() -> None:
            connection, _ = web.accept()
            connection.recv(1000)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
            connection.close()

        thread = Thread(target=answer, daemon=True)
        thread.start()
        done = machine.run("service", "install")
        thread.join(5)
    assert done.returncode == 1
    assert f"http://127.0.0.1:{port} is taken" in done.stderr


def test_bad_settings_are_refused_before_anything_is_installed(machine):
    """With the key, and exit code 2."""
    machine.configure("[listen]\nport = 99999\n")
    done = machine.run("service", "install")
    assert done.returncode == 2
    assert "listen.port" in done.stderr
    assert not (machine.config_home / "systemd").exists()


def test_an_agent_is_installed_told_of_and_removed(mac):
    """launchd: the log is a file of our own, the paths absolute."""
    port = free_port()
    mac.configure(f"[listen]\nport = {port}\n[probe]\nenabled = false\n")
    done = mac.run("service", "install")
    assert done.returncode == 0, done.stderr
    file = mac.folder / "Library/LaunchAgents/org.ocpool.plist"
    plist = plistlib.loads(file.read_bytes())
    assert plist["ProgramArguments"] == [str(OCPOOL), "serve"]
    logs = mac.folder / "Library/Logs/ocpool"
    assert plist["EnvironmentVariables"]["OCPOOL_LOG__PATH"] == f"{logs}/ocpool.log"
    domain = f"gui/{os.getuid()}"
    assert ["launchctl", "bootstrap", domain, str(file)] in mac.calls
    assert "ends when you log out" in done.stdout
    said = mac.run("service", "status")
    assert said.returncode == 0, said.stdout
    assert f"launchd agent: running, enabled, process {mac.pid}" in said.stdout
    gone = mac.run("service", "uninstall")
    assert gone.returncode == 0, gone.stderr
    assert mac.pid == 0
    assert not file.exists()
    assert f"  {logs}\n" in gone.stdout
    assert ["launchctl", "bootout", f"{domain}/org.ocpool"] in mac.calls


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("/opt/config.toml", "/opt/config.toml"),
        ("/home/a b/c", '"/home/a b/c"'),
        ("/home/100%/$x/c", "/home/100%%/$$x/c"),
        ('/home/"q"/c', '"/home/\\"q\\"/c"'),
    ],
)
def test_arguments_are_quoted_as_systemd_reads_them(word, text):
    """Spaces, quotes, and its own % and $."""
    assert templates.quoted(word) == text
    assert f"ExecStart=/opt/ocpool serve --config {text}\n" in templates.unit(
        ["/opt/ocpool", "serve", "--config", word]
    )


def test_a_program_that_systemd_would_not_start_is_refused():
    """It takes no quotes in the program's own path."""
    with pytest.raises(programs.ServiceError, match="quotes"):
        templates.unit(["/home/it's/ocpool", "serve"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="NOT CHECKED by systemd: no systemd-analyze here")
def test_systemd_finds_a_program_in_an_odd_folder(tmp_path):
    """Its own reading of what was quoted."""
    program = tmp_path / "a 100% odd $HOME" / "ocpool"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "ocpool.service").write_text(templates.unit([str(program), "serve", "--config", 'a $b 100% "c"']))
    (tmp_path / "ocpool.socket").write_text(templates.socket_unit("127.0.0.1", 8377))
    files = [tmp_path / "ocpool.service", tmp_path / "ocpool.socket"]
    env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(["systemd-analyze", "verify", "--user", *files], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("host", "addresses"),
    [
        ("localhost", ["127.0.0.1:9000", "[::1]:9000"]),
        ("0.0.0.0", ["0.0.0.0:9000"]),
        ("::1", ["[::1]:9000"]),
    ],
)
def test_the_socket_listens_where_the_settings_say(host, addresses):
    """The default has IPv6's loopback beside it."""
    lines = templates.socket_unit(host, 9000).splitlines()
    assert [line.partition("=")[2] for line in lines if line.startswith("ListenStream=")] == addresses


@pytest.mark.parametrize("folder", [".cache/pipx/1/bin", ".cache/uv/archive-v0/x/bin"])
def test_a_temporary_environment_is_no_place_for_a_service(tmp_path, monkeypatch, folder):
    """What uvx and `pipx run` use is cleaned up some day."""
    program = tmp_path / folder / "ocpool"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    with pytest.raises(programs.ServiceError, match="temporary"):
        programs.installed_program()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(programs.ServiceError, match="install ocpool first"):
        programs.installed_program()
