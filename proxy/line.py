"""The one line of a request in the event log, made from its exchange when somebody wants to read or write it."""

from proxy.exchange import Exchange
from proxy.insight.redact import digest


def facts_of(exchange: Exchange, ended_ms: float) -> dict[str, object]:
    """What is said of a request; docs/events.md describes it field by field."""
    verdict, start, error = exchange.verdict, exchange.start, exchange.error
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
    if error is not None:
        facts["error"] = error.code
        facts["status"] = error.status
        facts["reason"] = error.message
    if exchange.head_ms is not None:
        facts["ttfb_ms"] = round(exchange.head_ms - exchange.began_ms, 1)
    if start is not None:
        facts["conversation"] = exchange.label
        facts["match"] = exchange.match
        facts["model"] = exchange.model
        facts["stream"] = exchange.stream
        facts["route"] = start.source.value
        facts["session"] = digest(start.routed_id)
        if exchange.resolved is not None and exchange.resolved.side:
            facts["side_call"] = True
    if exchange.replayed:
        facts["replayed"] = True
    if exchange.bypassed:
        facts["bypassed"] = True
    return facts | _answer(exchange)


def _answer(exchange: Exchange) -> dict[str, object]:
    """What the answer said about itself."""
    facts: dict[str, object] = {}
    signals, tap = exchange.signals, exchange.tap
    if signals is not None:
        for name in ("upstream_ms", "endpoint", "log_id"):
            value = getattr(signals, name)
            if value is not None:
                facts[name] = value
    if tap is not None:
        if tap.stream and tap.first_semantic_ms is not None:
            facts["first_event_ms"] = round(tap.first_semantic_ms - exchange.began_ms, 1)
        facts["events"] = tap.events
    if exchange.tokens:
        facts["tokens"] = exchange.tokens
    return facts
