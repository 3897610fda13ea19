"""Who really listens: every address that a daemon of these settings could have, asked one by one."""

from dataclasses import dataclass

import click

from config.paths import state_path
from config.settings import Settings
from proxy.cli.daemon import Daemon
from proxy.runtime import find

_UNSPECIFIED = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What answers at an address; ``pid`` is 0 and ``problem`` says why where it is no ocpool."""

    address: str
    pid: int = 0
    version: str = ""
    problem: str = ""

    @property
    def silent(self) -> bool:
        """Does nobody at all listen there?"""
        return "no daemon answers" in self.problem


def configured_address(settings: Settings) -> str:
    """The base URL that the settings ask for, as this machine reaches it."""
    host = _UNSPECIFIED.get(settings.listen.host, settings.listen.host)
    return f"http://[{host}]:{settings.listen.port}" if ":" in host else f"http://{host}:{settings.listen.port}"


def answer_at(address: str) -> Answer:
    """Ask ``/-/health``, which needs no token."""
    try:
        said = Daemon(address).get("/-/health")
    except click.ClickException as error:
        return Answer(address, problem=error.format_message())
    pid, version = said.get("pid"), said.get("version")
    if not isinstance(pid, int):
        return Answer(address, problem=f"what answers at {address} is not ocpool.")
    return Answer(address, pid, str(version))


def listeners(settings: Settings) -> list[Answer]:
    """The daemons that are listed in the state folder, and whoever has the configured address."""
    listed = [running.address for running in find(state_path(settings).parent)]
    answers = [answer_at(address) for address in dict.fromkeys([*listed, configured_address(settings)])]
    seen: dict[int | str, Answer] = {}
    for answer in answers:  # one daemon may have two addresses
        if not (answer.silent and answer.address not in listed):
            seen.setdefault(answer.pid or answer.address, answer)
    return list(seen.values())
