"""Folders and files: can the state be kept, is it what it should be, and is it ours alone?"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pool.stores import disk
from pool.stores.lock import exclusive
from pool.stores.schema import VERSION
from pool.stores.trouble import Trouble, because
from proxy.cli.checks.finding import Finding, remark
from proxy.cli.checks.settings import OTHERS
from proxy.conversation.scopes import SECRET_BYTES

LEAST_FREE_BYTES: Final = 64 * 1024 * 1024
LOCK_WAIT_MS: Final = 1_000
EXTENSION: Final = "pi-opencode-session-pool"


def folder(path: Path) -> list[Finding]:
    """The state folder: there or makeable, writable, ours alone, with room."""
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        return [Finding(f"{there} is no folder, so {path} cannot be made.", "Move it away, or set state.path.")]
    if not os.access(there, os.W_OK | os.X_OK):
        return [
            Finding(
                f"{there} cannot be written: nothing is remembered over a restart.",
                "Give this user the folder, or set state.path to a place that is writable.",
            )
        ]
    found = []
    if there == path and os.name == "posix" and (mode := path.stat().st_mode & 0o777) & OTHERS:
        found.append(Finding(f"The state folder {path} is open to others (mode {mode:03o}).", f"chmod go= {path}"))
    free = shutil.disk_usage(there).free
    if free < LEAST_FREE_BYTES:
        found.append(Finding(f"Only {free // 1_048_576} MiB are free in {there}.", "Make room, or set state.path."))
    return found


def state(path: Path) -> list[Finding]:
    """The state file's content."""
    try:
        reading = disk.read(path)
    except Trouble as trouble:
        return [Finding(f"{trouble}.", "Give this user the file, or set state.path.")]
    if reading.corrupt is not None:
        return [Finding(f"{path} {reading.corrupt}.", "Nothing to do: the daemon puts it aside and begins a new one.")]
    if reading.raw is not None and reading.raw["version"] > VERSION:
        return [
            Finding(
                f"{path} is of version {reading.raw['version']}, which a newer ocpool wrote: it is only read.",
                "Upgrade ocpool, or set state.path to another file.",
            )
        ]
    return _put_aside(path, "corrupt state files")


def usage(path: Path) -> list[Finding]:
    """The file of token counts: the daemon goes on without it, so that nobody may notice."""
    from proxy.insight import usage_file

    try:
        if not path.exists():
            return []
        regular = path.is_file()
    except OSError as error:
        return [Finding(f"The usage file {path} cannot be reached: {because(error)}.", "Set state.usage_path.")]
    if not regular:
        return [Finding(f"{path} is no file, so token counts are kept in memory only.", "Set state.usage_path.")]
    if not os.access(path, os.R_OK | os.W_OK):
        return [Finding(f"The usage file {path} cannot be read and written by this user.", "Give this user the file.")]
    wrong = usage_file.trouble(path)
    if wrong is not None:
        return [
            Finding(
                f"The usage file {path} {wrong}.",
                "A broken one is put aside by the daemon; for any other, set state.usage_path to a file of its own.",
            )
        ]
    return _put_aside(path, "broken usage files")


def secret(path: Path) -> list[Finding]:
    """The installation's secret."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return []
    except OSError as error:
        return [Finding(f"The secret file {path} cannot be read: {because(error)}.", "Give this user the file.")]
    if size >= SECRET_BYTES:
        return []
    return [
        Finding(
            f"The secret file {path} has {size} bytes; it needs {SECRET_BYTES}.",
            "Remove it to have a new one; conversations then get other labels.",
        )
    ]


def lock(path: Path) -> list[Finding]:
    """Can the state file be locked? Where there is no sidecar yet, nobody has it, and none is made."""
    if not _is_there(path.with_name(f"{path.name}.guard")):
        return []
    try:
        with exclusive(path, LOCK_WAIT_MS):
            return []
    except Trouble as trouble:
        return [
            Finding(
                f"{trouble}.", "See who holds it (`lsof`); on a network file system, set state.path to a local one."
            )
        ]


def shared(path: Path, environ: Mapping[str, str], home: Path) -> list[Finding]:
    """Is the file, or the work, shared with pi's extension?"""
    found = []
    named = environ.get("PI_OCPOOL_STATE_PATH", "").strip()
    theirs = Path(named).expanduser() if named else home / ".pi" / "opencode-session-pool.json"
    if os.path.realpath(theirs) == os.path.realpath(path) or _is_there(path.with_name(f"{path.name}.lock")):
        found.append(
            Finding(
                f"{path} is shared with {EXTENSION}, which locks it in another way: each may undo the other's writes.",
                "Set state.path to a file of ocpool's own and run `ocpool import`.",
            )
        )
    agent = Path(environ.get("PI_CODING_AGENT_DIR", "").strip() or home / ".pi" / "agent").expanduser()
    try:
        loaded = EXTENSION in (agent / "settings.json").read_text(encoding="utf-8", errors="replace")
    except OSError:
        loaded = False
    if loaded:
        found.append(
            Finding(
                f"pi loads {EXTENSION}, which picks ids as well: where pi talks to ocpool, one is picked twice.",
                f"pi remove npm:@mscststs/{EXTENSION}, or set PI_OCPOOL=0 for pi.",
            )
        )
    return found


def _put_aside(path: Path, what: str) -> list[Finding]:
    """What the daemon found broken at this path and kept."""
    kept = len(list(path.parent.glob(f"{path.name}.corrupt-*")))
    return [remark(f"{kept} {what} are kept beside {path}.", "They may be removed.")] if kept else []


def _is_there(path: Path) -> bool:
    """Is it there, as far as this user may know? That a folder cannot be entered is another check's finding."""
    try:
        return path.exists()
    except OSError:
        return False
