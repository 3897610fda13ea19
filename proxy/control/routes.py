"""The daemon's own addresses, everything under ``/-/``.

Who may ask is decided before (``proxy/guard.py``): host, origin and token. Nothing here touches the upstream.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import orjson
from aiohttp import web

from proxy import __version__
from proxy.control.readings import readings
from proxy.control.status import status, unready
from proxy.errors import error_body
from proxy.insight.events import RECENT

Handler = Callable[[web.BaseRequest, Any], Awaitable[web.Response]]

# Never stored, never sniffed, never framed: these pages say what runs here.
_FIELDS = {
    "Server": "ocpool",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class Page(NamedTuple):
    """One address: its method (a GET answers HEAD too), what serves it, and what it is for."""

    method: str
    handler: Handler
    about: str


async def control(request: web.BaseRequest, daemon: Any) -> web.Response:
    """Answer one of the daemon's own addresses."""
    path = own_path(request.path)
    page = PAGES.get(path)
    if page is None:
        return _error(404, "not_found", f"ocpool has no {path[:200]}; /-/ lists what it has.")
    allowed = ("GET", "HEAD") if page.method == "GET" else (page.method,)
    if request.method not in allowed:
        answer = _error(405, "method_not_allowed", f"{path} takes {page.method}.")
        answer.headers["Allow"] = ", ".join(allowed)
        return answer
    return await page.handler(request, daemon)


def own_path(path: str) -> str:
    """The address itself, without the ``/t/<token>`` and ``/s/<name>`` that may stand before it."""
    start = path.find("/-/")
    return path[start:] if start >= 0 else "/-/"


async def _index(_: web.BaseRequest, daemon: Any) -> web.Response:
    """A list of what is here, as long as there is no dashboard."""
    pages = [{"path": path, "method": page.method, "about": page.about} for path, page in PAGES.items()]
    return _json({"name": "ocpool", "version": __version__, "ready": unready(daemon) is None, "pages": pages})


async def _health(_: web.BaseRequest, daemon: Any) -> web.Response:
    """The event loop runs: it answered."""
    started_at = getattr(daemon, "started_at", None)
    uptime_ms = daemon.clock.wall_ms() - started_at if started_at is not None else None
    return _json({"status": "ok", "version": __version__, "pid": os.getpid(), "uptime_ms": uptime_ms})


async def _ready(_: web.BaseRequest, daemon: Any) -> web.Response:
    reason = unready(daemon)
    return _json({"ready": reason is None, "reason": reason}, 200 if reason is None else 503)


async def _status(request: web.BaseRequest, daemon: Any) -> web.Response:
    return _json(status(daemon, daemon.clock.wall_ms(), request.query.get("conversation")))


async def _metrics(_: web.BaseRequest, daemon: Any) -> web.Response:
    """Rendered on a thread: a scrape of many models takes longer than a stream should wait."""
    taken = daemon.metrics.snapshot()
    read = readings(status(daemon, daemon.clock.wall_ms()))
    text = await asyncio.to_thread(_exposed, taken, read)
    return web.Response(body=text, headers={**_FIELDS, "Content-Type": "text/plain; version=0.0.4; charset=utf-8"})


async def _stats(request: web.BaseRequest, daemon: Any) -> web.Response:
    """Read from the event log on a thread: it may be a hundred megabytes. Without a log, from what is in memory."""
    asked, path = request.query.get("since"), daemon.events.path
    if asked is not None and not (asked.isascii() and asked.isdecimal() and len(asked) <= 15):
        return _error(400, "bad_since", "since is an instant in unix milliseconds.")
    since, slow_ms = None if asked is None else int(asked), daemon.settings.quarantine.degrade_ms
    try:
        found = await asyncio.to_thread(_effectiveness, path, since, slow_ms, daemon.events.last(RECENT)[::-1])
    except OSError as error:
        return _error(500, "event_log_unreadable", f"The event log cannot be read: {error.strerror}.")
    return _json(found | {"usage": await asyncio.to_thread(_usage, daemon.usage.path, since)})


def _usage(path: Any, since: int | None) -> dict[str, Any] | None:
    """Tokens and cost by provider and model; None where the file has nothing to tell."""
    import sqlite3  # noqa: PLC0415 - seldom asked for

    from proxy.insight.usage_report import report  # noqa: PLC0415

    if path is None:
        return None
    try:
        return report(path, ("provider", "model"), since)
    except (OSError, sqlite3.Error):
        return None


def _effectiveness(path: Any, since: int | None, slow_ms: float, recent: list[Any]) -> dict[str, Any]:
    from proxy.insight.effectiveness import Effectiveness  # noqa: PLC0415 - seldom asked for
    from proxy.insight.stored import effectiveness  # noqa: PLC0415

    if path is None:
        return Effectiveness(since, slow_ms).feed(recent).facts() | {"broken": 0}
    return effectiveness(path, since, slow_ms)


def _exposed(taken: Any, read: Any) -> bytes:
    from proxy.insight.exposition import expose  # noqa: PLC0415 - prometheus-client is slow to import

    return expose(taken, read)


async def _repin(request: web.BaseRequest, daemon: Any) -> web.Response:
    """Drop one conversation's route, or all."""
    label = request.query.get("conversation")
    now = daemon.clock.wall_ms()
    notes = daemon.routes.repin(label, now)
    if label is not None and not notes and daemon.registry.by_label(label) is None:
        return _error(404, "conversation_not_found", "No conversation has this label; /-/status lists them.")
    for note in notes:
        daemon.note(note)
    return _json({"conversation": label, "repinned": len(notes)})


async def _refresh(_: web.BaseRequest, daemon: Any) -> web.Response:
    """Look after the pool now instead of at the next interval; caps, pauses and spacing still hold."""
    if daemon.refresh is None:
        return _error(503, "not_running", "The background upkeep does not run (yet).")
    daemon.refresh()
    return _json({"refreshing": True}, 202)


PAGES: dict[str, Page] = {
    "/-/": Page("GET", _index, "this list"),
    "/-/health": Page("GET", _health, "200 while the process lives"),
    "/-/ready": Page("GET", _ready, "200 when new requests are welcome, else 503 and why not"),
    "/-/status": Page("GET", _status, "everything the daemon knows; ?conversation=LABEL for one conversation"),
    "/-/stats": Page("GET", _stats, "did routing help, and what was used; ?since=UNIX_MS for a window"),
    "/-/metrics": Page("GET", _metrics, "Prometheus text"),
    "/-/repin": Page("POST", _repin, "drop the route of ?conversation=LABEL, or of all, and pick again"),
    "/-/refresh": Page("POST", _refresh, "refill the pool now"),
}


def _json(value: object, code: int = 200) -> web.Response:
    body = orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS)
    return web.Response(body=body, status=code, headers={**_FIELDS, "Content-Type": "application/json"})


def _error(code: int, name: str, message: str) -> web.Response:
    body = error_body(message, name, "invalid_request_error")
    return web.Response(body=body, status=code, headers={**_FIELDS, "Content-Type": "application/json"})
