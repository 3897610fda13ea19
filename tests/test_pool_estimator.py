"""pool/estimator.py and pool/track.py"""

import random
import statistics
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pool.estimator import Belief, Estimator
from pool.policy import Regime
from pool.track import ALIKE, EXPIRY_MS, IDS, MOST, Track
from tests.fakes.gateways import KEY, Gateway, Traffic, watch

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("gateway", "regime"),
    [
        (Gateway.sticky(), Regime.STICKY),
        (Gateway.sticky(hop=0.1), Regime.STICKY),
        (Gateway.balanced(), Regime.BALANCED),
        (Gateway.sticky(named=False), Regime.STICKY),
        (Gateway.balanced(named=False), Regime.BALANCED),
        (Gateway.single(), Regime.BALANCED),  # one endpoint: nothing to choose
        (Gateway.single(named=False), Regime.BALANCED),
    ],
    ids=str,
)
def test_it_finds_out_how_a_gateway_routes(gateway, regime):
    found = []
    for seed in range(20):
        estimator = Estimator()
        watch(estimator, Traffic(seed), [(gateway, 120)])
        found.append(estimator.regime(KEY, 120 * Traffic.EVERY_MS))
    assert found.count(regime) >= 19


@pytest.mark.parametrize("named", [True, False], ids=["endpoints named", "no timing, no names"])
@pytest.mark.parametrize("to", [Regime.BALANCED, Regime.STICKY], ids=str)
def test_a_change_is_noticed_within_thirty_requests_in_the_median(to, named):
    sticky, balanced = Gateway.sticky(named=named), Gateway.balanced(named=named)
    before, after = (sticky, balanced) if to is Regime.BALANCED else (balanced, sticky)
    delays = []
    for seed in range(60):
        changes = watch(Estimator(), Traffic(seed), [(before, 150), (after, 250)])
        delays += [at - 150 for at, change in changes if at > 150 and change.finding.regime is to][:1]
    assert len(delays) >= 58
    assert statistics.median(delays) <= 30
    assert sorted(delays)[len(delays) * 9 // 10] <= 60


@pytest.mark.parametrize(
    ("gateway", "most"), [(Gateway.sticky(), 0), (Gateway.sticky(hop=0.1), 4), (Gateway.balanced(), 8)], ids=str
)
def test_false_alarms_are_rare(gateway, most):
    """In 40,000 requests; each alarm is two changes, there and back."""
    alarms = 0
    for seed in range(8):
        changes = watch(Estimator(), Traffic(seed), [(gateway, 5_000)])
        alarms += len([at for at, _ in changes if at > 100])
    assert alarms <= most


def test_few_samples_and_one_id_alone_say_nothing():
    estimator = Estimator()
    for turn in range(200):
        estimator.observe(KEY, "one", turn * 1_000, "native-1", slow=False)
    assert estimator.regime(KEY, 200_000) is Regime.UNKNOWN
    assert estimator.finding(KEY, 200_000).confidence == 0.5
    assert Estimator().regime(KEY, 0) is Regime.UNKNOWN


def test_what_was_known_is_unknown_after_six_hours_without_evidence_and_the_change_is_told():
    estimator = Estimator()
    watch(estimator, Traffic(1), [(Gateway.sticky(), 100)])
    last = estimator.learned_at(KEY)
    assert estimator.expire(last + EXPIRY_MS) == []
    (change,) = estimator.expire(last + EXPIRY_MS + 1)
    assert (change.before, change.finding.regime) == (Regime.STICKY, Regime.UNKNOWN)
    assert estimator.belief(KEY, last + EXPIRY_MS + 1) is None
    assert estimator.expire(last + EXPIRY_MS + 2) == []


def test_what_one_process_knows_another_takes_over_while_it_knows_nothing():
    first, second = Estimator(), Estimator()
    watch(first, Traffic(1), [(Gateway.balanced(), 100)])
    at = first.learned_at(KEY)
    belief = first.belief(KEY, at)
    assert belief.regime is Regime.BALANCED
    assert second.adopt(KEY, belief, at + HOUR).finding.regime is Regime.BALANCED
    assert second.belief(KEY, at + HOUR) == belief
    assert second.adopt(KEY, Belief(Regime.STICKY, 5.0, 9, at + HOUR), at + HOUR) is None
    assert Estimator().adopt(KEY, belief, at + EXPIRY_MS + 1) is None
    assert Estimator().adopt(KEY, belief, at - 1) is None


def test_the_evidence_is_counted():
    estimator = Estimator()
    watch(estimator, Traffic(3), [(Gateway.sticky(), 200)])
    found = estimator.finding(KEY, 200 * Traffic.EVERY_MS)
    assert found.by == "endpoint"
    assert found.agreement.compared > 100
    assert found.agreement.same > 0.95
    assert found.agreement.other < 0.7
    assert found.confidence > 0.95
    assert found.endpoints == 3


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcdef"),
            st.integers(-10_000, 10**9),
            st.none() | st.sampled_from(["n1", "n2", "n3"]),
            st.none() | st.booleans(),
        ),
        max_size=200,
    )
)
def test_whatever_comes_the_score_stays_within_bounds_and_the_counts_agree(seen):
    estimator = Estimator()
    for routed_id, now, endpoint, slow in seen:
        estimator.observe(KEY, routed_id, now, endpoint, slow=slow)
        found = estimator.finding(KEY, now)
        assert 0.5 <= found.confidence <= 1.0
        track = estimator._tracks.get(KEY)
        if track is not None:
            assert -MOST <= track.score <= MOST
            assert track.endpoints.total == sum(one.endpoint is not None for one in track.newcomers)
            assert all(count > 0 for count in track.speeds.of.values())


@given(
    st.lists(st.tuples(st.sampled_from([None, "n1", "n1", "n1", "n2"]), st.sampled_from([None, False, False, True]))),
    st.lists(st.tuples(st.just("n1"), st.just(False)), min_size=20, max_size=40),
)
def test_the_newcomers_are_counted_as_they_are_and_known_to_be_alike_when_they_are(seen, more):
    track = Track()
    for number, (endpoint, slow) in enumerate([*seen, *more, *seen]):
        track.see(f"id-{number}", endpoint, slow, number)
        places = Counter(one.endpoint for one in track.newcomers if one.endpoint is not None)
        speeds = Counter(one.slow for one in track.newcomers if one.slow is not None)
        assert (track.endpoints.of, track.speeds.of) == (places, speeds)
        alike = len(places) <= 1 and len(speeds) <= 1 and len(places) + len(speeds) > 0
        assert track.alike is (alike and len(track.newcomers) >= ALIKE)


def test_memory_is_bounded_however_many_ids_and_models_there_are():
    estimator = Estimator()
    for number in range(3_000):
        estimator.observe(KEY._replace(model=f"m{number % 100}"), f"id{number}", number, "n", slow=False)
    assert len(estimator.models()) <= 64
    for number in range(1_000):
        estimator.observe(KEY, f"id{number}", number, "n", slow=False)
    assert len(estimator._tracks[KEY].ids) <= IDS


@pytest.mark.slow
def test_an_observation_costs_less_than_five_microseconds():
    estimator, draw = Estimator(), random.Random(1)
    seen = [(f"id{draw.randrange(12)}", f"n{draw.randrange(3)}", draw.random() < 0.3) for _ in range(20_000)]
    began = time.process_time()
    for now, (routed_id, endpoint, slow) in enumerate(seen):
        estimator.observe(KEY, routed_id, now, endpoint, slow=slow)
    assert (time.process_time() - began) / len(seen) < 5e-6
