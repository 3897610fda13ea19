"""The log, for the person who runs the daemon: what went wrong and what they can do. Requests go to the event log.

    from proxy.logs import log
    log.warning("the state file cannot be written", path=str(path), reason=error.strerror)

A call costs an append: rendering (structlog) and writing happen on a thread of their own, so a full disk or a
blocked pipe holds up nobody. structlog takes a fifth of a second to import; its thread does that after
``log.ready()``, when the daemon already accepts connections. Lines said before ``configure`` wait for it.
"""

import atexit
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pool.clock import Clock
from proxy.insight.lines import LineWriter, Sink
from proxy.insight.redact import Redactor
from proxy.insight.rotation import RotatingFile

MAX_BYTES = 10 * 1024 * 1024
KEEP = 5
READY_WAIT_SECONDS = 3.0  # a start that hangs must still be able to say why

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}

context: ContextVar[Mapping[str, object]] = ContextVar("log_context", default=MappingProxyType({}))
"""Facts that every line said in this task carries, such as the request's number."""

Line = dict[str, Any]
Render = Callable[[Line], bytes]


class Log:
    """One log. Nothing in it raises or blocks; ``dropped`` counts what could not be written."""

    def __init__(self) -> None:
        self._clock = Clock()
        self._rank = LEVELS["info"]
        self._early: deque[Line] = deque(maxlen=200)
        self._writer: LineWriter[Line] | None = None
        self._render: Render | None = None
        self._build: Callable[[], Render] | None = None
        self._ready = threading.Event()
        self._stdlib = _FromStdlib(self)

    def debug(self, event: str, /, **facts: object) -> None:
        self.say("debug", event, facts)

    def info(self, event: str, /, **facts: object) -> None:
        self.say("info", event, facts)

    def warning(self, event: str, /, **facts: object) -> None:
        self.say("warning", event, facts)

    def error(self, event: str, /, **facts: object) -> None:
        """Something that needs somebody. ``exc_info=error`` adds the traceback, masked like the rest."""
        self.say("error", event, facts)

    def say(self, level: str, event: str, facts: Mapping[str, object]) -> None:
        """A line of that level."""
        if LEVELS[level] < self._rank:
            return
        line: Line = {"at": self._clock.wall_ms(), "level": level, "event": event, **context.get(), **facts}
        if self._writer is None:
            self._early.append(line)
        else:
            self._writer.put(line)

    def configure(
        self,
        *,
        level: str = "info",
        form: str = "auto",
        path: Path | None = None,
        clock: Clock | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        """Open the log, or change its level; where it goes is decided once.

        Args:
            level: debug, info, warning or error.
            form: json, console, or auto: console when a person looks at stderr.
            path: a file, rotated and 0600; None is stderr.
            clock: for the instants.
            redactor: masks credentials and ids in every line.
        """
        self._rank = LEVELS.get(level.lower(), LEVELS["info"])
        if self._writer is not None:
            return
        self._clock = clock or self._clock
        console = form == "console" or (form == "auto" and path is None and _watched())
        masks = redactor or Redactor()
        self._build = lambda: _renderer(masks, console=console, colors=console and _watched())
        self._ready.clear()
        sink: Sink = _Stderr() if path is None else _FileElseStderr(path)
        self._writer = LineWriter(sink, self._line, dropped=self._dropped, trouble=lambda _: None, name="log")
        while self._early:
            self._writer.put(self._early.popleft())
        logging.captureWarnings(capture=True)
        logging.getLogger().addHandler(self._stdlib)
        atexit.register(self.close)

    def ready(self) -> None:
        """The daemon accepts connections: now the log may take the time to load what it needs."""
        self._ready.set()

    def close(self) -> None:
        """Write what was said and let go of the standard library's logging."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        atexit.unregister(self.close)
        logging.getLogger().removeHandler(self._stdlib)
        logging.captureWarnings(capture=False)
        self._ready.set()
        writer.close()
        self._render = None

    @property
    def dropped(self) -> int:
        """How many lines were lost."""
        return self._writer.dropped if self._writer is not None else 0

    def _line(self, line: Line) -> bytes:
        try:
            if self._render is None:
                self._ready.wait(READY_WAIT_SECONDS)
                self._render = self._build() if self._build is not None else repr_line
            return self._render(line)
        except Exception as error:  # noqa: BLE001 - a line that cannot be rendered must not end the log
            return f'{{"level":"error","event":"a log line was lost","reason":"{type(error).__name__}"}}'.encode()

    def _dropped(self, count: int) -> bytes:
        facts = {"at": self._clock.wall_ms(), "level": "warning", "event": "log lines were lost", "count": count}
        return self._line(facts)


def repr_line(line: Line) -> bytes:
    """A line without structlog."""
    return ascii(line).encode()


class _FromStdlib(logging.Handler):
    """Whatever aiohttp, asyncio or a warning says, in our own form."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        facts: dict[str, object] = {"logger": record.name}
        if record.exc_info and record.exc_info[1] is not None:
            facts["exc_info"] = record.exc_info[1]
        try:
            message = record.getMessage()
        except (TypeError, ValueError):
            message = str(record.msg)
        self._log.say("error" if record.levelno >= logging.ERROR else "warning", message, facts)


class _Stderr:
    """Standard error by its descriptor: a buffered stream would keep a lock when its pipe is blocked."""

    def __init__(self) -> None:
        try:
            self._fd = sys.stderr.fileno()
        except (AttributeError, OSError, ValueError):
            self._fd = 2

    def write(self, lines: bytes) -> None:
        view = memoryview(lines)
        while view:
            view = view[os.write(self._fd, view) :]

    def close(self) -> None:
        return


class _FileElseStderr:
    """``log.path``, and standard error while that cannot be written."""

    def __init__(self, path: Path) -> None:
        self._file = RotatingFile(path, MAX_BYTES, KEEP)
        self._stderr = _Stderr()
        self._failing = False

    def write(self, lines: bytes) -> None:
        try:
            self._file.write(lines)
        except OSError as error:
            if not self._failing:
                self._failing = True
                said = f"ocpool: log.path {self._file.path} cannot be written ({error.strerror}); logging here\n"
                self._stderr.write(said.encode("utf-8", "replace"))
            self._stderr.write(lines)
        else:
            self._failing = False

    def close(self) -> None:
        self._file.close()


def _watched() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False


def _renderer(redactor: Redactor, *, console: bool, colors: bool) -> Render:
    from proxy.insight.rendering import renderer  # noqa: PLC0415 - imports structlog, on the log's own thread

    return renderer(redactor, console=console, colors=colors)


log = Log()
