"""What concerns the daemon's process as a whole: modules loaded ahead of time, and what no task could be told."""

import asyncio
import contextlib
import errno
import gc
import importlib
import sys
from typing import Any

from proxy.daemon import Daemon

_FILES_QUIET_S = 60.0
_NO_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_NEW_OBJECTS = 50_000  # between two looks for cycles; Python's own 700 takes a sixth of a busy daemon's time
_SWITCH_S = 0.0005  # Python's own 5 ms would be an event's delay
_LATER = (
    "config.layers",  # settings that are read again may come from several places
    "tomllib",
    "difflib",  # and be refused with the name that is nearest
    "encodings.idna",  # what a host name is encoded with, at the first connection
    "portalocker",
    "proxy.pages",
    "proxy.control.routes",
    "proxy.insight.exposition",
    "proxy.insight.rendering",
    "proxy.insight.stored",
    "proxy.insight.effectiveness",
    "proxy.insight.usage_report",
    "rich",
    "brotli",
    "backports.zstd",
    "compression.zstd",
)


def loop_trouble(daemon: Daemon, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What the event loop could not give to anybody. Too few files are said once, not with every attempt."""
    exc = context.get("exception")
    if isinstance(exc, OSError) and exc.errno in _NO_FILES:
        daemon.problem("files", "No more files can be opened: connections wait. Raise the limit (ulimit -n).")
        loop.call_later(_FILES_QUIET_S, daemon.problem, "files", None)
        return
    loop.default_exception_handler(context)


def load_the_rest() -> None:
    """Import what serving may need one day, so that an upgrade in place never mixes two versions."""
    for name in _LATER:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def hurry_the_loop() -> None:
    """Let the event loop have the interpreter's lock soon while another thread loads, reads or writes."""
    sys.setswitchinterval(_SWITCH_S)


def started() -> None:
    """All is loaded and will stay. From now on look for cycles seldom: a request leaves none behind.

    Loading left 60 objects in cycles, of 70,000; to look for them would hold up the loop for a tenth of a second.
    """
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, 20, 20)
