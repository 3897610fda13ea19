"""What is measured: direct, the plain aiohttp proxy and ocpool, before a plain and before a TLS upstream."""

import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import trustme

from tests.bench import asking, processes
from tests.bench.machine import cpu_seconds
from tests.bench.processes import Process

DIRECT, AIOHTTP, OCPOOL = "direct", "aiohttp", "ocpool"
PLAIN, TLS = "plain", "TLS"
PROXIES = {AIOHTTP: processes.aiohttp, OCPOOL: processes.ocpool}


@dataclass(frozen=True)
class Target:
    """Where the load goes. ``pid`` is the proxy's; ``context`` is for a load that speaks TLS itself."""

    name: str
    way: str  # PLAIN or TLS: how the upstream is spoken to
    port: int
    pid: int | None = None
    start_ms: float | None = None
    start_cpu_ms: float | None = None
    context: ssl.SSLContext | None = None


@dataclass
class Field:
    """All targets of one round, and all processes behind them."""

    targets: list[Target] = field(default_factory=list)
    pids: list[int] = field(default_factory=list)


@contextmanager
def running(folder: Path, names: tuple[str, ...]) -> Iterator[Field]:
    """Start the upstreams and those proxies; all are stopped at the end."""
    certificate, ca_file = folder / "upstream.pem", folder / "ca.pem"
    if not ca_file.exists():
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(ca_file))
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(certificate))
    made = Field()
    with ExitStack() as stack:

        def started(process: Process) -> Process:
            stack.callback(process.stop)
            made.pids.append(process.pid)
            return process

        for way in (PLAIN, TLS):
            secured = way == TLS
            up = started(processes.upstream(folder, certificate if secured else None))
            up.listening()
            url = f"{'https' if secured else 'http'}://127.0.0.1:{up.port}"
            if DIRECT in names:
                context = ssl.create_default_context(cafile=str(ca_file)) if secured else None
                made.targets.append(Target(DIRECT, way, up.port, context=context))
            for name in names:
                if name in PROXIES:
                    proxy = started(PROXIES[name](folder, url, ca_file if secured else None))
                    start_ms = proxy.wait(asking.small())
                    made.targets.append(
                        Target(name, way, proxy.port, proxy.pid, start_ms, cpu_seconds(proxy.pid) * 1000)
                    )
        yield made
