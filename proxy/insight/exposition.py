"""Prometheus' text from a snapshot: the one place that knows prometheus-client, and that speaks of seconds."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from proxy.insight.catalog import BY_NAME, CATALOG, Kind, Metric
from proxy.insight.metrics import Labels, Reading, Snapshot, Spread

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LONGEST = 120  # characters of a label's value


def expose(snapshot: Snapshot, readings: Iterable[Reading]) -> bytes:
    """All metrics as text; what the catalog does not declare is left out."""
    registry = CollectorRegistry()
    registry.register(_Once(snapshot, list(readings)))
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    return generate_latest(registry)


class _Once(Collector):
    """A collector for one scrape."""

    def __init__(self, snapshot: Snapshot, readings: Sequence[Reading]) -> None:
        self._snapshot = snapshot
        self._readings = readings

    def collect(self) -> Iterator[Family]:
        counts: dict[str, dict[tuple[str, ...], float]] = defaultdict(lambda: defaultdict(float))
        for (name, labels), value in self._snapshot.counts.items():
            if (values := _values(name, labels)) is not None:
                counts[name][values] += value
        for reading in self._readings:
            counts[reading.name][()] += reading.value
        spreads: dict[str, dict[tuple[str, ...], Spread]] = defaultdict(dict)
        for (name, labels), spread in self._snapshot.spreads.items():
            if (values := _values(name, labels)) is not None:
                spreads[name][values] = _merged(spreads[name].get(values), spread)
        for metric in CATALOG:
            if metric.kind is Kind.COUNTER:
                yield _counter(metric, counts[metric.name])
            elif metric.kind is Kind.HISTOGRAM:
                yield _histogram(metric, spreads[metric.name])
            else:
                yield _gauge(metric, [reading for reading in self._readings if reading.name == metric.name])


def _values(name: str, labels: Labels) -> tuple[str, ...] | None:
    """Label values in the catalog's order, whatever order they were given in; None: not declared."""
    metric = BY_NAME.get(name)
    given = dict(labels)
    if metric is None or given.keys() != {*metric.labels}:
        return None
    return tuple(_clean(given[label]) for label in metric.labels)


def _clean(value: object) -> str:
    text = "" if value is None else str(value)
    return text[:LONGEST].encode("utf-8", "replace").decode()


def _merged(first: Spread | None, second: Spread) -> Spread:
    if first is None:
        return second
    counts = [a + b for a, b in zip(first.counts, second.counts, strict=True)]
    return Spread(counts, first.sum_ms + second.sum_ms)


def _counter(metric: Metric, series: dict[tuple[str, ...], float]) -> Family:
    family = CounterMetricFamily(f"ocpool_{metric.name}", metric.about, labels=metric.labels)
    if not metric.labels:
        series = {(): 0.0, **series}
    for values, value in series.items():
        family.add_metric(values, value)
    return family


def _histogram(metric: Metric, series: dict[tuple[str, ...], Spread]) -> Family:
    family = HistogramMetricFamily(metric.shown, metric.about, labels=metric.labels)
    bounds = [str(bound / 1000) for bound in metric.buckets_ms] + ["+Inf"]
    for values, spread in series.items():
        buckets = list(zip(bounds, accumulate(spread.counts), strict=True))
        family.add_metric(values, buckets, sum_value=spread.sum_ms / 1000)
    return family


def _gauge(metric: Metric, readings: Sequence[Reading]) -> Family:
    family = GaugeMetricFamily(metric.shown, metric.about, labels=metric.labels)
    for reading in readings:
        family.add_metric([_clean(reading.labels.get(label)) for label in metric.labels], reading.value)
    return family
