"""Running ``systemctl``, ``loginctl`` and ``launchctl``, and where the program that a service starts is."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_TIMEOUT_S = 400.0  # a stop waits for running answers, listen.drain_ms of the unit


class ServiceError(Exception):
    """It cannot be done here; the message says why and what to do instead."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a program did."""

    code: int
    out: str
    err: str

    @property
    def why(self) -> str:
        """Its last words."""
        return (self.err.strip() or self.out.strip() or f"exit code {self.code}").splitlines()[-1]


def ask(*command: str) -> Said:
    """Run a program and read what it says; one that is not there says so with code 127."""
    program = shutil.which(command[0])
    if program is None:
        return Said(127, "", f"there is no {command[0]} here")
    try:
        done = subprocess.run(  # noqa: S603 - the arguments are ours
            [program, *command[1:]], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Said(126, "", str(error))
    return Said(done.returncode, done.stdout, done.stderr)


def do(*command: str) -> Said:
    """Run a program that must succeed.

    Raises:
        ServiceError: it did not.
    """
    said = ask(*command)
    if said.code:
        raise ServiceError(f"`{' '.join(command)}` failed: {said.why}")
    return said


def installed_program() -> Path:
    """The ``ocpool`` of this installation, absolute. Its path is the same after an upgrade.

    Raises:
        ServiceError: there is none, or it is in a place that will be cleaned up.
    """
    program = Path(sys.executable).absolute().with_name("ocpool")
    if not os.access(program, os.X_OK):
        raise ServiceError(
            f"{program} is not there: install ocpool first (`uv tool install`, `pipx install`, or pip in a venv)."
        )
    if {"archive-v0", ".cache", "Caches"} & set(program.parts):  # uvx and `pipx run`
        raise ServiceError(
            f"{program} is in a temporary environment: install ocpool first (`uv tool install` or `pipx install`)."
        )
    return program


def unseen_variables(environ: Iterable[str]) -> list[str]:
    """The variables that mean something to ocpool here and that a service does not get from this shell."""
    named = {"OPENCODE_API_KEY", "XDG_CONFIG_HOME", "XDG_STATE_HOME"}
    return sorted(name for name in environ if name.startswith(("OCPOOL", "PI_OCPOOL")) or name in named)
