"""What happens when a request is over: the pool, the registry, the metrics and the event log are told, once.

It runs in the task's ``finally``: it never raises and never waits.
"""

from pool.model import Latency, Outcome
from proxy import network
from proxy.daemon import Daemon
from proxy.errors import (
    BadResponse,
    CaptivePortal,
    ConnectFailed,
    ConnectTimedOut,
    NameNotResolved,
    ProxyError,
    TlsFailed,
)
from proxy.exchange import Exchange
from proxy.gateway import refusals
from proxy.gateway.refusals import RefusalKind
from proxy.insight.redact import digest
from proxy.pour import Ended
from proxy.tap import tokens
from proxy.verdict import End, Seen, Stage, Verdict, judge
from proxy.wayout import Sent

# How long a limit that names no window keeps probes away.
_LIMIT_PAUSE_MS = 60_000.0
# Wall and monotonic time that differ by more: the machine slept, and what was measured means nothing.
_SUSPEND_MS = 2_000.0

_NOT_WRITTEN = (ConnectFailed, ConnectTimedOut, NameNotResolved)


def stage_of(error: ProxyError) -> Stage:
    """How far an attempt came that ended in this error."""
    if isinstance(error, TlsFailed):
        return Stage.TLS_FAILED
    if isinstance(error, CaptivePortal):
        return Stage.PORTAL
    if isinstance(error, _NOT_WRITTEN):
        return Stage.CONNECT_FAILED
    return Stage.BAD_HEAD if isinstance(error, BadResponse) else Stage.NO_HEAD


def verdict_of(exchange: Exchange, session_header: str) -> Verdict | None:
    """The verdict on the last attempt, from what was seen of it; None where the upstream was never asked."""
    ended = exchange.ended
    if exchange.error is not None:
        return judge(Seen(stage_of(exchange.error))) if exchange.attempts else None
    if ended is None or (exchange.status is None and ended is Ended.COMPLETE):
        return None
    tap = exchange.tap
    in_stream = False
    if exchange.status is None:
        return judge(Seen(Stage.NO_HEAD, end=End(ended.value)))
    if exchange.refusal is None and tap is not None:
        if exchange.status >= 400:
            fields = exchange.head.fields if exchange.head is not None else []
            exchange.refusal = refusals.read(exchange.status, fields, tap.body, exchange.at, session_header)
        else:
            tap.close()
            if tap.error is not None:
                exchange.refusal = refusals.in_stream_error(tap.error, session_header)
                in_stream = exchange.refusal is not None
    return judge(
        Seen(
            Stage.POURED,
            exchange.status,
            End(ended.value),
            exchange.refusal,
            error_in_stream=in_stream,
            semantic=tap is None or tap.first_semantic_ms is not None,
            stream=exchange.stream,
            rewrote=exchange.rewrote,
        )
    )


def observe(daemon: Daemon, exchange: Exchange) -> None:
    """Tell the pool what became of one attempt, and log what it decided."""
    start, verdict, resolved = exchange.start, exchange.verdict, exchange.resolved
    if start is None or verdict is None or resolved is None or exchange.attempts == 0:
        return
    now = daemon.clock.wall_ms()
    for note in daemon.routes.observe(start, outcome_of(daemon, exchange, verdict, now), now):
        daemon.note(note, exchange)


def outcome_of(daemon: Daemon, exchange: Exchange, verdict: Verdict, now: int) -> Outcome:
    """The pool's view of an attempt, with HTTP read out of it."""
    status, refusal, signals = exchange.status, exchange.refusal, exchange.signals
    elapsed = daemon.clock.mono_ms() - exchange.sent_ms
    suspended = abs((now - exchange.sent_at) - elapsed) > _SUSPEND_MS * daemon.clock.scale
    side = exchange.resolved is not None and exchange.resolved.side
    latency_ms, latency = _latency(exchange, elapsed)
    pause_ms = refusal.retry_after_ms if refusal is not None else None
    if refusal is not None and refusal.kind is RefusalKind.LIMIT and pause_ms is None:
        pause_ms = _LIMIT_PAUSE_MS
    return Outcome(
        verdict.blame,
        accepted=status is not None
        and 200 <= status < 300
        and verdict.kind in {"ok", "empty", "client_gone", "truncated"},
        judged=exchange.stream and not side and not suspended and latency_ms is not None,
        refused=verdict.retires,
        replayed=exchange.replayed,
        unauthorized=refusal is not None and refusal.kind is RefusalKind.AUTH,
        latency_ms=latency_ms,
        latency=latency,
        uncached_tokens=_uncached(exchange),
        request_bytes=exchange.bytes_in,
        endpoint=signals.endpoint if signals is not None else None,
        pause_ms=pause_ms,
    )


