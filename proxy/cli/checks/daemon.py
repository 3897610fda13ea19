"""The port and the daemon that has it."""

import errno
import http.client
from collections.abc import Sequence
from typing import Any, Final

import orjson

from config.settings import Settings
from proxy import __version__
from proxy.cli.checks.finding import Finding, remark
from proxy.runtime import Running
from proxy.sockets import bind

ANSWER_SECONDS: Final = 3.0


def port(settings: Settings, running: Sequence[Running]) -> list[Finding]:
    """Can the daemon listen where the settings say, or does it already?"""
    host, number = settings.listen.host, settings.listen.port
    if number == 0 or any(one.address.endswith(f":{number}") for one in running):
        return []
    try:
        for sock in bind(host, number):
            sock.close()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            return [
                Finding(f"{host} port {number} cannot be used: {error.strerror}.", "Set listen.host and listen.port.")
            ]
        who = "an ocpool of another state folder" if health(host, number) is not None else "another program"
        return [Finding(f"Port {number} on {host} is taken by {who}.", "End it, or set listen.port.")]
    return [] if running else [remark("No daemon runs here.", "ocpool serve")]


def versions(running: Sequence[Running]) -> list[Finding]:
    """Daemons that run from another version than is installed, or that do not answer."""
    found = []
    for one in running:
        host, _, number = one.address.rpartition("//")[2].rpartition(":")
        if health(host.strip("[]"), int(number)) is None:
            found.append(Finding(f"The daemon {one.pid} at {one.address} does not answer.", "See its log; restart it."))
        elif one.version != __version__:
            found.append(
                Finding(
                    f"The daemon at {one.address} is version {one.version}; {__version__} is installed.", "Restart it."
                )
            )
    if len(running) > 1:
        found.append(
            remark(f"{len(running)} daemons share this state folder: {', '.join(r.address for r in running)}.")
        )
    return found


def complaints(status: dict[str, Any]) -> list[Finding]:
    """What a running daemon says is wrong with it, from its status."""
    problems = status.get("problems")
    found = [
        Finding(f"The daemon says of {part}: {text}", "docs/design.md, What it does when things break.")
        for part, text in (problems if isinstance(problems, dict) else {}).items()
    ]
    reasons = status.get("not_probing")
    for provider, reason in (reasons if isinstance(reasons, dict) else {}).items():
        if reason:
            found.append(remark(f"No probes for {provider}: {reason}."))
    return found


def health(host: str, number: int) -> dict[str, Any] | None:
    """What an ocpool at this address says; None when there is none."""
    connection = http.client.HTTPConnection(
        "127.0.0.1" if host in {"0.0.0.0", ""} else host, number, timeout=ANSWER_SECONDS
    )
    try:
        connection.request("GET", "/-/health", headers={"Host": f"localhost:{number}", "Connection": "close"})
        answer = orjson.loads(connection.getresponse().read(65_536))
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return answer if isinstance(answer, dict) and "uptime_ms" in answer else None
