"""Counting on the hot path, Prometheus' text when somebody asks."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from proxy.insight.catalog import CATALOG, Kind, markdown
from proxy.insight.metrics import MAX_SERIES, Metrics, Reading, main

ROOT = Path(__file__).parents[1]


def samples(metrics, *readings):
    """Everything a scrape says: (name, labels) -> value."""
    families = text_string_to_metric_families(metrics.render(readings).decode())
    return {(s.name, *sorted(s.labels.items())): s.value for family in families for s in family.samples}


def test_a_counter_counts_whatever_the_order_of_its_labels():
    """Two call sites, one series."""
    metrics = Metrics()
    metrics.count("probes", provider="p", model="m", kind="fast")
    metrics.count("probes", 2, kind="fast", model="m", provider="p")
    assert samples(metrics)["ocpool_probes_total", ("kind", "fast"), ("model", "m"), ("provider", "p")] == 3


def test_a_histogram_is_cumulative_and_in_seconds():
    """Milliseconds go in; a value on a bound belongs to its bucket."""
    metrics = Metrics()
    for ms in (100, 941, 70_000):
        metrics.observe("probe_seconds", ms, provider="p", model="m")
    seen = samples(metrics)
    labels = (("model", "m"), ("provider", "p"))
    assert seen["ocpool_probe_seconds_bucket", ("le", "0.1"), *labels] == 1
    assert seen["ocpool_probe_seconds_bucket", ("le", "1.0"), *labels] == 2
    assert seen["ocpool_probe_seconds_bucket", ("le", "+Inf"), *labels] == 3
    assert seen["ocpool_probe_seconds_count", *labels] == 3
    assert seen["ocpool_probe_seconds_sum", *labels] == pytest.approx(71.041)


def test_gauges_and_counters_of_others_are_read_at_the_scrape():
    """What is known elsewhere is not kept twice."""
    seen = samples(
        Metrics(), Reading("ready", 1), Reading("events_dropped", 7), Reading("pool_target", 3, {"provider": "p"})
    )
    assert seen["ocpool_ready",] == 1
    assert seen["ocpool_events_dropped_total",] == 7
    assert seen["ocpool_pool_target", ("model", ""), ("provider", "p")] == 3


def test_unlabelled_counters_are_there_from_the_start():
    """A rate of something that never happened is 0, not absent."""
    assert samples(Metrics())["ocpool_log_lines_dropped_total",] == 0


def test_a_client_that_invents_models_does_not_fill_our_memory():
    """Beyond a bound everything of a provider is one series; no count is lost."""
    metrics = Metrics()
    for number in range(MAX_SERIES * 3):
        metrics.count("probe_tokens", provider="p", model=f"m{number}")
        metrics.observe("probe_seconds", 1, provider="p", model=f"m{number}")
    taken = metrics.snapshot()
    assert len(taken.counts) == len(taken.spreads) == MAX_SERIES + 1
    assert sum(taken.counts.values()) == MAX_SERIES * 3
    assert samples(metrics)["ocpool_probe_tokens_total", ("model", "other"), ("provider", "p")] == MAX_SERIES * 2


def test_hostile_label_values_stay_inside_their_quotes():
    """Quotes, line ends, surrogates, megabytes."""
    metrics = Metrics()
    for model in ('a"} 1\nb', "\ud800", "m" * 1_000_000, None):
        metrics.count("probe_tokens", provider="p", model=model)
    assert sum(1 for name, *_ in samples(metrics) if name == "ocpool_probe_tokens_total") == 4


def test_what_the_catalog_does_not_declare_is_never_shown_but_can_be_found():
    """A misspelt name or label must not break a scrape; a test of the whole asks ``undeclared``."""
    metrics = Metrics()
    metrics.count("nonsense")
    metrics.count("probes", provider="p")
    metrics.observe("ready", 5)
    assert metrics.undeclared() == {"nonsense", "probes", "ready"}
    assert not any("nonsense" in name or name.startswith("ocpool_probes") for name, *_ in samples(metrics))


def test_a_snapshot_does_not_change_afterwards():
    """It is rendered on another thread while requests go on."""
    metrics = Metrics()
    metrics.observe("overhead_seconds", 1)
    taken = metrics.snapshot()
    metrics.observe("overhead_seconds", 1)
    assert sum(taken.spreads["overhead_seconds", ()].counts) == 1


def test_counting_costs_about_a_microsecond():
    """Ten thousand counts and observations in well under half a second of processor time, at the best of five."""
    metrics = Metrics()

    def once() -> float:
        began = time.process_time()
        for _ in range(10_000):
            metrics.count("requests", provider="p", api="completions", status=200, kind="ok", blame="none")
            metrics.observe("request_seconds", 1234.5, provider="p")
        return time.process_time() - began

    assert min(once() for _ in range(5)) < 0.5


@pytest.mark.parametrize("metric", CATALOG, ids=lambda metric: metric.name)
def test_every_metric_follows_the_conventions(metric):
    """Base units, a sentence, ascending buckets; counters are named without the suffix they are given."""
    assert re.fullmatch(r"[a-z][a-z_]*[a-z]", metric.name)
    assert metric.about.endswith((".", "..."))
    assert not metric.name.endswith(("_ms", "_total", "_count"))
    assert list(metric.buckets_ms) == sorted(metric.buckets_ms)
    assert (
        bool(metric.buckets_ms)
        == (metric.kind is Kind.HISTOGRAM)
        == (metric.shown.endswith("_seconds") and "start" not in metric.name)
    )


def test_the_documentation_is_made_from_the_catalog(capsys, tmp_path):
    """docs/metrics.md is what ``python -m proxy.insight.metrics --write`` writes."""
    assert (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8") == markdown()
    assert main([]) == 0
    assert capsys.readouterr().out == markdown()
    assert main(["--write", str(tmp_path / "m.md")]) == 0
    assert (tmp_path / "m.md").read_text(encoding="utf-8") == markdown()


def test_prometheus_is_not_imported_before_the_first_scrape():
    """It would cost the start a tenth of a second."""
    code = "import sys, proxy.insight.metrics as m; m.Metrics().count('errors', code='x'); sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
