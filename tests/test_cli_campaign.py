"""The campaign: a few seeds of it, its claims, its document, and how a play of it compares with one over sockets."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from proxy.cli.campaign.claims import claims
from proxy.cli.campaign.days import BURSTS, EPOCH_MS, EXTENSION, MODEL, OCPOOL, OFF, POLICIES, STEADY, Day, days
from proxy.cli.campaign.figures import figures
from proxy.cli.campaign.plots import waits
from proxy.cli.campaign.report import document, effect, write
from proxy.cli.campaign.routed import Routed
from proxy.cli.campaign.running import Job, Results, campaign, play
from proxy.cli.campaign.sockets import LATER_MS, Repeat, Small, repeats, shortened, trace, virtually
from proxy.simulator.clients import PI
from proxy.simulator.played import Play
from proxy.simulator.traces import conversations
from proxy.simulator.world import World

SEEDS = (1,)
MINUTE = 60_000.0


@pytest.fixture(scope="module")
def results():
    """Every scenario that a claim is about, much shortened, with one seed."""
    names = ("sticky", "balanced", "flip", "flip-back", "hops", "limits", "overload", "legacy")
    played = [Day(name, STEADY, 34 if "flip" in name else 12, 1) for name in names]
    return campaign([*played, Day("sticky", BURSTS, 9, 3)], SEEDS, workers=1)


def test_two_plays_of_one_job_are_the_same():
    """Whatever process plays it: ids and draws are the seed's."""
    job = Job(Day("overload", STEADY, 6, 1), OCPOOL, 3)
    assert play(job) == play(job)


def test_all_policies_meet_the_same_conversations(results):
    for (day, _), plays in results.plays.items():
        assert {one.turns for one in plays} == {one.turns for one in results.of(day.scenario, day.arrivals, OFF)}
        assert [one.seed for one in plays] == list(SEEDS)


def test_the_short_campaign_keeps_its_claims(results):
    """The same claims as of the whole one; twenty seeds are played by `make scenarios`."""
    found = claims(results)
    assert {claim.scenario for claim in found} == {day.scenario for day, _ in results.plays}
    by_chance = ("p95", "cache hit rate")  # of so few turns
    missed = [claim for claim in found if not claim.held and not claim.says.startswith(by_chance)]
    assert not missed


def test_off_and_only_off_sends_no_probe_and_moves_nothing(results):
    for (_, policy), plays in results.plays.items():
        assert (sum(one.probes for one in plays) == 0) == (policy == OFF)
        if policy == OFF:
            assert not any(one.moved for one in plays)


def test_the_document_has_a_part_for_each_scenario_with_a_row_for_each_policy(results):
    text = document(results, [])
    parts = {part.split("\n", 1)[0]: part for part in text.split("\n## ")}
    for name in ("sticky", "balanced", "flip", "flip-back", "hops", "limits", "overload", "legacy"):
        assert len(re.findall(r"^\|.* \| [\d.]+ s \| [\d.]+ s \|", parts[name], re.MULTILINE)) == len(POLICIES)
    assert "**No effect**" not in parts["sticky"]


@pytest.mark.parametrize(
    ("factors", "none"),
    [
        ((0.97, 1.02, 1.03, 0.99, 1.0, 1.02, 0.98, 1.01), True),
        ((0.7, 0.75, 0.8, 0.72, 0.71, 0.69, 0.77, 0.74), False),
        ((1.3, 1.35, 1.2, 1.4, 1.25, 1.3, 1.33, 1.28), False),
    ],
)
def test_it_says_no_effect_where_there_is_none_and_only_there(results, factors, none):
    """A difference that the seeds do not agree about is chance; one that they agree about is told, for better or worse."""
    one = results.of("balanced", STEADY, OFF)[0]
    made = Results(range(len(factors)))
    day = Day("balanced", STEADY, 12, 1)
    made.plays[day, OFF] = [one] * len(factors)
    made.plays[day, OCPOOL] = [replace(one, p50_ms=one.p50_ms * by, p95_ms=one.p95_ms * by) for by in factors]
    assert ("**No effect**" in effect(made, "balanced")) == none


def test_the_plots_are_well_formed(results, tmp_path):
    written = write(results, [], tmp_path)
    plots = [path for path in written if path.suffix == ".svg"]
    assert len(plots) == 8
    for path in plots:
        lines = [one for one in ET.parse(path).getroot() if one.tag.endswith("polyline")]
        assert len(lines) == len(POLICIES)


def test_a_curve_rises_from_left_to_right():
    root = ET.fromstring(waits("w", {"a": [300.0, 900.0, 40_000.0], "b": [400.0, 500.0, 600.0]}))
    for line in (one for one in root if one.tag.endswith("polyline")):
        points = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
        assert points == sorted(points, key=lambda point: (point[0], -point[1]))


