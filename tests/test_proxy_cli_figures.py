"""The demo's figures: quantiles, counts after the warm-up, and a difference told from chance."""

import random

import pytest

from proxy.cli.calibrating import Overhead, overhead
from proxy.cli.figures import arm, effect, quantile, rank_sum_z, split_p, warm_up_of
from proxy.cli.playing import Played
from proxy.simulator.record import Record


def turn(number: int, turn: int = 0, ttfb_ms: float = 1.0, route: str = "", bad: bool = False, status: int = 200):
    """A turn that was played; ``bad`` is what the gateway wrote down."""
    record = Record(0, 0, "POST", "/", bad=bad)
    return Played(number, turn, 0.0, f"{number}.{turn}", status, ttfb_ms, route, status == 200, record)


def test_a_quantile_lies_between_its_neighbours():
    """The ends are the least and the greatest; of nothing it is zero."""
    assert [quantile([3.0, 1.0, 2.0], share) for share in (0.0, 0.25, 0.5, 1.0)] == [1.0, 1.5, 2.0, 3.0]
    assert quantile([], 0.5) == 0.0


def test_the_rank_sum_tells_a_difference_from_chance():
    """Two samples of one spread are alike; a shifted one is far off, on the side it was shifted to."""
    draw = random.Random(7)
    some, others = ([draw.gauss(10, 2) for _ in range(60)] for _ in range(2))
    assert abs(rank_sum_z(some, others)) < 2.58
    assert rank_sum_z([value - 3 for value in some], others) < -5
    assert rank_sum_z(others, [value - 3 for value in some]) > 5
    assert rank_sum_z([], others) == 0.0
    assert rank_sum_z([1.0, 1.0], [1.0, 1.0]) == 0.0


def test_the_warm_up_ends_with_the_first_conversation_that_starts_on_a_spare():
    """A later natural start is no warm-up but a miss, and counts."""
    starts = [turn(0, route="natural"), turn(1, route="natural"), turn(2, route="spare"), turn(3, route="natural")]
    assert warm_up_of(starts) == 2
    assert warm_up_of(starts[:2]) == 2
    assert warm_up_of([]) == 0


def test_an_arm_counts_turns_starts_failures_and_probes_after_the_warm_up():
    """Probes count from the beginning, because they were paid then."""
    played = [
        turn(0, bad=True),
        turn(1, 0, 2.0, "spare"),
        turn(1, 1, 4.0, "spare", bad=True),
        turn(2, 0, 9.0, status=0),
    ]
    probes = [Record(0, 0, "POST", "/", probe=True, prompt_tokens=8, completion_tokens=1)] * 3
    found = arm("sticky", "ocpool", played, [*probes, Record(0, 0, "POST", "/", prompt_tokens=9)], warm_up=1)
    assert (found.conversations, found.turns, found.failed, found.on_spares) == (2, 3, 1, 1)
    assert (found.bad_turns, found.bad_starts) == (1, 0)
    assert (found.probes, found.probe_tokens) == (3, 27)
    assert (found.ttfb_p50_ms, found.ttfb_p95_ms) == (3.0, pytest.approx(3.9))


def test_an_effect_leaves_the_warm_up_out_on_both_sides():
    """The same conversations are left out of the direct side, although nothing warmed up there."""
    direct = [turn(0, ttfb_ms=1.0)] + [turn(number, ttfb_ms=100.0 + number) for number in range(1, 30)]
    through = [turn(0, ttfb_ms=900.0)] + [turn(number, ttfb_ms=10.0 + number) for number in range(1, 30)]
    arms = [arm("sticky", client, played, [], 1) for client, played in (("direct", direct), ("ocpool", through))]
    found = effect(*arms, direct, through, 1)
    assert found.p50_change_ms == -90.0
    assert found.z < -5
    assert found.on_waits
    assert not found.on_routes


def test_fewer_bad_starts_are_an_effect_although_most_waits_are_alike():
    """Half of the conversations were as fast before; the other half is what matters."""
    direct = [turn(number, ttfb_ms=1.0 + number, bad=number % 3 == 0) for number in range(15)]
    through = [turn(number, ttfb_ms=1.0 + number) for number in range(15)]
    arms = [arm("sticky", client, played, [], 0) for client, played in (("direct", direct), ("ocpool", through))]
    found = effect(*arms, direct, through, 0)
    assert found.bad_starts == (5, 0)
    assert found.on_routes
    assert not found.none


def test_an_uneven_split_is_told_from_chance():
    """Both ways round, and where there is nothing to split."""
    assert split_p(6, 15, 0, 15) == pytest.approx(0.0084, abs=0.0001)
    assert split_p(0, 15, 6, 15) == split_p(6, 15, 0, 15)
    assert split_p(3, 15, 3, 15) > 0.5
    assert split_p(0, 15, 0, 15) == 1.0
    assert split_p(0, 0, 3, 15) == 1.0


def test_the_overhead_is_what_is_left_after_the_median_of_the_direct_way():
    """Less than nothing is nothing."""
    assert overhead([1.0, 1.0, 9.0], [2.0, 3.0, 4.0]) == Overhead(2.0, pytest.approx(2.9), 3)
    assert overhead([5.0], [1.0]) == Overhead(0.0, 0.0, 1)
