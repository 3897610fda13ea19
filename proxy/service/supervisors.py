"""The two service managers behind one door: what is installed, what runs, and how both change."""

import getpass
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from config.sections.listen import ListenSection
from proxy.service import templates
from proxy.service.programs import ServiceError, ask, do

UNITS = ("ocpool.service", "ocpool.socket")
LABEL = "org.ocpool"


@dataclass(frozen=True, slots=True)
class Standing:
    """What the service manager says of the service. ``pid`` is 0 where nothing runs."""

    installed: bool
    enabled: bool
    state: str
    pid: int


class Supervisor(ABC):
    """Whoever starts ocpool when nobody does it by hand. Every method raises ServiceError where it cannot work."""

    kind: str
    files: list[Path]

    @abstractmethod
    def check(self) -> None:
        """Is it there at all?"""

    @abstractmethod
    def install(self, command: Sequence[str], listen: ListenSection) -> None:
        """Write the files and start the service, or start it anew."""

    @abstractmethod
    def uninstall(self) -> None:
        """Stop the service and remove its files."""

    @abstractmethod
    def standing(self) -> Standing:
        """How the service is."""

    @abstractmethod
    def survival(self) -> tuple[bool, str]:
        """Does it go on when its user logs out, and what has to be done if it should?"""


class Systemd(Supervisor):
    """The user's own systemd."""

    kind = "systemd user unit"

    def __init__(self, config_home: Path) -> None:
        self.files = [config_home / "systemd/user" / name for name in UNITS]

    def check(self) -> None:
        said = ask("systemctl", "--user", "show-environment")
        if said.code:
            raise ServiceError(
                f"no systemd runs for this user here ({said.why}). Run `ocpool serve` in a terminal, or use Docker"
                " (docs/docker.md); over su or sudo, log in as the user instead."
            )

    def install(self, command: Sequence[str], listen: ListenSection) -> None:
        service, socket = self.files
        service.parent.mkdir(parents=True, exist_ok=True)
        addresses = templates.socket_unit(listen.host, listen.port)
        moved = socket.is_file() and socket.read_text(encoding="utf-8") != addresses
        service.write_text(templates.unit(command), encoding="utf-8")
        socket.write_text(addresses, encoding="utf-8")
        do("systemctl", "--user", "daemon-reload")
        if moved:  # a socket takes its new addresses only when its service is down
            ask("systemctl", "--user", "stop", *UNITS)
        do("systemctl", "--user", "enable", *UNITS)
        do("systemctl", "--user", "start", UNITS[1])
        do("systemctl", "--user", "restart", UNITS[0])

    def uninstall(self) -> None:
        do("systemctl", "--user", "disable", "--now", *UNITS)
        for file in self.files:
            file.unlink(missing_ok=True)
        do("systemctl", "--user", "daemon-reload")

    def standing(self) -> Standing:
        said = do("systemctl", "--user", "show", UNITS[0], "--property=ActiveState,SubState,MainPID,UnitFileState")
        facts = dict(line.split("=", 1) for line in said.out.splitlines() if "=" in line)
        pid = facts.get("MainPID", "0")
        return Standing(
            installed=self.files[0].is_file(),
            enabled=facts.get("UnitFileState") == "enabled",
            state=f"{facts.get('ActiveState', 'unknown')} ({facts.get('SubState', '?')})",
            pid=int(pid) if pid.isdecimal() else 0,
        )

    def survival(self) -> tuple[bool, str]:
        user = getpass.getuser()
        said = ask("loginctl", "show-user", user, "--property=Linger")
        if "Linger=yes" in said.out:
            return True, "It starts at boot and goes on after logout (lingering is on)."
        return False, (
            "It starts when you log in and ends when you log out, because lingering is off."
            f" To have it from boot on: `loginctl enable-linger {user}`."
        )


class Launchd(Supervisor):
    """macOS's launchd, for the user who is logged in."""

    kind = "launchd agent"

    def __init__(self, home: Path) -> None:
        self.files = [home / "Library/LaunchAgents" / f"{LABEL}.plist"]
        self.logs = home / "Library/Logs/ocpool"
        self._domain = f"gui/{os.getuid()}"

    def check(self) -> None:
        said = ask("launchctl", "print", self._domain)
        if said.code:
            raise ServiceError(
                f"launchd has no session for this user ({said.why}). Log in at the screen, or run `ocpool serve`."
            )

    def install(self, command: Sequence[str], listen: ListenSection) -> None:  # noqa: ARG002 - it reads its settings
        self.files[0].parent.mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.files[0].write_bytes(templates.agent(command, self.logs))
        ask("launchctl", "bootout", f"{self._domain}/{LABEL}")
        do("launchctl", "bootstrap", self._domain, str(self.files[0]))

    def uninstall(self) -> None:
        ask("launchctl", "bootout", f"{self._domain}/{LABEL}")
        self.files[0].unlink(missing_ok=True)

    def standing(self) -> Standing:
        said = ask("launchctl", "print", f"{self._domain}/{LABEL}")
        facts = dict(line.strip().split(" = ", 1) for line in said.out.splitlines() if " = " in line)
        pid = facts.get("pid", "0")
        return Standing(
            installed=self.files[0].is_file(),
            enabled=said.code == 0,
            state=facts.get("state", "not loaded"),
            pid=int(pid) if pid.isdecimal() else 0,
        )

    def survival(self) -> tuple[bool, str]:
        return False, "It starts when you log in and ends when you log out, as every launchd agent does."


def supervisor(home: Path, config_home: Path) -> Supervisor:
    """The one of this system.

    Raises:
        ServiceError: there is none that we know, or it does not run.
    """
    found: Supervisor
    if shutil.which("systemctl"):
        found = Systemd(config_home)
    elif shutil.which("launchctl"):
        found = Launchd(home)
    else:
        raise ServiceError("there is neither systemd nor launchd here. Run `ocpool serve`, or use Docker.")
    found.check()
    return found
