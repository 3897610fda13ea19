"""The commands' side of the daemon's own addresses: find it, ask it, read the JSON. Never through a proxy."""

import http.client
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import click
import orjson

if TYPE_CHECKING:
    from config.settings import Settings

TIMEOUT_SECONDS = 10.0
LONGEST_ANSWER = 64 * 1024 * 1024


class NoDaemon(click.ClickException):
    """There is nobody to ask."""


class Refused(NoDaemon):
    """The daemon answered, but with no."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Daemon:
    """A daemon's address, and the token it wants."""

    address: str
    token: str | None = None

    def get(self, path: str, **query: str | None) -> dict[str, Any]:
        """The JSON at one of its own addresses.

        Raises:
            NoDaemon: nothing answers there, or what answers is not ocpool.
            Refused: it says no.
        """
        return self._ask("GET", path, query)

    def post(self, path: str, **query: str | None) -> dict[str, Any]:
        """Have something done; raises as ``get`` does."""
        return self._ask("POST", path, query)

    def _ask(self, method: str, path: str, query: dict[str, str | None]) -> dict[str, Any]:
        given = {name: value for name, value in query.items() if value is not None}
        target = urlsplit(self.address).path.rstrip("/") + path + (f"?{urlencode(given)}" if given else "")
        headers = {"Accept": "application/json", "Connection": "close"}
        if self.token is not None:
            headers["x-ocpool-token"] = self.token
        connection = _connect(self.address)
        try:
            connection.request(method, target, headers=headers)
            answer = connection.getresponse()
            body = answer.read(LONGEST_ANSWER)
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            raise NoDaemon(f"no daemon answers at {self.address} ({why}).") from None
        finally:
            connection.close()
        return _read(answer.status, body, self.address)


def choose(settings: "Settings", url: str | None) -> Daemon:
    """The daemon of ``--url``, else the one that was started last with these settings' state folder.

    Raises:
        NoDaemon: none runs.
    """
    token = settings.listen.token.get_secret_value() if settings.listen.token is not None else None
    if url is not None:
        return Daemon(url, token)
    from config.paths import state_path
    from proxy.runtime import find

    folder = state_path(settings).parent
    found = find(folder)
    if not found:
        raise NoDaemon(f"no daemon runs here (none is listed in {folder / 'run'}). Start one with `ocpool serve`.")
    if len(found) > 1:
        others = ", ".join(running.address for running in found[1:])
        click.echo(f"ocpool: {len(found)} daemons run; this is {found[0].address}. Others: {others}", err=True)
    return Daemon(found[0].address, token)


def _connect(address: str) -> http.client.HTTPConnection:
    parts = urlsplit(address if "://" in address else f"http://{address}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme not in {"http", "https"} or not host:
        raise click.UsageError(f"{address!r} is no address; it looks like http://127.0.0.1:8377.")
    if parts.scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_SECONDS, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)


def _read(status: int, body: bytes, address: str) -> dict[str, Any]:
    try:
        value = orjson.loads(body)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise NoDaemon(f"what answers at {address} is not ocpool (status {status}, no JSON).")
    error = value.get("error")
    if status >= 400 and isinstance(error, dict):
        raise Refused(status, str(error.get("message", f"status {status}")))
    return value


def table_rows(value: object) -> Sequence[dict[str, Any]]:
    """The rows of a table in an answer, whatever an older or newer daemon put there."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
