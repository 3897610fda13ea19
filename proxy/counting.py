"""What a finished request adds to the metrics.

Labels are looked up once for each provider, model and source; after that a request pays additions only.
"""

from proxy.exchange import Exchange
from proxy.insight.metrics import Metrics, Series
from proxy.pour import Ended
from proxy.tap import KINDS, tokens

_KEPT = 1024  # meters; a client chooses the model's name


class Meter:
    """The series of one provider, model and source of ids."""

    __slots__ = ("first_byte", "first_event", "gateway", "starts", "tokens")

    def __init__(self, metrics: Metrics, provider: str, model: str, source: str) -> None:
        self.starts = metrics.series("route_starts", provider=provider, model=model, source=source)
        self.first_byte = metrics.series("first_byte_seconds", provider=provider, model=model, source=source)
        self.first_event = metrics.series("first_event_seconds", provider=provider, model=model, source=source)
        self.gateway = metrics.series("gateway_upstream_seconds", provider=provider, model=model, source=source)
        self.tokens = {kind: metrics.series("tokens", provider=provider, model=model, type=kind) for kind in KINDS}


class Counting:
    """Counts requests into one ``Metrics``."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._meters: dict[tuple[str, str, str], Meter] = {}
        self._providers: dict[str, tuple[Series, Series, Series]] = {}
        self._outcomes: dict[tuple[str, str, int, str, str], Series] = {}
        self._matches: dict[str, Series] = {}
        self._overhead = metrics.series("overhead_seconds")

    def request(self, exchange: Exchange, ended_ms: float) -> None:
        """Count one request that is over."""
        metrics, provider = self._metrics, exchange.target.provider
        metrics.add(self._outcome(exchange))
        sent, received, took = self._providers.get(provider) or self._provider(provider)
        metrics.add(sent, exchange.bytes_in)
        metrics.add(received, exchange.bytes_out)
        metrics.record(took, ended_ms - exchange.began_ms)
        if exchange.tap is not None and exchange.tap.unread is not None and exchange.ended is Ended.COMPLETE:
            metrics.count("answers_unread", provider=provider, reason=exchange.tap.unread)
        if exchange.start is not None:
            self._routed(exchange, provider, exchange.model or "", exchange.start.source.value)

    def _routed(self, exchange: Exchange, provider: str, model: str, source: str) -> None:
        metrics = self._metrics
        meter = self._meters.get((provider, model, source)) or self._meter(provider, model, source)
        metrics.add(meter.starts)
        metrics.add(self._match(exchange.match or ""))
        if exchange.sent_ms:
            metrics.record(self._overhead, exchange.sent_ms - exchange.began_ms)
        if exchange.head_ms is not None:
            metrics.record(meter.first_byte, exchange.head_ms - exchange.began_ms)
        if exchange.signals is not None and exchange.signals.upstream_ms is not None:
            metrics.record(meter.gateway, exchange.signals.upstream_ms)
        if exchange.replayed:
            good = exchange.verdict is not None and exchange.verdict.kind == "ok"
            metrics.count("replays", provider=provider, model=model, result="ok" if good else "refused")
        tap = exchange.tap
        if tap is None:
            return
        if tap.stream and tap.first_semantic_ms is not None:
            metrics.record(meter.first_event, tap.first_semantic_ms - exchange.began_ms)
        if tap.usage is not None:
            for kind, count in tokens(tap.usage).items():
                metrics.add(meter.tokens[kind], count)

    def _outcome(self, exchange: Exchange) -> Series:
        verdict, error, target = exchange.verdict, exchange.error, exchange.target
        kind, blame = (verdict.kind, verdict.blame.value) if verdict is not None else ("none", "none")
        status = exchange.status or (error.status if error is not None else 0)
        key = (target.provider, target.api, status, kind, blame)
        found = self._outcomes.get(key)
        if found is None:
            found = self._outcomes[key] = self._metrics.series(
                "requests", provider=target.provider, api=target.api, status=status, kind=kind, blame=blame
            )
        return found

    def _provider(self, provider: str) -> tuple[Series, Series, Series]:
        made = self._providers[provider] = (
            self._metrics.series("request_bytes", provider=provider),
            self._metrics.series("response_bytes", provider=provider),
            self._metrics.series("request_seconds", provider=provider),
        )
        return made

    def _match(self, match: str) -> Series:
        found = self._matches.get(match)
        if found is None:
            if len(self._matches) >= _KEPT:
                self._matches.clear()
            found = self._matches[match] = self._metrics.series("route_matches", match=match)
        return found

    def _meter(self, provider: str, model: str, source: str) -> Meter:
        if len(self._meters) >= _KEPT:
            self._meters.clear()
        made = self._meters[provider, model, source] = Meter(self._metrics, provider, model, source)
        return made
