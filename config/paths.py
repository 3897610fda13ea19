"""Where files are, without touching any of them.

The state folder is ``$STATE_DIRECTORY`` (systemd), else XDG's. A relative XDG variable is ignored, as its
specification says; a user without a home has ``/``, as in POSIX, where nothing can be written, and the store says so.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from config.settings import Settings

_NAME = "ocpool"
_XDG = {"config": ".config", "state": ".local/state"}


def _home(environ: Mapping[str, str]) -> Path:
    named = Path(environ.get("HOME", ""))
    if named.is_absolute():
        return named
    try:
        import pwd  # noqa: PLC0415 - there is none on Windows

        listed = Path(pwd.getpwuid(os.getuid()).pw_dir)
    except (ImportError, KeyError):
        return Path("/")
    return listed if listed.is_absolute() else Path("/")


def _user_folder(kind: Literal["config", "state"], environ: Mapping[str, str]) -> Path:
    named = Path(environ.get(f"XDG_{kind.upper()}_HOME", "").strip())
    if named.is_absolute():
        return named / _NAME
    if sys.platform in {"darwin", "win32"}:  # not elsewhere: platformdirs reads the process's own HOME and XDG alone
        import platformdirs  # noqa: PLC0415 - 30 ms

        folder = platformdirs.user_config_path if kind == "config" else platformdirs.user_state_path
        return folder(_NAME, appauthor=False)
    return _home(environ) / _XDG[kind] / _NAME


def config_file(environ: Mapping[str, str] = os.environ) -> Path:
    """The TOML file that is read when none is named; it need not exist."""
    return _user_folder("config", environ) / "config.toml"


def state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of the state file, unless ``state.path`` says otherwise; it need not exist or be writable."""
    for part in environ.get("STATE_DIRECTORY", "").split(":"):  # systemd lists several with colons
        if Path(part).is_absolute():
            return Path(part)
    return _user_folder("state", environ)


def state_path(settings: Settings, environ: Mapping[str, str] = os.environ) -> Path:
    """The state file; absolute."""
    return _absolute(settings.state.path or state_folder(environ) / "state.json")


def events_path(settings: Settings, environ: Mapping[str, str] = os.environ) -> Path:
    """The event log; absolute."""
    return _absolute(settings.state.events_path or state_path(settings, environ).with_name("events.jsonl"))


def key_path(settings: Settings, environ: Mapping[str, str] = os.environ) -> Path:
    """The file of the installation's secret, ``<state path>.key``."""
    path = state_path(settings, environ)
    return path.with_name(f"{path.name}.key")


def archive_path(settings: Settings, environ: Mapping[str, str] = os.environ) -> Path:
    """The archive of conversations, ``<state path>.conversations``."""
    path = state_path(settings, environ)
    return path.with_name(f"{path.name}.conversations")


def _absolute(path: Path) -> Path:
    """Against the current folder; if that was deleted, against ``/``."""
    try:
        return path.absolute()
    except OSError:
        return Path("/") / path
