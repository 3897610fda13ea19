"""pool/profiles/throughput.py"""

import pytest

from pool.model import ProbeKind
from pool.profiles.latency import ProbeFacts
from pool.profiles.throughput import Judgement, PacedFacts, Turn, grade, judge, locks
from pool.retire import Effect
from tests.fakes.pool import MODEL, settings

PROBE = settings(probe={"profile": "throughput"}).probe_for(MODEL)


def facts(status=200, *, ttfb_ms=900.0, total_ms=1_800.0, tps=120.0, **answer) -> PacedFacts:
    return PacedFacts(ProbeFacts(MODEL, status, ttfb_ms or 0.0, **answer), ttfb_ms, total_ms, tps)


@pytest.mark.parametrize(
    ("seen", "kind", "reason"),
    [
        (facts(), ProbeKind.FAST, None),
        (facts(tps=70.0), ProbeKind.FAST, None),
        (facts(tps=69.9), ProbeKind.SLOW, "too slow"),
        (facts(tps=None), ProbeKind.SLOW, "too slow"),
        (facts(tps=20.0, body_id="gw-7-1"), ProbeKind.FAST, None),  # the fast workers' form is enough
        (facts(tps=20.0, body_id="chatcmpl-7"), ProbeKind.SLOW, "too slow"),
        (facts(ttfb_ms=5_000.0), ProbeKind.FAST, None),
        (facts(ttfb_ms=5_000.1), ProbeKind.SLOW, "late first token"),
        (facts(ttfb_ms=5_000.1, body_id="gw-7-1"), ProbeKind.SLOW, "late first token"),
        (facts(total_ms=15_000.0), ProbeKind.FAST, None),
        (facts(total_ms=15_000.1), ProbeKind.SLOW, "took too long"),
        (facts(ttfb_ms=None), ProbeKind.SLOW, "no tokens"),
        (facts(429, overloaded=True), ProbeKind.OVERLOADED, "overloaded"),
        (facts(429, limited=True), ProbeKind.LIMIT, "limit"),
        (facts(None, timed_out=True), ProbeKind.TIMEOUT, "timeout"),
        (facts(None), ProbeKind.TRANSPORT, "transport"),
        (facts(401), ProbeKind.UNAUTHORIZED, "unauthorized"),
    ],
)
def test_what_a_probe_is_worth(seen, kind, reason):
    assert grade(seen, PROBE) == (kind, reason)


def test_the_defaults_are_those_of_the_profile_unless_somebody_sets_them():
    tree = settings(probe={"profile": "throughput"})
    assert (tree.probe_for(MODEL).max_tokens, tree.probe_for(MODEL).timeout_ms) == (96, 25_000)
    assert (tree.pool_for(MODEL).size, tree.pool_for(MODEL).ttl_ms) == (4, 300_000)
    mixed = settings(models={MODEL: {"profile": "throughput", "max_tokens": 48}}, pool={"size": 2})
    assert (mixed.probe_for(MODEL).max_tokens, mixed.pool_for(MODEL).size) == (48, 2)
    assert (mixed.probe_for("other").max_tokens, mixed.pool_for("other").ttl_ms) == (1, 1_800_000)
    back = settings(probe={"profile": "throughput"}, models={MODEL: {"profile": "latency"}})
    assert (back.probe_for(MODEL).max_tokens, back.profile_for("x")) == (1, "throughput")


def turn(**more) -> Turn:
    usual = {
        "natural": False, "refused": False, "measured": True, "first": False, "locked": False, "corrected": False,
        "failures": 0, "strikes": 2, "tps": 120.0, "estimated": False, "ttfb_ms": 900.0, "prefilled": False,
        "probe_tps": 150.0, "degrade_tps": 70, "degrade_ttfb_ms": 20_000,
    }  # fmt: skip
    return Turn(**(usual | more))


@pytest.mark.parametrize(
    ("made", "judgement"),
    [
        (turn(), (Effect.HEALTHY, "")),
        (turn(tps=None), (Effect.SEEN, "")),
        (turn(tps=50.0), (Effect.STRIKE, "slow")),
        (turn(tps=50.0, failures=1), (Effect.RETIRE, "slow")),
        (turn(tps=50.0, failures=1, estimated=True), (Effect.HEALTHY, "")),  # what was counted never evicts
        (turn(tps=50.0, natural=True), (Effect.MARK, "slow")),
        (turn(ttfb_ms=20_000.0), (Effect.STRIKE, "slow")),
        (turn(ttfb_ms=20_000.0, prefilled=True), (Effect.HEALTHY, "")),
        (turn(first=True, tps=89.9), (Effect.RETIRE, "correction")),
        (turn(first=True, tps=90.0), (Effect.HEALTHY, "")),
        (turn(first=True, tps=89.9, estimated=True), (Effect.HEALTHY, "")),
        (turn(first=True, tps=89.9, corrected=True), (Effect.HEALTHY, "")),  # only once
        (turn(first=False, tps=89.9), (Effect.HEALTHY, "")),
        (turn(first=True, tps=89.9, probe_tps=None), (Effect.HEALTHY, "")),
        (turn(tps=5.0, locked=True, failures=1), (Effect.SEEN, "")),  # only written down
        (turn(refused=True, locked=True), (Effect.RETIRE, "dead")),
        (turn(refused=True, natural=True), (Effect.MARK, "dead")),
        (turn(tps=5.0, measured=False), (Effect.SEEN, "")),
    ],
)
def test_what_a_turn_does_to_its_id(made, judgement):
    assert judge(made) == Judgement(*judgement)


@pytest.mark.parametrize(
    ("turns", "tokens", "locked"), [(1, 19_999, False), (2, 0, True), (1, 20_000, True), (1, None, False)]
)
def test_when_the_cache_is_worth_more_than_speed(turns, tokens, locked):
    assert locks(turns, tokens, 2, 20_000) is locked
