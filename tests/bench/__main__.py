"""The project's own figures in about a minute: direct, a plain aiohttp proxy, and ocpool, under the same load.

    make bench

Requests a second say how far one process goes; CPU per request and per event are what the proxy itself spends, and what
to compare: they hardly depend on what else the machine does. Ratios are within one run.
"""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
TICK = os.sysconf("SC_CLK_TCK")
ROUNDS = 3
SECONDS = 3.0
CONNECTIONS = 32
STREAMS = 60
BODY = b'{"model":"bench","messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"%s"}]%s}'


def request(stream: bool) -> bytes:
    body = BODY % (b"hello " * 20, b',"stream":true' if stream else b"")
    return (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer sk-bench-0123456789\r\n"
        b"User-Agent: bench/1\r\nContent-Type: application/json\r\nx-opencode-session: bench\r\nContent-Length: %d\r\n\r\n%b"
    ) % (len(body), body)


class Load(asyncio.Protocol):
    """One client connection: counts answers, or events."""

    def __init__(self, counts: dict[str, int], stream: bool) -> None:
        self.counts, self.stream = counts, stream
        self.wire = request(stream)
        self.buffer = b""

    def connection_made(self, transport) -> None:
        self.transport = transport
        transport.write(self.wire)

    def data_received(self, data: bytes) -> None:
        if self.stream:
            self.counts["done"] += data.count(b"data: ")
            if data.endswith(b"\r\n0\r\n\r\n"):
                self.transport.write(self.wire)
            return
        self.buffer += data
        if self.buffer.endswith(b"}}"):
            self.counts["done"] += 1
            self.buffer = b""
            self.transport.write(self.wire)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


async def measure(port: int, pid: int | None, *, stream: bool) -> tuple[float, float]:
    """(per second, CPU us each) of one target."""
    loop = asyncio.get_running_loop()
    counts = {"done": 0}
    transports = []
    for _ in range(STREAMS if stream else CONNECTIONS):
        transport, _protocol = await loop.create_connection(lambda: Load(counts, stream), "127.0.0.1", port)
        transports.append(transport)
    await asyncio.sleep(0.7)
    before, spent, began = counts["done"], cpu_seconds(pid) if pid else 0.0, time.perf_counter()
    await asyncio.sleep(SECONDS)
    done, took = counts["done"] - before, time.perf_counter() - began
    used = cpu_seconds(pid) - spent if pid else 0.0
    for transport in transports:
        transport.abort()
    await asyncio.sleep(0.3)
    return done / took, used / max(done, 1) * 1e6


async def wait_for(port: int) -> None:
    for _ in range(400):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise SystemExit(f"nothing listens on port {port}")


async def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="ocpool-bench-"))
    up, plain, ours = free_port(), free_port(), free_port()
    url = f"http://127.0.0.1:{up}"
    env = dict(os.environ, PYTHONPATH=str(ROOT))
    state = ["--set", f"state.path={folder / 'state.json'}"]
    commands = {
        "upstream": [sys.executable, str(HERE / "upstream.py"), str(up)],
        "aiohttp": [sys.executable, str(HERE / "plain.py"), str(plain), url],
        "ocpool": [sys.executable, "-m", "proxy.cli.main", "serve", "--port", str(ours), "--upstream", url, *state],
    }
    running = {
        name: subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for name, command in commands.items()
    }
    try:
        for port in (up, plain, ours):
            await wait_for(port)
        targets = {
            "direct": (up, None),
            "aiohttp": (plain, running["aiohttp"].pid),
            "ocpool": (ours, running["ocpool"].pid),
        }
        results: dict[tuple[str, bool], list[tuple[float, float]]] = {}
        for _ in range(ROUNDS):
            for name, (port, pid) in targets.items():
                for stream in (False, True):
                    results.setdefault((name, stream), []).append(await measure(port, pid, stream=stream))
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait(10)
    show(results)


def show(results: dict[tuple[str, bool], list[tuple[float, float]]]) -> None:
    def mid(name: str, stream: bool, which: int) -> float:
        return median(row[which] for row in results[name, stream])

    table = Table(
        title=f"medians of {ROUNDS} rounds; {CONNECTIONS} connections, {STREAMS} streams of an event each 10 ms"
    )
    for column in ("proxy", "requests/s", "CPU us/request", "of aiohttp", "events/s", "CPU us/event", "of aiohttp"):
        table.add_column(column, justify="left" if column == "proxy" else "right")
    for name in ("direct", "aiohttp", "ocpool"):
        row = [name, f"{mid(name, False, 0):,.0f}"]
        for stream in (False, True):
            if stream:
                row.append(f"{mid(name, True, 0):,.0f}")
            cpu, plain = mid(name, stream, 1), mid("aiohttp", stream, 1)
            row += ["-", "-"] if name == "direct" else [f"{cpu:.1f}", f"{cpu / plain:.2f}"]
        table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    import uvloop

    uvloop.run(main())
