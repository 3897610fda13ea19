"""ocpool as its users run it: a process of its own, found by the one line it prints."""

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ADDRESS = re.compile(r"http://(\[[0-9a-fA-F:]+\]|[\w.-]+):(\d+)")
COMMAND = shlex.split(os.environ.get("OCPOOL_TEST_COMMAND", "")) or [sys.executable, "-m", "proxy.cli.main"]
ROOT = Path(__file__).resolve().parents[2]


def environment(folder: Path, **more: str) -> dict[str, str]:
    """A clean one: no proxies, no keys, and every folder under the test's own."""
    folders = {name: str(folder / name.lower()) for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
    return {
        "PATH": os.environ.get("PATH", ""),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(folder),
        **folders,
        **more,
    }


class Daemon:
    """A running ``ocpool serve``."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.folder = folder
        self.process = process
        self.host = ""
        self.port = 0
        self._read_to = 0

    @classmethod
    def launch(
        cls,
        folder: Path,
        *arguments: str,
        env: dict[str, str] | None = None,
        before: Sequence[str] = (),
        pass_fds: Sequence[int] = (),
        **settings: object,
    ) -> "Daemon":
        """Start the process without waiting; settings are ``section__key=value``, ``before`` is a command that execs it."""
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        defaults: dict[str, object] = {
            "state__path": folder / "state.json",
            "state__events_path": folder / "events.jsonl",
            "probe__enabled": False,
            "pool__adaptive": False,  # most tests are not about what was learned so far
            "listen__drain_ms": 1000,
        }
        sets: list[str] = []
        for name, value in {**defaults, **settings}.items():
            if value is not None:
                sets += ["--set", f"{name.replace('__', '.', 1)}={_text(value)}"]
        command = [*before, *COMMAND, "serve", *(() if "--port" in arguments else ("--port", "0")), *arguments, *sets]
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("ab") as err:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=env or environment(folder),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                pass_fds=pass_fds,
            )
        return cls(folder, process)

    @classmethod
    async def start(
        cls, folder: Path, *arguments: str, env: dict[str, str] | None = None, **settings: object
    ) -> "Daemon":
        """Start and wait until it accepts connections."""
        daemon = cls.launch(folder, *arguments, env=env, **settings)
        await daemon.ready()
        return daemon

    async def ready(self, within: float = 30.0) -> None:
        deadline = time.perf_counter() + within
        while not (found := ADDRESS.search(self.out())):
            if self.process.poll() is not None or time.perf_counter() > deadline:
                self.kill()
                raise AssertionError(f"serve did not start ({self.process.returncode}): {self.log()[-3000:]}")
            await asyncio.sleep(0.02)
        self.host, self.port = found[1].strip("[]"), int(found[2])

    def out(self) -> str:
        return (self.folder / "stdout").read_text()

    def log(self) -> str:
        return (self.folder / "stderr").read_text(errors="replace")

    def faults(self) -> list[str]:
        """Lines with a traceback since the last call: nothing that a peer does is a fault of ours."""
        path = self.folder / "stderr"
        with path.open("rb") as file:
            file.seek(self._read_to)
            new = file.read()
        self._read_to += len(new)
        return [line for line in new.decode(errors="replace").splitlines() if "Traceback" in line]

    def events(self) -> list[dict[str, object]]:
        """The event log so far; half a line at its end is left for the next time."""
        path = self.folder / "events.jsonl"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [json.loads(line) for line in lines]

    async def event(self, kind: str, within: float = 5.0, **facts: object) -> dict[str, object]:
        """Wait for the newest event of a kind that has these facts."""
        deadline = time.perf_counter() + within
        while True:
            for event in reversed(self.events()):
                if kind in event.values() and all(event.get(name) == value for name, value in facts.items()):
                    return event
            if time.perf_counter() > deadline:
                raise AssertionError(f"no {kind} event with {facts} among {self.events()[-5:]}")
            await asyncio.sleep(0.05)

    def rss(self) -> int:
        """Resident memory in bytes."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def busy_ms(self) -> int:
        """Processor time it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(field) for field in fields[11:13]) * 1000 // os.sysconf("SC_CLK_TCK")

    def files(self) -> int:
        """How many files it has open."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def unread(self, client_port: int) -> int:
        """Bytes of a client's that lie in the kernel because the daemon does not read them."""
        ends = f":{self.port:04X}", f":{client_port:04X}"
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if (fields[1][-5:], fields[2][-5:]) == ends:
                return int(fields[4].partition(":")[2], 16)
        return 0

    def tell(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def exit(self, within: float = 15.0) -> int:
        """Wait for the end; returns the exit code."""
        deadline = time.perf_counter() + within
        while (code := self.process.poll()) is None:
            if time.perf_counter() > deadline:
                self.kill()
                raise AssertionError(f"still running after {within} s")
            await asyncio.sleep(0.02)
        return code

    async def stop(self) -> int:
        if self.process.poll() is None:
            self.tell(signal.SIGTERM)
        return await self.exit()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def _text(value: object) -> str:
    """As ``--set`` reads it, which is TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {json.dumps(item)}" for name, item in value.items()) + "}"
    if isinstance(value, bool | list | int | float):
        return json.dumps(value)
    return str(value)
