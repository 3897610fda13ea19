"""Gauges from what the status says."""

import pytest

from proxy.control.readings import readings
from proxy.insight.catalog import BY_NAME


def told(seen):
    """(name, label values) -> value."""
    return {(r.name, *r.labels.values()): r.value for r in readings(seen)}


def test_every_reading_is_in_the_catalog_with_its_labels():
    """Otherwise it would never be shown."""
    seen = {
        "version": "1",
        "started_at": 1000,
        "ready": True,
        "in_flight": 1,
        "conversations_known": 1,
        "buffered_bytes": 1,
        "events": {"dropped": 1},
        "log": {"dropped": 1},
        "upstream": {"connections": 2, "idle": 1},
        "pool": [{"provider": "p", "model": "m", "routing": {"regime": "sticky", "confidence": 0.97}}],
        "pauses": [{"provider": "p"}],
        "usage": {"since_start": [{"provider": "p", "model": "m", "cost_usd": 0.5, "saved_usd": -0.1}]},
    }
    found = readings(seen)
    for reading in found:
        assert set(reading.labels) == set(BY_NAME[reading.name].labels)
    gauges = {name for name, metric in BY_NAME.items() if metric.kind == "gauge"}
    assert gauges <= {reading.name for reading in found}


def test_values_are_in_base_units():
    """Milliseconds become seconds, truth becomes 1 or 0."""
    assert told({"started_at": 1500, "ready": False})["start_time_seconds",] == 1.5
    assert told({"ready": False})["ready",] == 0


def test_pauses_are_counted_by_provider():
    """Two reasons at once are two."""
    seen = {"pauses": [{"provider": "p", "reason": "limit"}, {"provider": "p", "reason": "cap"}, {"provider": "q"}]}
    assert told(seen)["pool_pauses", "p"] == 2


@pytest.mark.parametrize("odd", [None, 3, "x", [], [1], {}, {"connections": None}, [{"fresh": "many"}]])
def test_parts_that_are_missing_or_strange_are_left_out(odd):
    """A scrape comes whatever the daemon says."""
    readings(
        dict.fromkeys(["version", "started_at", "ready", "in_flight", "events", "upstream", "pool", "pauses"], odd)
    )