def test_a_flip_is_noticed_by_the_requests_after_it():
    """What was believed before it does not count."""
    day = Day("flip", STEADY, 45, 1)
    found = play(Job(day, OCPOOL, 1))
    assert found.noticed is not None
    assert 1 <= found.noticed <= 60
    assert play(Job(day, EXTENSION, 1)).noticed is None


def test_the_pool_is_driven_as_the_daemon_drives_it():
    """Its cap, its spacing and its exclusiveness hold in virtual time, too."""
    policy = Routed(MODEL, 5)
    played = Play(World.of("sticky", 5, epoch_ms=EPOCH_MS), policy)
    played.run(conversations(5, 120, every_ms=30_000.0, turns=(1, 2), clients=(PI,)))
    sent = [probe.at_ms for probe in played.probes]
    assert max(sum(0 <= later - at < 3_600_000 for later in sent) for at in sent) <= 40
    assert min(after - before for before, after in zip(sent, sent[1:], strict=False)) >= 750
    owners = {}
    for turn in played.turns:
        assert owners.setdefault(turn.session, turn.number) == turn.number


def test_a_spare_spent_on_an_outage_is_counted():
    day = Day("overload", STEADY, 20, 1)
    assert play(Job(day, OCPOOL, 1)).drained is not None
    assert play(Job(day, OFF, 1)).drained is None


def test_the_days_of_all_scenarios_can_be_made():
    for name in ("sticky", "faults"):
        for day in days(name):
            assert len(day.trace(1)) == day.count


def test_figures_of_a_play_without_turns_are_zero():
    empty = Play(World.of("sticky", 1, epoch_ms=EPOCH_MS), Routed(MODEL, 1))
    found = figures(Day("sticky", STEADY, 0, 0), 1, empty)
    assert (found.turns, found.p95_ms, found.fast_share) == (0, 0.0, 1.0)


def test_two_plays_agree_within_their_bounds_and_not_beyond():
    one = Small(1_500.0, 2_200.0, 0.0, 0.7, 20, 0)
    assert Repeat(
        "x", (one, Small(1_600.0, 2_500.0, 0.02, 0.7, 25, 0)), Small(1_700.0, 2_900.0, 0.05, 0.72, 29, 1)
    ).agrees
    for other in (
        Small(2_500.0, 2_200.0, 0.0, 0.7, 20, 0),
        Small(1_500.0, 9_000.0, 0.0, 0.7, 20, 0),
        Small(1_500.0, 2_200.0, 0.2, 0.7, 20, 0),
        Small(1_500.0, 2_200.0, 0.0, 0.5, 20, 0),
        Small(1_500.0, 2_200.0, 0.0, 0.7, 50, 0),
        Small(1_500.0, 2_200.0, 0.0, 0.7, 20, 9),
    ):
        assert not Repeat("x", (one,), other).agrees


def test_a_flip_is_brought_within_a_short_play():
    assert [phase.from_ms for phase in shortened("flip").phases] == [0.0, 25 * MINUTE]
    assert [one.p50_ms > 0 for one in virtually("flip", 1, 4, draws=2)] == [True, True]


@pytest.mark.parametrize("draw", [74, 107, 238, 253])
def test_whoever_began_badly_after_a_cycle_of_slow_ids_alone_does_not_stay_there(draw):
    """Draws in which the first six ids are all slow: one in 64. The second conversation begins on a bad natural id."""
    play = Play(World.of(shortened("sticky"), 1, epoch_ms=EPOCH_MS), Routed(MODEL, draw))
    play.run(replace(one, start_ms=one.start_ms + draw * LATER_MS) for one in trace(1))
    kinds = [note.facts["kind"] for _, note in play.policy.notes if note.name == "probe"]
    assert kinds[:6] == ["timeout"] * 6
    turns = [turn for turn in play.turns if turn.number == 1]
    assert turns[0].bad
    assert len(turns) == 7
    assert sum(turn.bad for turn in turns) <= 3


async def test_a_play_over_sockets_tells_how_well_the_machine_kept_up(tmp_path):
    """Real ms, of which each is many of the clock's."""
    [found] = await repeats(["limits"], 1, tmp_path, scale=400.0, count=2)
    usual, worst = found.late_ms
    assert 0.0 < usual < worst < 10_000.0
    assert f"late by {usual:.1f} ms" in found.says()


@pytest.mark.slow
async def test_a_play_over_sockets_agrees_with_the_same_in_virtual_time(tmp_path):
    """One seed of each scenario; about six minutes on a machine that is quiet."""
    names = ("sticky", "balanced", "hops", "limits", "overload", "legacy", "outage")
    found = await repeats(names, 1, tmp_path)
    assert [one.scenario for one in found if not one.agrees] == []
