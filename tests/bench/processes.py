"""The processes of one round: upstreams and proxies, each started when it is needed and stopped with the round."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.bench.load import Wrong
from tests.bench.machine import CORES
from tests.fakes.daemon import COMMAND, environment

HERE = Path(__file__).parent
_PATIENCE_S = 30.0
_STEP_S = 0.002


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextmanager
def on_core(number: int) -> Iterator[None]:
    """What is started meanwhile stays on one core, so that load and proxy do not push each other about.

    The load and the upstreams have the first, the proxies the second; where there is only one, nothing is moved.
    """
    if len(CORES) < 2:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {CORES[number]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class Process:
    """One of them, listening on ``port``."""

    def __init__(self, name: str, command: Sequence[str], port: int, folder: Path, *, core: int) -> None:
        env = environment(folder)
        env.pop("PYTHONDONTWRITEBYTECODE")  # a start from source is not what users see
        self.name = name
        self.port = port
        self.began = time.perf_counter()
        self._log = folder / f"{name}.log"
        with self._log.open("wb") as log, on_core(core):
            self._process = subprocess.Popen(command, env=env, cwd=folder, stdout=log, stderr=log)
        self.pid = self._process.pid

    def wait(self, request: bytes) -> float:
        """Wait for the first answer with 200; returns how long it took since the start, in milliseconds."""
        while time.perf_counter() - self.began < _PATIENCE_S:
            if self._process.poll() is not None:
                break
            try:
                if self._asked(request).startswith(b"HTTP/1.1 200"):
                    return (time.perf_counter() - self.began) * 1000
            except OSError:
                pass
            time.sleep(_STEP_S)
        raise Wrong(f"{self.name} did not start: {self._log.read_text(errors='replace')[-500:]}")

    def listening(self) -> None:
        """Wait until connections are accepted."""
        while time.perf_counter() - self.began < _PATIENCE_S:
            try:
                socket.create_connection(("127.0.0.1", self.port), 5).close()
            except OSError:
                time.sleep(_STEP_S)
            else:
                return
        raise Wrong(f"{self.name} did not start: {self._log.read_text(errors='replace')[-500:]}")

    def _asked(self, request: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), 5) as sock:
            sock.settimeout(5)
            sock.sendall(request)
            return sock.recv(65_536)

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def upstream(folder: Path, certificate: Path | None) -> Process:
    """The fixed upstream, with TLS where it has a certificate; it shares the first core with the load."""
    port = free_port()
    command = [sys.executable, str(HERE / "upstream.py"), str(port), *([str(certificate)] if certificate else [])]
    return Process("upstream-tls" if certificate else "upstream", command, port, folder, core=0)


def aiohttp(folder: Path, url: str, ca_file: Path | None) -> Process:
    """The plain proxy, before an upstream at ``url``."""
    port = free_port()
    command = [sys.executable, str(HERE / "plain.py"), str(port), url, *([str(ca_file)] if ca_file else [])]
    return Process(f"aiohttp-{port}", command, port, folder, core=1)


def ocpool(folder: Path, url: str, ca_file: Path | None) -> Process:
    """ocpool as it comes, everything on, with a state of its own."""
    port = free_port()
    sets = [f"state.path={folder / f'{port}' / 'state.json'}", *([f"upstream.ca_file={ca_file}"] if ca_file else [])]
    command = [*COMMAND, "serve", "--port", str(port), "--upstream", url]
    return Process(
        f"ocpool-{port}", [*command, *(part for one in sets for part in ("--set", one))], port, folder, core=1
    )
