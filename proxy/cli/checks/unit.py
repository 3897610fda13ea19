"""The units that start the daemon: is what they start there, where do they listen, do they outlive a log-out?"""

import os
import plistlib
import re
import shutil
import sys
from pathlib import Path
from typing import Final
from xml.parsers.expat import ExpatError

from config.sections.listen import ListenSection
from proxy.cli.checks.finding import Finding, remark
from proxy.service import templates
from proxy.service.supervisors import Launchd, Systemd

SYSTEM_UNIT: Final = "etc/systemd/system/ocpool.service"
LINGERING: Final = "var/lib/systemd/linger"
_AGAIN = "ocpool service install, with the ocpool that should run."
_STARTS = re.compile(r"^ExecStart=[-@:+!]*(?:\"([^\"]+)\"|(\S+))", re.MULTILINE)
_LISTENS = re.compile(r"^ListenStream=(.*)$", re.MULTILINE)


def service(
    home: Path, config_home: Path, user: str, listen: ListenSection | None = None, root: Path = Path("/")
) -> list[Finding]:
    """The user's unit, the machine's, and the launchd agent; ``listen`` is what the settings say, if they are good."""
    unit, socket = Systemd(config_home).files
    agent = Launchd(home).files[0]
    found = [*_unit(unit), *_agent(agent), *_unit(root / SYSTEM_UNIT)]
    if unit.is_file():
        found += _addresses(socket, listen)
        if not (root / LINGERING / user).exists():
            found.append(
                Finding(f"{unit} ends when {user} logs out, since lingering is off.", f"loginctl enable-linger {user}")
            )
    if not any(file.is_file() for file in (unit, agent, root / SYSTEM_UNIT)):
        return [
            remark("No service is installed: the daemon runs as long as whoever started it.", "ocpool service install")
        ]
    return found


def _unit(unit: Path) -> list[Finding]:
    """A systemd service."""
    text = _text(unit)
    if text is None:
        return []
    starts = _STARTS.search(text)
    if starts is None:
        return [Finding(f"{unit} starts nothing.", _AGAIN)]
    return _program(unit, (starts[1] or starts[2]).replace("%%", "%"))


def _agent(agent: Path) -> list[Finding]:
    """A launchd agent."""
    try:
        program = plistlib.loads(agent.read_bytes())["ProgramArguments"][0]
    except OSError:
        return []
    except (ValueError, LookupError, TypeError, ExpatError):
        return [Finding(f"{agent} is no plist that starts something.", _AGAIN)]
    return _program(agent, str(program))


def _program(unit: Path, program: str) -> list[Finding]:
    if shutil.which(program) is not None:
        return []
    return [Finding(f"{unit} starts {program}, which is not there.", _AGAIN)]


def _addresses(socket: Path, listen: ListenSection | None) -> list[Finding]:
    """The socket unit that belongs to the user's service."""
    text = _text(socket)
    if text is None:
        return [Finding(f"{socket} is missing, without which the service does not start.", _AGAIN)]
    if listen is None:
        return []
    there = _LISTENS.findall(text)
    wanted = _LISTENS.findall(templates.socket_unit(listen.host, listen.port))
    if there == wanted:
        return []
    return [
        Finding(
            f"The service listens on {' and '.join(there) or 'nothing'}, and the settings say {' and '.join(wanted)}.",
            "ocpool service install takes the addresses of the settings over.",
        )
    ]


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def user_name() -> str:
    """Who this is."""
    if sys.platform == "win32":
        return os.environ.get("USERNAME", "")
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
