"""Whose account a command's probes run on: a key that was named, a setting, or what pi or OpenCode have stored.

Their files are opened for reading only, and only by commands: the daemon never does. pi may store ``$NAME`` (an
environment variable, read) or ``!command`` (never run). An OAuth token of OpenCode's goes with the organisation it
was made for, and works on the ``/inference`` paths.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from config.settings import Settings
from proxy.gateway.paths import OPENCODE, OPENCODE_GO

_LARGEST_FILE = 1_048_576


@dataclass(frozen=True, slots=True)
class Key:
    """A key, where it came from, and the organisation that belongs to it. ``shared``: it is ``probe.api_key``."""

    value: str = field(repr=False)
    origin: str
    organisation: str | None = None
    oauth: bool = False
    shared: bool = False

    @property
    def credential(self) -> tuple[tuple[bytes, bytes], ...]:
        """The fields that carry it."""
        bearer = (b"authorization", b"Bearer " + self.value.encode())
        if self.organisation is None:
            return (bearer,)
        return (bearer, (b"x-opencode-org-id", self.organisation.encode()))


def find_key(
    settings: Settings,
    variable: str | None,
    provider: str,
    environ: Mapping[str, str],
    now: int,
    *,
    origin: str = "probe.api_key",
) -> Key | None:
    """The first key there is: ``--api-key-env``, ``probe.api_key`` or OPENCODE_API_KEY, pi's file, OpenCode's file.

    ``origin`` says where the configured key came from.

    Raises:
        click.UsageError: the variable that was named is not set, or holds no key.
    """
    if variable is not None:
        value = environ.get(variable, "").strip()
        if not _usable(value):
            raise click.UsageError(f"--api-key-env {variable}: that variable is not set, or holds no key.")
        return Key(value, f"environment variable {variable}", shared=_configured(settings) == value)
    configured = _configured(settings)
    if configured is not None:
        return Key(configured, origin, shared=True)
    return next(_stored(provider, environ, now), None)


def pi_file(environ: Mapping[str, str]) -> Path:
    """Where pi keeps its keys."""
    named = environ.get("PI_CODING_AGENT_DIR", "").strip()
    return (Path(named).expanduser() if named else _home(environ) / ".pi" / "agent") / "auth.json"


def opencode_file(environ: Mapping[str, str]) -> Path:
    """Where OpenCode keeps its keys."""
    named = Path(environ.get("XDG_DATA_HOME", "").strip())
    return (named if named.is_absolute() else _home(environ) / ".local" / "share") / "opencode" / "auth.json"


def _configured(settings: Settings) -> str | None:
    secret = settings.probe.api_key
    return None if secret is None else secret.get_secret_value()


def _home(environ: Mapping[str, str]) -> Path:
    named = Path(environ.get("HOME", ""))
    return named if named.is_absolute() else Path("/")


def _stored(provider: str, environ: Mapping[str, str], now: int) -> Iterator[Key]:
    # One key serves Zen and Go, so the other provider's entry will do.
    providers = (provider, *(name for name in (OPENCODE_GO, OPENCODE) if name != provider))
    for path, read in ((pi_file(environ), _from_pi), (opencode_file(environ), _from_opencode)):
        entries = _entries(path)
        for name in providers:
            entry = entries.get(name)
            key = read(entry, f"{path} ({name})", environ, now) if isinstance(entry, dict) else None
            if key is not None:
                yield key


def _from_pi(entry: dict[str, Any], origin: str, environ: Mapping[str, str], _now: int) -> Key | None:
    value = entry.get("key")
    if entry.get("type") != "api_key" or not isinstance(value, str):
        return None
    value = value.strip()
    if value.startswith("$"):
        value = environ.get(value[1:].strip("{}"), "").strip()
    return Key(value, origin) if _usable(value) else None


def _from_opencode(entry: dict[str, Any], origin: str, _environ: Mapping[str, str], now: int) -> Key | None:
    if entry.get("type") == "api":
        value = entry.get("key")
        return Key(value, origin) if isinstance(value, str) and _usable(value) else None
    if entry.get("type") != "oauth":
        return None
    value, expires, metadata = entry.get("access"), entry.get("expires"), entry.get("metadata")
    if not isinstance(value, str) or not _usable(value):
        return None
    if isinstance(expires, int | float) and 0 < expires <= now:
        return None
    organisation = metadata.get("orgID") if isinstance(metadata, dict) else None
    return Key(value, origin, organisation if isinstance(organisation, str) and organisation else None, oauth=True)


def _usable(value: str) -> bool:
    """Can it stand in a header? A ``!command`` cannot, and is not run; ``public`` is nobody's account."""
    printable = value.isascii() and value.isprintable() and " " not in value
    return bool(value) and printable and not value.startswith(("!", "$")) and value != "public"


def _entries(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            stored = json.loads(file.read(_LARGEST_FILE))
    except (OSError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}
