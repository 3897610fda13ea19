"""What a handful of probes can say about routing."""

import pytest

from pool.model import ProbeKind, ProbeResult
from proxy.cli.stickiness import judge


def seen(*probes):
    return [
        ProbeResult("id", kind, upstream_ms, upstream_ms or 10_000.0, True, 200, endpoint=endpoint)
        for upstream_ms, endpoint, kind in probes
    ]


def fast(ms, endpoint=None):
    return (float(ms), endpoint, ProbeKind.FAST)


TIMEOUT = (None, None, ProbeKind.TIMEOUT)
FAILED = (None, None, ProbeKind.TRANSPORT)


@pytest.mark.parametrize(
    ("same", "fresh", "routing"),
    [
        # one id keeps its endpoint, others have another
        ([fast(1400, "a")] * 3, [fast(1500, "b")], "sticky"),
        # one id hops
        ([fast(1400, "a"), fast(1500, "b")], [fast(1400, "a")], "balanced"),
        # everything is served by one endpoint, evenly
        ([fast(1400, "a")] * 3, [fast(1500, "a")] * 3, "unknown"),
        # no names: one id steady, others far away
        ([fast(1900), fast(2100), fast(1700)], [fast(41_000)], "sticky"),
        ([fast(1900), fast(2100), fast(1700)], [TIMEOUT], "sticky"),
        ([TIMEOUT, TIMEOUT], [fast(1500)], "sticky"),
        # no names: one id is now fast, now slow
        ([fast(1435), TIMEOUT], [fast(1500)], "balanced"),
        ([fast(388), fast(7098)], [fast(1500)], "balanced"),
        # nothing to see
        ([fast(1435), fast(5138)], [fast(1500)], "unknown"),
        ([fast(1435), fast(1500)], [fast(1500)], "unknown"),
        ([fast(1435)], [fast(1500)], "unknown"),
        ([fast(1435), fast(1435)], [], "unknown"),
        ([FAILED, FAILED], [fast(1500)], "unknown"),
        ([], [], "unknown"),
    ],
)
def test_a_finding_follows_from_its_evidence(same, fresh, routing):
    found = judge(seen(*same), seen(*fresh))
    assert found.routing == routing
    assert found.because
