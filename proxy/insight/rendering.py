"""A log line's last steps, as structlog processors: traceback, masking, then JSON or colours. Slow to import."""

import os
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime
from typing import Any

import orjson
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from proxy.insight.redact import Redactor

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), 127, *range(128, 160))}


def renderer(redactor: Redactor, *, console: bool, colors: bool) -> Callable[[dict[str, Any]], bytes]:
    """A function from a line's facts to its bytes.

    structlog's loggers write where they are called; ours are written on a thread, so its ``ReturnLogger`` hands
    the bytes back.
    """
    steps: list[Processor] = [structlog.processors.format_exc_info, _Mask(redactor, printable=console), _stamp]
    if console:
        colored = colors and not os.environ.get("NO_COLOR")
        steps += [structlog.dev.ConsoleRenderer(colors=colored, sort_keys=False, pad_event_to=0), _encode]
    else:
        steps.append(structlog.processors.JSONRenderer(serializer=orjson.dumps))
    logger = structlog.wrap_logger(
        structlog.ReturnLogger(), processors=steps, wrapper_class=structlog.BoundLogger, cache_logger_on_first_use=True
    )

    def render(line: dict[str, Any]) -> bytes:
        facts = dict(line)
        rendered: bytes = getattr(logger, facts.pop("level"))(facts.pop("event"), **facts)
        return rendered

    return render


class _Mask:
    """The redactor as a processor; on a terminal nothing a client sent may move the cursor either."""

    def __init__(self, redactor: Redactor, *, printable: bool) -> None:
        self._redactor = redactor
        self._printable = printable

    def __call__(self, _: WrappedLogger, __: str, line: EventDict) -> EventDict:
        exception = line.pop("exception", None)
        masked: MutableMapping[str, Any] = self._redactor.facts(line)
        if self._printable:
            masked = {k: v.translate(_CONTROL) if isinstance(v, str) else v for k, v in masked.items()}
        if isinstance(exception, str):
            masked["exception"] = self._redactor.text(exception)
        return masked


def _stamp(_: WrappedLogger, level: str, line: EventDict) -> EventDict:
    """``timestamp`` and ``level`` first, the event next."""
    at = datetime.fromtimestamp(line.pop("at") / 1000, UTC).isoformat(timespec="milliseconds")
    return {"timestamp": at.replace("+00:00", "Z"), "level": level, "event": line.pop("event"), **line}


def _encode(_: WrappedLogger, __: str, text: Any) -> bytes:
    return str(text).encode("utf-8", "replace")
