"""The settings: are they accepted, and is a file that may hold a key readable by others?"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from config.settings import Settings
from proxy.cli.checks.finding import Finding, remark

OTHERS = 0o077


def refused(problems: Sequence[str]) -> list[Finding]:
    """Settings that ``serve`` would not start with."""
    return [
        Finding(problem, "Correct it; `ocpool config show` tells where each value came from.") for problem in problems
    ]


def warned(warnings: Sequence[str]) -> list[Finding]:
    """What the loader has to say about settings that it took."""
    return [remark(warning) for warning in warnings]


def private(path: Path | None, what: str) -> list[Finding]:
    """A file with secrets that others on this machine may read."""
    if path is None or os.name != "posix":
        return []
    try:
        mode = path.stat().st_mode & 0o777
    except OSError:
        return []
    if not mode & OTHERS:
        return []
    return [Finding(f"{what} {path} can be read or written by others (mode {mode:03o}).", f"chmod go= {path}")]


def loop(settings: Settings, platform: str = sys.platform) -> list[Finding]:
    """The event loop that the settings ask for."""
    if platform == "win32":
        return [remark("On Windows ocpool runs on the asyncio loop only; listen.loop is not heeded.")]
    if settings.listen.loop != "uvloop":
        return []
    from importlib.util import find_spec

    if find_spec("uvloop") is not None:
        return []
    return [Finding("listen.loop is uvloop, which is not installed.", "Install it, or set listen.loop to asyncio.")]
