"""What happens when a request is over: the pool, the registry, the metrics and the event log are told, once.

It runs when the answer has been written: it never raises and never waits.
"""

from functools import partial

from pool.model import Latency, Outcome
from proxy import network, spending
from proxy.answers.usage import NOTHING, Usage
from proxy.conversation.answer import Answer
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
from proxy.line import facts_of
from proxy.pace import Pace
from proxy.pour import Ended
from proxy.verdict import End, Seen, Stage, Verdict, judge, whole
from proxy.wayout import Sent

# How long a limit that names no window keeps probes away.
_LIMIT_PAUSE_MS = 60_000.0
# Wall and monotonic time that differ by more: the machine slept, and what was measured means nothing.
_SUSPEND_MS = 2_000.0

_ACCEPTED = frozenset({"ok", "empty", "client_gone", "truncated"})
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
    ended, status, tap = exchange.ended, exchange.status, exchange.tap
    if exchange.error is not None:
        return judge(Seen(stage_of(exchange.error))) if exchange.attempts else None
    if ended is None:
        return None
    if status is None:
        return None if ended is Ended.COMPLETE else judge(Seen(Stage.NO_HEAD, end=End(ended.value)))
    in_stream = False
    if exchange.refusal is None and tap is not None:
        if status >= 400:
            fields = exchange.head.fields if exchange.head is not None else []
            exchange.refusal = refusals.read(status, fields, tap.body, exchange.at, session_header)
        else:
            tap.close()
            exchange.used = tap.counts
            if tap.error is not None:
                exchange.refusal = refusals.in_stream_error(tap.error, session_header)
                in_stream = exchange.refusal is not None
    semantic = tap is None or tap.begun
    if ended is Ended.COMPLETE and exchange.refusal is None and 200 <= status < 300:
        return whole(semantic=semantic or not exchange.stream)
    return judge(
        Seen(
            Stage.POURED,
            status,
            End(ended.value),
            exchange.refusal,
            error_in_stream=in_stream,
            semantic=semantic,
            stream=exchange.stream,
            rewrote=exchange.rewrote,
        )
    )


def observe(daemon: Daemon, exchange: Exchange, ended_ms: float, now: int) -> None:
    """Tell the pool what became of one attempt, and log what it decided. ``ended_ms`` and ``now`` are one instant."""
    start, verdict = exchange.start, exchange.verdict
    if start is None or verdict is None or exchange.resolved is None or exchange.attempts == 0:
        return
    for note in daemon.routes.observe(start, outcome_of(daemon, exchange, verdict, ended_ms, now), now):
        daemon.note(note, exchange)


def outcome_of(daemon: Daemon, exchange: Exchange, verdict: Verdict, ended_ms: float, now: int) -> Outcome:
    """The pool's view of an attempt, with HTTP read out of it."""
    status, refusal, signals, resolved = exchange.status, exchange.refusal, exchange.signals, exchange.resolved
    elapsed = ended_ms - exchange.sent_ms
    latency_ms, latency = _latency(exchange, elapsed)
    judged = exchange.stream and latency_ms is not None and (resolved is None or not resolved.side)
    if judged:  # but for a suspend in between
        judged = abs((now - exchange.sent_at) - elapsed) <= _SUSPEND_MS * daemon.clock.scale
    pause_ms = None
    if refusal is not None:
        pause_ms = refusal.retry_after_ms
        if refusal.kind is RefusalKind.LIMIT and pause_ms is None:
            pause_ms = _LIMIT_PAUSE_MS
    outcome = Outcome(
        verdict.blame,
        accepted=status is not None and 200 <= status < 300 and verdict.kind in _ACCEPTED,
        judged=judged,
        refused=verdict.retires,
        replayed=exchange.replayed,
        unauthorized=refusal is not None and refusal.kind is RefusalKind.AUTH,
        latency_ms=latency_ms,
        latency=latency,
        uncached_tokens=_uncached(exchange.used),
        request_bytes=exchange.bytes_in,
        endpoint=signals.endpoint if signals is not None else None,
        pause_ms=pause_ms,
    )
    return outcome if exchange.pace is None else _paced(outcome, exchange, exchange.pace)


def _paced(outcome: Outcome, exchange: Exchange, pace: Pace) -> Outcome:
    """How fast the answer was written, where routes are chosen by that; a broken one tells nothing."""
    used = exchange.used or NOTHING
    tps, estimated = pace.tps(used.output) if exchange.ended is Ended.COMPLETE else (None, False)
    return outcome._replace(
        first_event_ms=None if pace.first_ms is None else pace.first_ms - exchange.sent_ms,
        generation_ms=pace.generation_ms,
        tps=tps,
        estimated=estimated,
        completion_tokens=used.output,
        input_tokens=used.input,
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


def _uncached(used: Usage | None) -> int | None:
    return None if used is None or used.input is None else used.input - (used.cached or 0)


def settle(daemon: Daemon, exchange: Exchange, ended_ms: float, now: int) -> None:
    """Everything that follows from a finished request. ``ended_ms`` and ``now`` are one instant on both clocks."""
    try:
        if exchange.verdict is None:
            exchange.verdict = verdict_of(exchange, daemon.settings.upstream.session_header)
        resolved = exchange.resolved
        if resolved is not None:
            completed = exchange.ended is Ended.COMPLETE and exchange.status is not None and exchange.status < 300
            if resolved.wants_answer:
                daemon.registry.answered(resolved, _answer(exchange, completed=completed), now)
            daemon.registry.done(resolved, now, completed)
        if exchange.verdict is not None:
            observe(daemon, exchange, ended_ms, now)
            if exchange.rewrote or exchange.bypassed:
                _way_out(daemon, exchange, now)
        network.note(daemon, exchange)
        daemon.counting.request(exchange, ended_ms)
        spending.note(daemon.usage, exchange)
        daemon.events.emit_later("request", now, partial(facts_of, exchange, ended_ms))
    except Exception as exc:  # noqa: BLE001  (the request is over; its bookkeeping must not break the next)
        daemon.trouble("settle_failed", exc)


def _answer(exchange: Exchange, *, completed: bool) -> Answer | None:
    """What the model said, as far as it came; of an answer that was broken off, it is not the whole."""
    answer = exchange.tap.answer if exchange.tap is not None else None
    if answer is None or completed or not answer.complete:
        return answer
    return answer._replace(complete=False)


def _way_out(daemon: Daemon, exchange: Exchange, now: int) -> None:
    """What the answer says about the gateway's contract for the session field."""
    own = Sent.REPLAYED if exchange.replayed else Sent.OWN
    change = daemon.way_out.settled(
        exchange.target.provider,
        own if exchange.bypassed else Sent.REWRITTEN,
        exchange.status,
        exchange.sent_at,
        now,
    )
    if change is not None:
        daemon.bypass(exchange.target.provider, change)
