"""What finished requests add to the metrics: a row each, added up kind by kind, in time or when somebody asks.

A request pays for its row; the series are looked up for many at once.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple, cast

from proxy.answers.usage import KINDS, NOTHING, Usage
from proxy.exchange import Exchange
from proxy.insight.metrics import Metrics
from proxy.pour import Ended
from proxy.verdict import OK, Verdict

_ROWS: Final = 128  # that wait at most
_COMPLETE: Final = Ended.COMPLETE

# What requests of one kind have in common: provider, API, status and verdict; and of a routed one its model, where its
# id came from, and the rule that named its conversation.
Kind = tuple[str, str, int, Verdict | None, str | None, str | None, str | None]
# What each adds: bytes up and down; durations in ms, None where nothing was measured; tokens.
Row = tuple[int, int, float, float | None, float | None, float | None, float | None, Usage | None]


class _Columns(NamedTuple):
    """The rows of one kind, turned."""

    sent: Sequence[int]
    received: Sequence[int]
    took: Sequence[float]
    overhead: Sequence[float | None]
    first_byte: Sequence[float | None]
    first_event: Sequence[float | None]
    gateway: Sequence[float | None]
    used: Sequence[Usage | None]


class Counting:
    """Counts requests into one ``Metrics``."""

    def __init__(self, metrics: Metrics, origin: str) -> None:
        self._metrics = metrics
        self._rows: list[tuple[Kind, Row]] = []
        self.decisions: Counter[str] = Counter()  # of the pool, by name, that are not in the metrics yet
        self._opened = metrics.tally("upstream_connections_opened", origin=origin)
        self._connect = metrics.spread("upstream_connect_seconds", origin=origin)
        self.reused = metrics.tally("upstream_connections_reused", origin=origin)
        metrics.gather = self.gather

    def connected(self, took_ms: float) -> None:
        """Count a new connection to the upstream."""
        self._opened.value += 1
        self._connect.add(took_ms)

    def request(self, exchange: Exchange, ended_ms: float) -> None:
        """Count one request that is over."""
        target, status, verdict, start = exchange.target, exchange.status, exchange.verdict, exchange.start
        began, tap, signals = exchange.began_ms, exchange.tap, exchange.signals
        if status is None:
            status = exchange.error.status if exchange.error is not None else 0
        model = source = match = first_event = None
        if start is not None:
            model, source, match = exchange.model or "", start.source, exchange.match or ""
            if exchange.replayed:
                result = "ok" if verdict is OK else "refused"
                self._metrics.count("replays", provider=target.provider, model=model, result=result)
        if tap is not None:
            if tap.stream and tap.first_semantic_ms is not None:
                first_event = tap.first_semantic_ms - began
            if tap.unread is not None and exchange.ended is _COMPLETE:
                self._metrics.count("answers_unread", provider=target.provider, reason=tap.unread)
        row = (
            exchange.bytes_in,
            exchange.bytes_out,
            ended_ms - began,
            exchange.sent_ms - began if exchange.sent_ms else None,
            exchange.head_ms - began if exchange.head_ms is not None else None,
            first_event,
            signals.upstream_ms if signals is not None else None,
            exchange.used,
        )
        rows = self._rows
        rows.append(((target.provider, target.api, status, verdict, model, source, match), row))
        if len(rows) >= _ROWS:
            self.gather()

    def gather(self) -> None:
        """Add what waits to the metrics."""
        kinds: dict[Kind, list[Row]] = defaultdict(list)
        for kind, row in self._rows:
            kinds[kind].append(row)
        self._rows.clear()
        for kind, rows in kinds.items():
            columns = _Columns(*zip(*rows, strict=True))
            self._add(kind, columns)
            if kind[-1] is not None:
                self._add_routed(kind, columns)
        for decision, times in self.decisions.items():
            self._metrics.count("decisions", times, decision=decision)
        self.decisions.clear()

    def _add(self, alike: Kind, columns: _Columns) -> None:
        provider, api, status, verdict, *_ = alike
        kind, blame = (verdict.kind, verdict.blame) if verdict is not None else ("none", "none")
        metrics, requests = self._metrics, len(columns.took)
        metrics.count("requests", requests, provider=provider, api=api, status=status, kind=kind, blame=blame)
        metrics.count("request_bytes", sum(columns.sent), provider=provider)
        metrics.count("response_bytes", sum(columns.received), provider=provider)
        metrics.spread("request_seconds", provider=provider).add_all(columns.took)

    def _add_routed(self, alike: Kind, columns: _Columns) -> None:
        provider, _, _, _, model, source, match = alike
        count, spread, requests = self._metrics.count, self._metrics.spread, len(columns.took)
        route = {"provider": provider, "model": model, "source": source}
        count("route_starts", requests, **route)
        count("route_matches", requests, match=match)
        spread("overhead_seconds").add_all(_measured(columns.overhead))
        spread("first_byte_seconds", **route).add_all(_measured(columns.first_byte))
        spread("first_event_seconds", **route).add_all(_measured(columns.first_event))
        spread("gateway_upstream_seconds", **route).add_all(_measured(columns.gateway))
        used = [usage for usage in columns.used if usage is not None] or [NOTHING]
        for kind, tokens in zip(KINDS, zip(*used, strict=True), strict=True):
            count("tokens", sum(filter(None, tokens)), provider=provider, model=model, type=kind)


def _measured(column: Sequence[float | None]) -> Sequence[float]:
    return [ms for ms in column if ms is not None] if None in column else cast(Sequence[float], column)
