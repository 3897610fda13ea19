"""Every metric, declared once: name, kind, labels, buckets and what it says. docs/metrics.md is made from it.

Counters are named without ``_total`` here and get it when they are shown, as Prometheus wants it. Inside, durations
are milliseconds; only the exposition speaks of seconds.
"""

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """What a metric counts."""

    COUNTER = "counter"  # only grows
    HISTOGRAM = "histogram"  # durations, in buckets
    GAUGE = "gauge"  # read from the daemon when it is asked for


class Metric(NamedTuple):
    """One metric. ``buckets_ms`` are the upper bounds of a histogram's buckets."""

    name: str
    kind: Kind
    about: str
    labels: tuple[str, ...] = ()
    buckets_ms: tuple[float, ...] = ()

    @property
    def shown(self) -> str:
        """The name as Prometheus sees it."""
        return f"ocpool_{self.name}_total" if self.kind is Kind.COUNTER else f"ocpool_{self.name}"


_ANSWER_MS = (100, 250, 500, 1000, 1500, 2000, 2500, 4000, 6000, 8000, 10000, 15000, 20000, 30000, 45000, 60000)
_TURN_MS = (500, 1000, 2500, 5000, 10000, 20000, 30000, 60000, 120000, 300000, 600000, 1800000, 3600000)
_LOCAL_MS = (0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 25, 50, 100, 250, 1000)
_NET_MS = (1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000)

_MODEL = ("provider", "model")


def _counter(name: str, about: str, *labels: str) -> Metric:
    return Metric(name, Kind.COUNTER, about, labels)


def _histogram(name: str, buckets_ms: tuple[float, ...], about: str, *labels: str) -> Metric:
    return Metric(name, Kind.HISTOGRAM, about, labels, buckets_ms)


def _gauge(name: str, about: str, *labels: str) -> Metric:
    return Metric(name, Kind.GAUGE, about, labels)


CATALOG: tuple[Metric, ...] = (
    _counter("requests", "Requests that ended, by how they ended (`kind` of the verdict) and whose fault it was.",
             "provider", "api", "status", "kind", "blame"),
    _counter("route_starts", "Routed requests by where their id came from: spare, natural, probe, repin, none.",
             *_MODEL, "source"),
    _counter("route_matches", "Routed requests by the rule that named their conversation (`x-ocpool-match`).",
             "match"),
    _counter("decisions", "Decisions of the pool by name: take, strike, retire, mark, repin, refill, pause ...",
             "decision"),
    _counter("retirements", "Ids that were retired for good.", *_MODEL, "reason"),
    _counter("replays", "Requests sent a second time before the first byte, by how that ended.",
             *_MODEL, "result"),
    _counter("probes", "Probes that ended, by what they found.", *_MODEL, "kind"),
    _counter("probe_tokens", "Tokens that probes cost, as the gateway reported them.", *_MODEL),
    _counter("tokens", "Tokens of relayed answers that reported them; type is input (the whole prompt), cached and "
             "written (parts of it, read from and put into the cache), output, or reasoning (a part of that).",
             *_MODEL, "type"),
    _counter("answers_unread", "Whole answers that were relayed but could not be read: coding, size, line, json.",
             "provider", "reason"),
    _counter("request_bytes", "Bytes of request bodies sent upstream.", "provider"),
    _counter("response_bytes", "Bytes of response bodies relayed to clients.", "provider"),
    _counter("errors", "Answers that ocpool itself made, by code.", "code"),
    _counter("upstream_connections_opened", "Connections opened to the upstream.", "origin"),
    _counter("upstream_connections_reused", "Requests that went out on an idle connection.", "origin"),
    _counter("state_syncs", "Writes of the state file, by result: ok, busy, failed.", "result"),
    _counter("events_dropped", "Events that did not reach the event log."),
    _counter("log_lines_dropped", "Log lines that could not be written."),
    _histogram("request_seconds", _TURN_MS, "From a request's head to the last byte of its answer.", "provider"),
    _histogram("first_byte_seconds", _ANSWER_MS, "From a request's head to the first byte of its answer.",
               *_MODEL, "source"),
    _histogram("first_event_seconds", _ANSWER_MS, "From a request's head to its first semantic event.",
               *_MODEL, "source"),
    _histogram("gateway_upstream_seconds", _ANSWER_MS, "The gateway's own `server-timing: upstream`.",
               *_MODEL, "source"),
    _histogram("overhead_seconds", _LOCAL_MS, "Time spent in ocpool before a routed request was sent."),
    _histogram("upstream_connect_seconds", _NET_MS, "Opening a connection to the upstream, TLS included.", "origin"),
    _histogram("probe_seconds", _ANSWER_MS, "From sending a probe to its answer.", *_MODEL),
    _histogram("state_sync_seconds", _NET_MS, "One write of the state file, the wait for its lock included."),
    _gauge("info", "Always 1; the version is a label.", "version"),
    _gauge("start_time_seconds", "When the daemon started, unix time."),
    _gauge("ready", "1 when /-/ready answers 200."),
    _gauge("requests_in_flight", "Requests being served."),
    _gauge("conversations", "Conversations that are known."),
    _gauge("pool_spares", "Verified ids that nobody owns; state is fresh or stale.", *_MODEL, "state"),
    _gauge("pool_target", "How many spares are wanted.", *_MODEL),
    _gauge("pool_bindings", "Conversations that own an id.", *_MODEL),
    _gauge("routing_regime", "1 for what is believed of how ids are routed: sticky, balanced or unknown.",
           *_MODEL, "regime"),
    _gauge("routing_confidence", "How probable that is, from 0.5 (unknown) to 1.", *_MODEL),
    _gauge("pool_pauses", "Reasons why no probes are made at the moment.", "provider"),
    _gauge("cost_usd", "Estimated cost of the answers since the start, at list prices, in USD.", *_MODEL),
    _gauge("saved_usd", "What the prompt cache saved of it, in USD; negative where it cost more.", *_MODEL),
    _gauge("upstream_connections", "Open connections to the upstream; state is active or idle.", "state"),
    _gauge("buffered_bytes", "Request bodies held in memory."),
)  # fmt: skip

BY_NAME = {metric.name: metric for metric in CATALOG}


def markdown() -> str:
    """docs/metrics.md: the catalog as tables."""
    lines = [
        "# Metrics",
        "",
        "`GET /-/metrics` answers in Prometheus' text format. Made from `proxy/insight/catalog.py` by",
        "`python -m proxy.insight.metrics --write docs/metrics.md`. What lies beyond 500 combinations of a",
        "metric's labels is counted under `other`. The usual `process_*` and `python_gc_*` metrics are there too.",
    ]
    for kind in Kind:
        lines += ["", f"## {kind.value.capitalize()}s", "", "| name | labels | what |", "|---|---|---|"]
        lines += [
            f"| `{metric.shown}` | {', '.join(f'`{label}`' for label in metric.labels) or '-'} | {metric.about} |"
            for metric in CATALOG
            if metric.kind is kind
        ]
    return "\n".join(lines) + "\n"
