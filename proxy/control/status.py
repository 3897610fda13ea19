"""What ``/-/status`` says: the daemon's parts, asked one by one. A part that is missing or fails is null.

Nothing here is a credential or a full id; the parts hand out digests, and the redactor sees to it once more.
"""

import os
from collections.abc import Callable
from typing import Any

from config.paths import state_path
from proxy import __version__
from proxy.conversation.explaining import steps_of
from proxy.insight.events import RECENT, REQUEST
from proxy.logs import log

LAST_REQUESTS = 20
MAX_ROWS = 200  # conversations and bindings, the latest used first; all of them would be a long read


def status(daemon: Any, now: int, conversation: str | None = None) -> dict[str, Any]:
    """The whole picture as JSON; with a label, only what concerns that conversation."""
    pool = _part(lambda: dict(daemon.routes.view(now))) or {}
    conversations = _part(lambda: daemon.registry.view(now))
    requests = _part(lambda: daemon.events.last(LAST_REQUESTS, REQUEST))
    bindings = pool.get("bindings")
    if conversation is not None:
        conversations = _about(conversations, "label", conversation)
        bindings = _about(bindings, "conversation", conversation)
        requests = _about(_part(lambda: daemon.events.last(RECENT, REQUEST)), "conversation", conversation)
    seen: dict[str, Any] = {
        "version": __version__,
        "pid": os.getpid(),
        "address": _part(lambda: daemon.address),
        "now": now,
        "started_at": _part(lambda: daemon.started_at),
        "uptime_ms": _part(lambda: now - daemon.started_at),
        "ready": unready(daemon) is None,
        "reason": unready(daemon),
        "mode": _part(lambda: str(daemon.settings.routing.mode)),
        "problems": _problems(daemon),
        "bypassed": _part(lambda: dict(daemon.way_out.view())),
        "upstream": _upstream(daemon),
        "pool": pool.get("pools"),
        "not_probing": _part(lambda: daemon.not_probing(now)),
        "pauses": pool.get("pauses"),
        "faults": pool.get("faults"),
        "bindings": _latest(bindings),
        "conversations": _latest(conversations),
        "conversations_known": _part(lambda: len(daemon.registry)),
        "circuits": _part(lambda: daemon.circuits.view(now)),
        "admission": _part(lambda: daemon.admission.view(now)),
        "in_flight": _part(lambda: len(daemon.in_flight)),
        "buffered_bytes": _part(lambda: daemon.buffers.used),
        "state": _state(daemon),
        "events": _events(daemon),
        "usage": _part(lambda: dict(daemon.usage.view())),
        "log": {"dropped": _part(lambda: log.dropped)},
        "last_requests": requests,
    }
    if conversation is not None:
        seen["evidence"] = _part(lambda: steps_of(daemon.registry.evidence, conversation))
    masked = _part(lambda: daemon.events.redactor.facts(seen))
    return masked if isinstance(masked, dict) else seen


def unready(daemon: Any) -> str | None:
    """Why no new request should be sent here, or None when it may."""
    if getattr(daemon, "stopping", False):
        return "stopping"
    return None if getattr(daemon, "ready", True) else "starting"


def _problems(daemon: Any) -> dict[str, str] | None:
    """What is wrong, by part; the ledger's own thread keeps what is wrong with it."""
    found: dict[str, str] | None = _part(lambda: dict(daemon.problems))
    usage = _part(lambda: "; ".join(daemon.usage.problems))
    return {**(found or {}), "usage": usage} if usage else found


def _upstream(daemon: Any) -> dict[str, Any]:
    return {
        "base_url": _part(lambda: str(daemon.settings.upstream.base_url)),
        "connections": _part(lambda: daemon.upstream.open),
        "idle": _part(lambda: daemon.upstream.idle),
    }


def _state(daemon: Any) -> dict[str, Any]:
    return {
        "path": _part(lambda: str(state_path(daemon.settings))),
        "problem": _part(lambda: daemon.keeper.problem),
    }


def _events(daemon: Any) -> dict[str, Any]:
    return {
        "path": _part(lambda: str(daemon.events.path) if daemon.events.path is not None else None),
        "dropped": _part(lambda: daemon.events.dropped),
        "failing": _part(lambda: daemon.events.failing),
    }


def _latest(rows: Any) -> Any:
    return rows[:MAX_ROWS] if isinstance(rows, list) else rows


def _about(rows: Any, name: str, value: str) -> Any:
    """The rows in which this fact has this value."""
    if not isinstance(rows, list):
        return rows
    return [row for row in rows if isinstance(row, dict) and row.get(name) == value]


def _part(read: Callable[[], Any]) -> Any:
    """What a part of the daemon says, or None: a status page must come up when something is broken."""
    try:
        return read()
    except Exception:  # noqa: BLE001 - whatever it is, the rest is worth showing
        return None
