"""What a finished request adds to the metrics.

The series are looked up once for each kind of request and outcome; after that a request pays additions only.
"""

from typing import Final, TypeVar

from pool.model import Source
from proxy.answers.usage import KINDS
from proxy.exchange import Exchange
from proxy.insight.metrics import Metrics, Spread
from proxy.pour import Ended

_KEPT: Final = 1024  # of each kind of meter; a client chooses the model's name

Key = TypeVar("Key")
Value = TypeVar("Value")


class Traffic:
    """The series of one provider, API and outcome."""

    __slots__ = ("received", "requests", "sent", "took")

    def __init__(self, metrics: Metrics, key: tuple[str, str, int, str, str]) -> None:
        provider, api, status, kind, blame = key
        self.requests = metrics.tally("requests", provider=provider, api=api, status=status, kind=kind, blame=blame)
        self.sent = metrics.tally("request_bytes", provider=provider)
        self.received = metrics.tally("response_bytes", provider=provider)
        self.took = metrics.spread("request_seconds", provider=provider)


class Routed:
    """The series of one provider, model, source of ids, and rule by which a conversation was recognised."""

    __slots__ = ("first_byte", "first_event", "gateway", "matches", "starts", "tokens")

    def __init__(self, metrics: Metrics, provider: str, model: str, source: str, match: str) -> None:
        self.starts = metrics.tally("route_starts", provider=provider, model=model, source=source)
        self.matches = metrics.tally("route_matches", match=match)
        self.first_byte = metrics.spread("first_byte_seconds", provider=provider, model=model, source=source)
        self.first_event = metrics.spread("first_event_seconds", provider=provider, model=model, source=source)
        self.gateway = metrics.spread("gateway_upstream_seconds", provider=provider, model=model, source=source)
        self.tokens = [metrics.tally("tokens", provider=provider, model=model, type=kind) for kind in KINDS]


class Counting:
    """Counts requests into one ``Metrics``."""

    def __init__(self, metrics: Metrics, origin: str) -> None:
        self._metrics = metrics
        self._traffic: dict[tuple[str, str, int, str, str], Traffic] = {}
        self._routed: dict[tuple[str, str, Source, str], Routed] = {}
        self._overhead: Spread = metrics.spread("overhead_seconds")
        self._opened = metrics.tally("upstream_connections_opened", origin=origin)
        self._connect = metrics.spread("upstream_connect_seconds", origin=origin)
        self.reused = metrics.tally("upstream_connections_reused", origin=origin)

    def connected(self, took_ms: float) -> None:
        """Count a new connection to the upstream."""
        self._opened.value += 1
        self._connect.add(took_ms)

    def request(self, exchange: Exchange, ended_ms: float) -> None:
        """Count one request that is over."""
        verdict, error, target = exchange.verdict, exchange.error, exchange.target
        status = exchange.status or (error.status if error is not None else 0)
        kind, blame = (verdict.kind, verdict.blame) if verdict is not None else ("none", "none")
        key = (target.provider, target.api, status, kind, blame)
        traffic = self._traffic.get(key)
        if traffic is None:
            traffic = _put(self._traffic, key, Traffic(self._metrics, (*key[:4], str(blame))))
        traffic.requests.value += 1
        traffic.sent.value += exchange.bytes_in
        traffic.received.value += exchange.bytes_out
        traffic.took.add(ended_ms - exchange.began_ms)
        tap = exchange.tap
        if tap is not None and tap.unread is not None and exchange.ended is Ended.COMPLETE:
            self._metrics.count("answers_unread", provider=target.provider, reason=tap.unread)
        if exchange.start is not None:
            self._route(exchange, exchange.start.source)

    def _route(self, exchange: Exchange, source: Source) -> None:
        key = (exchange.target.provider, exchange.model or "", source, exchange.match or "")
        routed = self._routed.get(key)
        if routed is None:
            routed = _put(self._routed, key, Routed(self._metrics, key[0], key[1], source.value, key[3]))
        routed.starts.value += 1
        routed.matches.value += 1
        began = exchange.began_ms
        if exchange.sent_ms:
            self._overhead.add(exchange.sent_ms - began)
        if exchange.head_ms is not None:
            routed.first_byte.add(exchange.head_ms - began)
        signals = exchange.signals
        if signals is not None and signals.upstream_ms is not None:
            routed.gateway.add(signals.upstream_ms)
        if exchange.replayed:
            result = "ok" if exchange.verdict is not None and exchange.verdict.kind == "ok" else "refused"
            self._metrics.count("replays", provider=key[0], model=key[1], result=result)
        tap = exchange.tap
        if tap is not None and tap.stream and tap.first_semantic_ms is not None:
            routed.first_event.add(tap.first_semantic_ms - began)
        if exchange.used is not None:
            for tally, count in zip(routed.tokens, exchange.used, strict=True):
                if count:
                    tally.value += count


def _put(table: dict[Key, Value], key: Key, value: Value) -> Value:
    if len(table) >= _KEPT:
        table.clear()
    table[key] = value
    return value
