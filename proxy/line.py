"""The one line of a request in the event log, made from its exchange when somebody wants to read or write it.

What others have chosen (a model's name, a gateway's field, an error's text) is masked here; the rest are words,
numbers and digests of our own.
"""

from proxy.exchange import Exchange
from proxy.insight.redact import Redactor, digest


def facts_of(exchange: Exchange, ended_ms: float, redactor: Redactor) -> dict[str, object]:
    """What is said of a request; docs/events.md describes it field by field."""
    verdict, began_ms = exchange.verdict, exchange.began_ms
    ended, error = exchange.ended, exchange.error
    facts: dict[str, object] = {
        "request": exchange.id,
        "method": redactor.word(exchange.method.decode("latin-1")),
        "provider": exchange.target.provider,
        "api": exchange.target.api,
        "status": exchange.status,
        "ended": str(ended) if ended is not None else None,
        "verdict": verdict.kind if verdict is not None else None,
        "blame": str(verdict.blame) if verdict is not None else None,
        "attempts": exchange.attempts,
        "bytes_in": exchange.bytes_in,
        "bytes_out": exchange.bytes_out,
        "total_ms": round(ended_ms - began_ms, 1),
    }
    if verdict is not None and verdict.code != verdict.kind:
        facts["code"] = redactor.word(verdict.code)
    if error is not None:
        facts["error"] = error.code
        facts["status"] = error.status
        facts["reason"] = redactor.word(error.message)
    if exchange.head_ms is not None:
        facts["ttfb_ms"] = round(exchange.head_ms - began_ms, 1)
    if exchange.start is not None:
        _route(exchange, facts, redactor)
    if exchange.replayed:
        facts["replayed"] = True
    if exchange.bypassed:
        facts["bypassed"] = True
    _answer(exchange, facts, redactor)
    return facts


def _route(exchange: Exchange, facts: dict[str, object], redactor: Redactor) -> None:
    """Whose it was, and what it went out on."""
    start, resolved, model = exchange.start, exchange.resolved, exchange.model
    assert start is not None
    facts["conversation"] = exchange.label
    facts["match"] = redactor.word(exchange.match) if exchange.match is not None else None
    facts["model"] = redactor.word(model) if model is not None else None
    facts["stream"] = exchange.stream
    facts["route"] = str(start.source)
    facts["session"] = digest(start.routed_id)
    if resolved is not None and resolved.side:
        facts["side_call"] = True


def _answer(exchange: Exchange, facts: dict[str, object], redactor: Redactor) -> None:
    """What the answer said about itself."""
    signals, tap = exchange.signals, exchange.tap
    if signals is not None:
        if signals.upstream_ms is not None:
            facts["upstream_ms"] = signals.upstream_ms
        if signals.endpoint is not None:
            facts["endpoint"] = redactor.word(signals.endpoint)
        if signals.log_id is not None:
            facts |= redactor.facts({"log_id": signals.log_id})
    if tap is not None:
        if tap.stream and tap.first_semantic_ms is not None:
            facts["first_event_ms"] = round(tap.first_semantic_ms - exchange.began_ms, 1)
        facts["events"] = tap.events
    if exchange.used is not None:
        facts["tokens"] = exchange.used.told()
