"""What a service manager does for a daemon: holds its listening sockets, passes them on, hears what it says of itself."""

import asyncio
import contextlib
import fcntl
import os
import shutil
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.fakes.daemon import ROOT, Daemon, environment

PASS_ON = """
import os, sys
fds = [int(fd) for fd in sys.argv[1].split(",")]
for number, fd in enumerate(fds, 3):
    os.dup2(fd, number)
    os.close(fd)
os.environ.update(LISTEN_FDS=str(len(fds)), LISTEN_PID=str(os.getpid()))
if "WATCHDOG_USEC" in os.environ:
    os.environ["WATCHDOG_PID"] = str(os.getpid())
os.execvp(sys.argv[2], sys.argv[2:])
"""


class Supervisor:
    """Sockets on a free port of ``host`` (and of ``::1`` where it exists), and a notify socket."""

    def __init__(self, folder: Path, host: str = "127.0.0.1") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.sockets = [socket.create_server((host, 0), backlog=1024)]
        self.port = self.sockets[0].getsockname()[1]
        if host == "127.0.0.1":
            with contextlib.suppress(OSError):
                self.sockets.append(socket.create_server(("::1", self.port), family=socket.AF_INET6, backlog=1024))
        self._fds = [fcntl.fcntl(sock.fileno(), fcntl.F_DUPFD, 100) for sock in self.sockets]
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notify.bind(str(folder / "notify"))
        self._notify.setblocking(False)
        self.told: list[tuple[float, str]] = []

    def launch(
        self,
        name: str,
        tree: Path = ROOT,
        *arguments: str,
        env: dict[str, str] | None = None,
        before: Sequence[str] = (),
        **settings: Any,
    ) -> Daemon:
        """Start a daemon from ``tree`` on the sockets; ``before`` is a command that execs it."""
        folder = self.folder / name
        more = {"PYTHONPATH": str(tree), "NOTIFY_SOCKET": str(self.folder / "notify"), **(env or {})}
        daemon = Daemon.launch(
            folder,
            *arguments,
            "--port",
            str(self.port),
            env=environment(folder, **more),
            before=[*before, sys.executable, "-ISc", PASS_ON, ",".join(map(str, self._fds))],
            pass_fds=self._fds,
            **settings,
        )
        daemon.host, daemon.port = "127.0.0.1", self.port
        return daemon

    def heard(self) -> list[str]:
        """Every line that was told so far, the oldest first."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self.told += [(time.perf_counter(), line) for line in self._notify.recv(65536).decode().splitlines()]
        return [line for _, line in self.told]

    async def hears(self, line: str, count: int = 1, within: float = 30.0) -> None:
        """Wait for a line to be told, that many times altogether."""
        deadline = time.perf_counter() + within
        while self.heard().count(line) < count:
            assert time.perf_counter() < deadline, (line, self.heard())
            await asyncio.sleep(0.01)

    def close(self) -> None:
        for sock in [*self.sockets, self._notify]:
            sock.close()
        for fd in self._fds:
            with contextlib.suppress(OSError):
                os.close(fd)


def tree(folder: Path, version: str | None = None) -> Path:
    """A copy of the packages, as an installation of another version has them."""
    for package in ("config", "pool", "proxy"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    if version is not None:
        init = folder / "proxy/__init__.py"
        lines = init.read_text().splitlines()
        lines = [f'__version__ = "{version}"' if line.startswith("__version__") else line for line in lines]
        init.write_text("\n".join(lines) + "\n")
    return folder
