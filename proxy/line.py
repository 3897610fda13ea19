"""The one line of a request in the event log, made from its exchange when somebody wants to read or write it.

What others have chosen (a model's name, a gateway's field, an error's text) is masked here; the rest are words,
numbers and digests of our own.
"""

from proxy.exchange import Exchange
from proxy.insight.events import REQUEST, Event
from proxy.insight.redact import Redactor, digest


def line_of(exchange: Exchange, ended_ms: float, at: int, redactor: Redactor) -> Event:
    """What is said of a request that ended at unix ms ``at``; docs/events.md describes it field by field."""
    verdict, ended, error = exchange.verdict, exchange.ended, exchange.error
    target, began_ms = exchange.target, exchange.began_ms
    facts: Event = {
        "at": at,
        "event": REQUEST,
        "request": exchange.id,
        "method": redactor.words[exchange.method.decode("latin-1")],
        "provider": target.provider,
        "api": target.api,
        "status": exchange.status,
        "ended": str(ended) if ended is not None else None,
        "verdict": verdict.kind if verdict is not None else None,
        "blame": str(verdict.blame) if verdict is not None else None,
        "attempts": exchange.attempts,
        "bytes_in": exchange.bytes_in,
        "bytes_out": exchange.bytes_out,
        "total_ms": _tenths(ended_ms - began_ms),
    }
    if verdict is not None and verdict.code != verdict.kind:
        facts["code"] = redactor.words[verdict.code]
    if error is not None:
        facts["error"] = error.code
        facts["status"] = error.status
        facts["reason"] = redactor.words[error.message]
    if exchange.head_ms is not None:
        facts["ttfb_ms"] = _tenths(exchange.head_ms - began_ms)
    if exchange.start is not None:
        _route(exchange, facts, redactor)
    if exchange.replayed:
        facts["replayed"] = True
    if exchange.bypassed:
        facts["bypassed"] = True
    _answer(exchange, facts, redactor)
    return facts


def _route(exchange: Exchange, facts: Event, redactor: Redactor) -> None:
    """Whose it was, and what it went out on."""
    start, resolved, match, model = exchange.start, exchange.resolved, exchange.match, exchange.model
    assert start is not None
    facts |= {
        "conversation": resolved.conversation.label if resolved is not None else None,
        "match": redactor.words[match] if match is not None else None,
        "model": redactor.words[model] if model is not None else None,
        "stream": exchange.stream,
        "route": str(start.source),
        "session": digest(start.routed_id),
    }
    if resolved is not None and resolved.side:
        facts["side_call"] = True


def _answer(exchange: Exchange, facts: Event, redactor: Redactor) -> None:
    """What the answer said about itself."""
    signals, tap, used = exchange.signals, exchange.tap, exchange.used
    if signals is not None:
        if signals.upstream_ms is not None:
            facts["upstream_ms"] = signals.upstream_ms
        if signals.endpoint is not None:
            facts["endpoint"] = redactor.words[signals.endpoint]
        if signals.log_id is not None:
            facts |= redactor.facts({"log_id": signals.log_id})
    if tap is not None:
        if tap.stream and tap.first_semantic_ms is not None:
            facts["first_event_ms"] = _tenths(tap.first_semantic_ms - exchange.began_ms)
        facts["events"] = tap.events
    if used is not None:
        facts["tokens"] = used.told()


def _tenths(ms: float) -> float:
    """A duration to a tenth; ``round`` writes the number out and reads it again, which costs five times as much."""
    return int(ms * 10 + 0.5) / 10
