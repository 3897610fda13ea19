"""The files in systemd/, the Dockerfile and compose.yaml: what they promise, and what systemd itself says of them."""

import os
import plistlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from config.load import load

ROOT = Path(__file__).parents[1]
SYSTEM, USER = ROOT / "systemd/ocpool.service", ROOT / "systemd/user/ocpool.service"
SOCKET, PLIST = ROOT / "systemd/ocpool.socket", ROOT / "systemd/org.ocpool.plist"
PROGRAM = Path(sys.executable).with_name("ocpool")
services = pytest.mark.parametrize("file", [SYSTEM, USER], ids=["system", "user"])
needs_analyze = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None,
    reason="NOT CHECKED by systemd: there is no systemd-analyze here (package systemd)",
)


def unit(file: Path) -> dict[str, dict[str, list[str]]]:
    """Every section's keys, each with all of its values."""
    sections: dict[str, dict[str, list[str]]] = {}
    for line in file.read_text().splitlines():
        if line.startswith("["):
            keys = sections.setdefault(line.strip("[]"), {})
        elif line and line[0] not in "#;":
            name, equals, value = line.partition("=")
            assert equals, line
            assert name == name.strip()
            keys.setdefault(name, []).append(value)
    return sections


def environment(keys: dict[str, list[str]]) -> dict[str, str]:
    return dict(word.split("=", 1) for line in keys.get("Environment", []) for word in line.split())


def seconds(value: list[str]) -> int:
    return int(value[-1])


@services
def test_a_unit_is_told_when_we_are_ready_and_that_we_live(file):
    """It waits longer than a drain may take, and starts us again unless that is pointless."""
    keys = unit(file)["Service"]
    assert keys["Type"] == ["notify"]
    assert 10 <= seconds(keys["WatchdogSec"]) <= 60
    drain_ms = load(None, (), environment(keys)).settings.listen.drain_ms
    assert drain_ms == 300_000
    assert seconds(keys["TimeoutStopSec"]) * 1000 > drain_ms + 10_000
    assert keys["Restart"] == ["on-failure"]
    assert keys["RestartPreventExitStatus"] == ["2 3"]
    assert keys["ExecReload"] == ["/bin/kill -HUP $MAINPID"]
    assert unit(file)["Unit"]["Requires"] == ["ocpool.socket"]


@services
def test_after_crashes_it_is_started_again_for_ever(file):
    """The limit on starts, which would take the socket down too, is beyond what crashes can reach."""
    keys = unit(file)
    interval = seconds(keys["Unit"]["StartLimitIntervalSec"])
    assert seconds(keys["Service"]["RestartSec"]) * int(keys["Unit"]["StartLimitBurst"][-1]) >= interval > 0


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_units_work_under_a_systemd_that_runs():
    """Booted in namespaces of its own: start, restart under load, crash, watchdog, and the user unit; see the script."""
    done = subprocess.run([ROOT / "scripts/check-systemd"], capture_output=True, text=True)
    if "NOT CHECKED" in done.stdout:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_system_unit_has_a_private_state_folder_and_a_user_of_its_own():
    """Not root, 0700, and no way to anything else that is written."""
    keys = unit(SYSTEM)["Service"]
    assert (keys["DynamicUser"], keys["StateDirectory"], keys["StateDirectoryMode"]) == (["yes"], ["ocpool"], ["0700"])
    assert (keys["CapabilityBoundingSet"], keys["NoNewPrivileges"]) == ([""], ["yes"])
    assert keys["ProtectSystem"] == ["strict"]


def test_the_user_unit_asks_for_nothing_that_takes_privileges():
    """Such a unit would not start at all on many systems."""
    taking = re.compile(
        r"Protect|Private|ReadWrite|ReadOnly|Inaccessible|Capabilit|Ambient|DynamicUser|StateDirectory|Proc|User|Group"
    )
    assert [name for name in unit(USER)["Service"] if taking.match(name)] == []
    assert "NoNewPrivileges" in unit(USER)["Service"]
    assert unit(USER)["Install"]["WantedBy"] == ["default.target"]


def test_both_loopback_addresses_are_the_sockets():
    """At the port that the settings have by default."""
    port = load(None, (), {}).settings.listen.port
    assert unit(SOCKET)["Socket"]["ListenStream"] == [f"127.0.0.1:{port}", f"[::1]:{port}"]