def _latency(exchange: Exchange, elapsed: float) -> tuple[float | None, Latency]:
    """What the route's speed was measured by, best signal first."""
    signals, tap = exchange.signals, exchange.tap
    if signals is not None and signals.upstream_ms is not None:
        return signals.upstream_ms, Latency.UPSTREAM
    if tap is not None and tap.stream and tap.first_semantic_ms is not None:
        return tap.first_semantic_ms - exchange.sent_ms, Latency.FIRST_EVENT
    if exchange.ended is Ended.CLIENT_GONE and exchange.bytes_out == 0:
        return elapsed, Latency.WAITED
    return None, Latency.UPSTREAM


def _uncached(exchange: Exchange) -> int | None:
    if exchange.tap is None:
        return None
    used = tokens(exchange.tap.usage)
    return used["input"] - used.get("cached", 0) if "input" in used else None


def settle(daemon: Daemon, exchange: Exchange) -> None:
    """Everything that follows from a finished request."""
    try:
        ended_ms = daemon.clock.mono_ms()
        if exchange.resolved is not None:
            completed = exchange.ended is Ended.COMPLETE and exchange.status is not None and exchange.status < 300
            daemon.registry.done(exchange.resolved, daemon.clock.wall_ms(), completed)
        if exchange.verdict is not None:
            observe(daemon, exchange)
            _way_out(daemon, exchange)
        network.note(daemon, exchange)
        daemon.counting.request(exchange, ended_ms)
        _log(daemon, exchange, ended_ms)
    except Exception as exc:  # noqa: BLE001  (the request is over; its bookkeeping must not break the next)
        daemon.trouble("settle_failed", exc)


def _way_out(daemon: Daemon, exchange: Exchange) -> None:
    """What the answer says about the gateway's contract for the session field."""
    if not (exchange.rewrote or exchange.bypassed):
        return
    own = Sent.REPLAYED if exchange.replayed else Sent.OWN
    change = daemon.way_out.settled(
        exchange.target.provider,
        own if exchange.bypassed else Sent.REWRITTEN,
        exchange.status,
        exchange.sent_at,
        daemon.clock.wall_ms(),
    )
    if change is not None:
        daemon.bypass(exchange.target.provider, change)


def _log(daemon: Daemon, exchange: Exchange, ended_ms: float) -> None:
    """The one line of this request."""
    verdict, start, signals, tap = exchange.verdict, exchange.start, exchange.signals, exchange.tap
    facts: dict[str, object] = {
        "request": exchange.id,
        "method": exchange.method.decode("latin-1"),
        "provider": exchange.target.provider,
        "api": exchange.target.api,
        "status": exchange.status,
        "ended": exchange.ended.value if exchange.ended is not None else None,
        "verdict": verdict.kind if verdict is not None else None,
        "blame": verdict.blame.value if verdict is not None else None,
        "attempts": exchange.attempts,
        "bytes_in": exchange.bytes_in,
        "bytes_out": exchange.bytes_out,
        "total_ms": round(ended_ms - exchange.began_ms, 1),
    }
    if verdict is not None and verdict.code != verdict.kind:
        facts["code"] = verdict.code
    if exchange.error is not None:
        facts["error"] = exchange.error.code
        facts["status"] = exchange.error.status
        facts["reason"] = exchange.error.message
    if exchange.head_ms is not None:
        facts["ttfb_ms"] = round(exchange.head_ms - exchange.began_ms, 1)
    if start is not None:
        facts |= {
            "conversation": exchange.label,
            "match": exchange.match,
            "model": exchange.model,
            "stream": exchange.stream,
            "route": start.source.value,
            "session": digest(start.routed_id),
        }
        if exchange.resolved is not None and exchange.resolved.side:
            facts["side_call"] = True
    if exchange.replayed:
        facts["replayed"] = True
    if exchange.bypassed:
        facts["bypassed"] = True
    if signals is not None:
        facts |= {
            name: value
            for name, value in (
                ("upstream_ms", signals.upstream_ms),
                ("endpoint", signals.endpoint),
                ("log_id", signals.log_id),
            )
            if value is not None
        }
    if tap is not None:
        if tap.stream and tap.first_semantic_ms is not None:
            facts["first_event_ms"] = round(tap.first_semantic_ms - exchange.began_ms, 1)
        facts["events"] = tap.events
        used = tokens(tap.usage)
        if used:
            facts["tokens"] = used
    daemon.events.emit("request", **facts)
