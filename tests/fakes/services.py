"""``systemctl``, ``loginctl`` and ``launchctl`` that keep a record, and really start what a unit or an agent names."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.fakes.daemon import COMMAND, environment

PROGRAM = r"""
import json, os, plistlib, shlex, signal, subprocess, sys, time
from pathlib import Path

name, arguments, fake = Path(sys.argv[0]).name, sys.argv[1:], Path(os.environ["FAKE"])
with (fake / "calls").open("a") as calls:
    calls.write(json.dumps([name, *arguments]) + "\n")
if (fake / "absent").exists():
    sys.exit((fake / "absent").read_text())
pid_file, enabled = fake / "pid", fake / "enabled"
home = Path(os.environ["HOME"])

def pid():
    return int(pid_file.read_text()) if pid_file.exists() else 0

def start(command, env):
    if pid():
        stop()
    log = (fake / "log").open("ab")
    process = subprocess.Popen(command, env={**os.environ, **env}, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    pid_file.write_text(str(process.pid))

def stop():
    if pid():
        os.kill(pid(), signal.SIGTERM)
        for _ in range(200):
            try:
                if Path(f"/proc/{pid()}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                    break
            except OSError:
                break
            time.sleep(0.05)
        pid_file.unlink()

if name == "loginctl":
    print("Linger=" + ("yes" if (fake / "lingers").exists() else "no"))
elif name == "systemctl":
    verb, units = arguments[1], arguments[2:]
    if verb == "enable" or (verb == "disable" and enabled.exists()):
        enabled.touch() if verb == "enable" else enabled.unlink()
    if verb == "restart" and "ocpool.service" in units:
        lines = (Path(os.environ["XDG_CONFIG_HOME"]) / "systemd/user/ocpool.service").read_text().splitlines()
        env = dict(line.partition("=")[2].split("=", 1) for line in lines if line.startswith("Environment="))
        (line,) = [line for line in lines if line.startswith("ExecStart=")]
        start(shlex.split(line.partition("=")[2]), env)
    if verb == "stop" or "--now" in units:
        stop()
    if verb == "show":
        running = bool(pid())
        print(f"MainPID={pid()}", f"ActiveState={'active' if running else 'inactive'}", f"SubState={'running' if running else 'dead'}", f"UnitFileState={'enabled' if enabled.exists() else ''}", sep="\n")
elif name == "launchctl":
    verb, target = arguments[:2]
    if verb == "bootstrap":
        plist = plistlib.loads(Path(arguments[2]).read_bytes())
        enabled.touch()
        start(plist["ProgramArguments"], plist["EnvironmentVariables"])
    elif target.count("/") == 2 and not enabled.exists():
        sys.exit("Could not find service in domain")
    elif verb == "bootout":
        enabled.unlink()
        stop()
    elif target.count("/") == 2:
        print("org.ocpool = {\n\tstate = running\n\tpid = %d\n}" % pid())
"""


class Machine:
    """A home with a service manager; ``kind`` is systemd, launchd or nothing."""

    def __init__(self, folder: Path, kind: str = "systemd") -> None:
        self.folder = folder
        self.bin, self.fake = folder / "bin", folder / "fake"
        self.bin.mkdir(parents=True)
        self.fake.mkdir()
        for name in {"systemd": ("systemctl", "loginctl"), "launchd": ("launchctl",)}.get(kind, ()):
            (self.bin / name).write_text(f"#!{sys.executable} -S\n{PROGRAM}")
            (self.bin / name).chmod(0o755)
        self.env = environment(folder, PATH=str(self.bin), FAKE=str(self.fake))
        self.config_home = Path(self.env["XDG_CONFIG_HOME"])
        self.state_folder = Path(self.env["XDG_STATE_HOME"]) / "ocpool"

    def configure(self, text: str) -> Path:
        """Write the user's settings file."""
        file = self.config_home / "ocpool/config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run ``ocpool`` there."""
        return subprocess.run(
            [*COMMAND, *arguments],
            env={**self.env, **more},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
        )

    @property
    def calls(self) -> list[list[str]]:
        """What the programs were asked, in order."""
        file = self.fake / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def pid(self) -> int:
        """The process that the service manager started, 0 for none."""
        file = self.fake / "pid"
        return int(file.read_text()) if file.exists() else 0

    def without(self, why: str) -> None:
        """From now on the service manager does not answer."""
        (self.fake / "absent").write_text(why)

    def close(self) -> None:
        """End what still runs."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