def test_the_agent_keeps_its_own_rotated_log_and_is_given_time_to_drain():
    """Every environment variable in it is a setting that exists."""
    plist = plistlib.loads(PLIST.read_bytes())
    settings = load(None, (), plist["EnvironmentVariables"]).settings
    assert plist["ExitTimeOut"] * 1000 > settings.listen.drain_ms == 300_000
    assert settings.log.path is not None
    assert settings.log.path.name == "ocpool.log"
    assert plist["ProgramArguments"][1:] == ["serve"]
    assert Path(plist["ProgramArguments"][0]).is_absolute()
    assert plist["KeepAlive"] == {"SuccessfulExit": False}
    assert plist["RunAtLoad"] is True
    assert "StandardOutPath" not in plist


@pytest.fixture
def placed(tmp_path):
    """The units in folders of their own, with a program that exists here."""
    for folder, files in (("system", (SYSTEM, SOCKET)), ("user", (USER, SOCKET))):
        (tmp_path / folder).mkdir()
        for file in files:
            text = file.read_text().replace("/usr/local/bin/ocpool", str(PROGRAM))
            (tmp_path / folder / file.name).write_text(text)
    return tmp_path


def analyze(folder: Path, *arguments: str) -> str:
    (folder / "run").mkdir(exist_ok=True)
    env = {**os.environ, "XDG_RUNTIME_DIR": str(folder / "run"), "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(["systemd-analyze", *arguments], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@needs_analyze
@pytest.mark.parametrize("kind", ["system", "user"])
def test_systemd_verifies_the_units_without_a_word(placed, kind):
    """No unknown key, no missing program, no cycle."""
    if not PROGRAM.exists():
        pytest.skip("ocpool is not installed beside this Python")
    files = [str(placed / kind / name) for name in ("ocpool.service", "ocpool.socket")]
    assert analyze(placed, "verify", *(["--user"] if kind == "user" else []), *files) == ""


@needs_analyze
def test_systemd_finds_the_system_unit_little_exposed(placed):
    """3.0 at most, where 10 is a service without any hardening."""
    said = analyze(placed, "security", "--offline=true", "--threshold=30", str(placed / "system/ocpool.service"))
    (exposure,) = re.findall(r"exposure level for ocpool.service: ([\d.]+)", said)
    assert float(exposure) <= 3.0


def test_the_image_is_not_root_and_takes_its_base_as_an_argument():
    """And every variable that it sets is a setting; the rest is .ci/image's to try."""
    text = (ROOT / "Dockerfile").read_text()
    assert re.search(r"^ARG BASE=python:[\d.]+-slim$", text, re.MULTILINE)
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${BASE}", "${BASE}"]
    assert re.findall(r"^(USER|VOLUME) (.+)$", text, re.MULTILINE) == [
        ("USER", "ocpool"),
        ("VOLUME", "/var/lib/ocpool"),
    ]
    assert "HEALTHCHECK" in text
    names = set(re.findall(r"(OCPOOL_[A-Z_]+)=", text))
    assert names == {"OCPOOL_LISTEN__HOST"}


def test_what_the_image_is_built_from_is_let_through():
    """.dockerignore keeps everything else out of the build."""
    let = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        word
        for line in re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
        for word in line.split()
    }
    assert copied == let


def test_the_compose_file_keeps_its_promises():
    """The token is required, the Host name allowed, the log capped, the drain shorter than the grace."""
    text = (ROOT / "compose.yaml").read_text()
    assert "${OCPOOL_TOKEN:?" in text
    assert "max-size:" in text
    assert "max-file:" in text
    variables = dict(re.findall(r"^      (OCPOOL_\w+): (.+)$", text, re.MULTILINE))
    values = {name: value.strip("'\"") for name, value in variables.items()}
    values["OCPOOL_LISTEN__TOKEN"] = "0123456789abcdef"
    settings = load(None, (), {**values, "OCPOOL_LISTEN__HOST": "0.0.0.0"}).settings
    assert settings.listen.allowed_hosts == ("ocpool",)
    grace = int(re.search(r"stop_grace_period: (\d+)s", text)[1])
    assert grace * 1000 > settings.listen.drain_ms == 300_000
    assert "http://ocpool:8377/t/${OCPOOL_TOKEN}/v1" in text
    assert re.findall(r"^      - ([\d.:]+):8377$", text, re.MULTILINE) == ["127.0.0.1:8377"]
