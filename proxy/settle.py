"""What happens when a request is over: the pool, the registry, the metrics and the event log are told, once.

It runs when the answer has been written: it never raises and never waits.
"""

from functools import partial

from pool.model import Latency, Outcome
from proxy import network, spending
from proxy.answers.usage import NOTHING
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
from proxy.insight.events import Noted
from proxy.line import line_of
from proxy.pace import Pace
from proxy.pour import Ended
from proxy.tap import Tap
from proxy.verdict import EMPTY, OK, End, Seen, Stage, Verdict, judge
from proxy.wayout import Sent

# How long a limit that names no window keeps probes away.
_LIMIT_PAUSE_MS = 60_000.0
# Wall and monotonic time that differ by more: the machine slept, and what was measured means nothing.
_SUSPEND_MS = 2_000.0

_COMPLETE = Ended.COMPLETE
_UPSTREAM = Latency.UPSTREAM
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
        return None if ended is _COMPLETE else judge(Seen(Stage.NO_HEAD, end=End(ended.value)))
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
    if ended is _COMPLETE and exchange.refusal is None and 200 <= status < 300:
        return OK if not exchange.stream or _semantic(tap) else EMPTY
    return judge(
        Seen(
            Stage.POURED,
            status,
            End(ended.value),
            exchange.refusal,
            error_in_stream=in_stream,
            semantic=_semantic(tap),
            stream=exchange.stream,
            rewrote=exchange.rewrote,
        )
    )


def _semantic(tap: Tap | None) -> bool:
    """Did the model say anything, as far as could be read?"""
    return tap is None or tap.begun


def observe(daemon: Daemon, exchange: Exchange, ended_ms: float, now: int) -> None:
    """Tell the pool what became of one attempt, and log what it decided. ``ended_ms`` and ``now`` are one instant."""
    start, verdict = exchange.start, exchange.verdict
    if start is None or verdict is None or exchange.attempts == 0:
        return
    for note in daemon.routes.observe(start, outcome_of(daemon, exchange, verdict, ended_ms, now), now):
        daemon.note(note, exchange)


def outcome_of(daemon: Daemon, exchange: Exchange, verdict: Verdict, ended_ms: float, now: int) -> Outcome:
    """The pool's view of an attempt, with HTTP read out of it."""
    status, signals, used = exchange.status, exchange.signals, exchange.used
    latency_ms, latency = signals.upstream_ms if signals is not None else None, _UPSTREAM
    if latency_ms is None:
        latency_ms, latency = _latency(exchange, ended_ms)
    outcome = Outcome(
        verdict.blame,
        accepted=status is not None and 200 <= status < 300 and verdict.kind in _ACCEPTED,
        judged=latency_ms is not None and exchange.stream and _is_turn(daemon, exchange, ended_ms, now),
        latency_ms=latency_ms,
        latency=latency,
        uncached_tokens=None if used is None or used.input is None else used.input - (used.cached or 0),
        request_bytes=exchange.bytes_in,
        endpoint=signals.endpoint if signals is not None else None,
    )
    if exchange.pace is not None:
        outcome = _paced(outcome, exchange, exchange.pace)
    if exchange.replayed or exchange.refusal is not None:
        outcome = _refused(outcome, exchange, verdict)
    return outcome


def _is_turn(daemon: Daemon, exchange: Exchange, ended_ms: float, now: int) -> bool:
    """Was it a conversation's own turn, and did the machine not sleep in between?"""
    if exchange.resolved is not None and exchange.resolved.side:
        return False
    slept_ms = (now - exchange.sent_at) - (ended_ms - exchange.sent_ms)
    return abs(slept_ms) <= _SUSPEND_MS * daemon.clock.scale


def _refused(outcome: Outcome, exchange: Exchange, verdict: Verdict) -> Outcome:
    """What a refusal says beside the verdict, and that this attempt took a refused one's place."""
    refusal = exchange.refusal
    if refusal is None:
        return outcome._replace(replayed=exchange.replayed)
    pause_ms = refusal.retry_after_ms
    if refusal.kind is RefusalKind.LIMIT and pause_ms is None:
        pause_ms = _LIMIT_PAUSE_MS
    return outcome._replace(
        refused=verdict.retires,
        replayed=exchange.replayed,
        unauthorized=refusal.kind is RefusalKind.AUTH,
        pause_ms=pause_ms,
    )


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


def _latency(exchange: Exchange, ended_ms: float) -> tuple[float | None, Latency]:
    """What the route's speed was measured by where the gateway does not tell, best signal first."""
    tap = exchange.tap
    if tap is not None and tap.stream and tap.first_semantic_ms is not None:
        return tap.first_semantic_ms - exchange.sent_ms, Latency.FIRST_EVENT
    if exchange.ended is Ended.CLIENT_GONE and exchange.bytes_out == 0:
        return ended_ms - exchange.sent_ms, Latency.WAITED
    return None, _UPSTREAM


def settle(daemon: Daemon, exchange: Exchange, ended_ms: float, now: int) -> None:
    """Everything that follows from a finished request. ``ended_ms`` and ``now`` are one instant on both clocks."""
    try:
        if exchange.verdict is None:
            exchange.verdict = verdict_of(exchange, daemon.settings.upstream.session_header)
        resolved = exchange.resolved
        if resolved is not None:
            status = exchange.status
            completed = exchange.ended is _COMPLETE and status is not None and status < 300
            if resolved.wants_answer:
                daemon.registry.answered(resolved, _answer(exchange, completed=completed), now)
            daemon.registry.done(resolved, now, completed)
        if exchange.verdict is not None:
            observe(daemon, exchange, ended_ms, now)
            if exchange.bypassed or (exchange.rewrote and daemon.way_out.watched):
                _way_out(daemon, exchange, now)
        if daemon.problems or exchange.error is not None:
            network.note(daemon, exchange)
        daemon.counting.request(exchange, ended_ms)
        spending.note(daemon.usage, exchange)
        daemon.events.note(Noted("request", now, partial(line_of, exchange, ended_ms)))
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
