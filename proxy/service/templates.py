"""The unit files of ``systemd/``, filled in for one installation."""

import plistlib
import re
from collections.abc import Sequence
from pathlib import Path

from proxy.service.programs import ServiceError

_EXAMPLE = "/usr/local/bin/ocpool serve"


def template(name: str) -> str:
    """A file of ``systemd/``: inside the installed package, or in the checkout.

    Raises:
        ServiceError: it is in neither.
    """
    for folder in (Path(__file__).with_name("units"), Path(__file__).parents[2] / "systemd"):
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8")
    raise ServiceError(f"systemd/{name} is missing from this installation.")


def unit(command: Sequence[str]) -> str:
    """The user unit that starts ``command``.

    Raises:
        ServiceError: systemd takes no program of that name.
    """
    program, *arguments = command
    if set(program) & set("\"'\\"):
        raise ServiceError(f"systemd starts no program with quotes or backslashes in its path: {program}")
    words = [_spaced(program.replace("%", "%%")), *(quoted(word) for word in arguments)]
    return template("user/ocpool.service").replace(_EXAMPLE, " ".join(words))


def quoted(word: str) -> str:
    """An argument in ExecStart (systemd.service(5), systemd.syntax(7))."""
    word = word.replace("\\", "\\\\").replace('"', '\\"').replace("'", "\\'")
    return _spaced(word.replace("%", "%%").replace("$", "$$"))


def _spaced(word: str) -> str:
    return word if re.fullmatch(r"[^\s\"';]+", word) else f'"{word}"'


def socket_unit(host: str, port: int) -> str:
    """The socket unit for an address; the default one has IPv6's loopback beside it."""
    text = template("ocpool.socket")
    if host in {"127.0.0.1", "localhost"}:
        return text.replace("8377", str(port))
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return re.sub(r"ListenStream=.*\n(ListenStream=.*\n)?", f"ListenStream={address}\n", text, count=1)


def agent(command: Sequence[str], logs: Path) -> bytes:
    """The launchd agent that starts ``command`` and keeps its logs in ``logs``."""
    plist = plistlib.loads(template("org.ocpool.plist").encode())
    plist["ProgramArguments"] = list(command)
    plist["EnvironmentVariables"]["OCPOOL_LOG__PATH"] = str(logs / "ocpool.log")
    plist["StandardErrorPath"] = str(logs / "start.log")
    return plistlib.dumps(plist, sort_keys=False)
