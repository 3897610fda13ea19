"""pool/profiles/latency.py"""

import pytest

from pool.model import ProbeKind
from pool.profiles.latency import ProbeFacts, classify
from tests.fakes.pool import MODEL, settings


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        ({"status": 200, "upstream_ms": 2500.0}, ProbeKind.FAST),
        ({"status": 200, "upstream_ms": 2501.0}, ProbeKind.SLOW),
        ({"status": 200, "wall_ms": 2400.0}, ProbeKind.FAST),
        ({"status": 200, "wall_ms": 2600.0}, ProbeKind.SLOW),
        ({"status": 200, "wall_ms": 9000.0, "upstream_ms": 500.0}, ProbeKind.FAST),
        ({"status": None, "timed_out": True}, ProbeKind.TIMEOUT),
        ({"status": None}, ProbeKind.TRANSPORT),
        ({"status": 502}, ProbeKind.TRANSPORT),
        ({"status": 401}, ProbeKind.UNAUTHORIZED),
        ({"status": 403}, ProbeKind.UNAUTHORIZED),
        ({"status": 402}, ProbeKind.LIMIT),
        ({"status": 429, "limited": True}, ProbeKind.LIMIT),
        ({"status": 401, "limited": True}, ProbeKind.LIMIT),
        ({"status": 429}, ProbeKind.OVERLOADED),
        ({"status": 529}, ProbeKind.OVERLOADED),
        ({"status": 503, "overloaded": True}, ProbeKind.OVERLOADED),
        ({"status": 400}, ProbeKind.REJECTED),
        ({"status": 302}, ProbeKind.REJECTED),
    ],
)
def test_a_probe_is_classified_by_upstream_time_and_by_what_refused_it(facts, kind):
    facts = {"wall_ms": 1000.0} | facts
    assert classify(ProbeFacts(MODEL, **facts), settings()) is kind


def test_the_legacy_classifier_rejects_fast_answers_whose_id_does_not_begin_with_gw():
    legacy = settings(probe={"require_gateway_id": True})
    made = [classify(ProbeFacts(MODEL, 200, 900.0, 448.0, body_id=i), legacy) for i in ("chatcmpl-1", None, "gw-3-1")]
    assert made == [ProbeKind.MISMATCH, ProbeKind.MISMATCH, ProbeKind.FAST]


def test_the_bound_can_differ_per_model():
    tree = settings(models={MODEL: {"max_upstream_ms": 100}})
    assert classify(ProbeFacts(MODEL, 200, 0.0, 101.0), tree) is ProbeKind.SLOW
    assert classify(ProbeFacts("other", 200, 0.0, 101.0), tree) is ProbeKind.FAST
