"""What the service manager is told (sd_notify(3)) and wants to hear: ready, stopping, reloading, still alive.

A datagram to ``$NOTIFY_SOCKET``. Without one, which is everywhere but under systemd, nothing happens; nothing here
raises or waits.
"""

import contextlib
import os
import socket
from collections.abc import Mapping

READY = "READY=1"
STOPPING = "STOPPING=1"
ALIVE = "WATCHDOG=1"


def notify(*lines: str, environ: Mapping[str, str] = os.environ) -> None:
    """Tell the service manager, if there is one."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    name = "\0" + address[1:] if address.startswith("@") else address  # @ is Linux's abstract namespace
    with contextlib.suppress(OSError, ValueError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        sock.sendto("\n".join(lines).encode(), name)


def reloading(mono_ms: float) -> str:
    """What a reload begins with; ``READY`` ends it. ``mono_ms`` is CLOCK_MONOTONIC."""
    return f"RELOADING=1\nMONOTONIC_USEC={round(mono_ms * 1000)}"


def watchdog_ms(environ: Mapping[str, str] = os.environ) -> float | None:
    """How often ``ALIVE`` is due: half of what the unit's WatchdogSec allows; None where nobody watches us."""
    allowed, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    if not allowed.isdecimal() or not int(allowed) or pid not in {"", str(os.getpid())}:
        return None
    return int(allowed) / 1000 / 2
