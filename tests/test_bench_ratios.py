"""What the check of CPU time makes of its rounds, and which files of ratios it takes."""

import json

import pytest

from tests.bench import ratios
from tests.bench.check import concluded
from tests.bench.ratios import FIGURES, judge, settled

COMMITTED = {"CPU per request": 0.4, "CPU per event": 0.8}


def lines(rounds):
    return [one.line() for one in judge(COMMITTED, rounds)]


def test_the_best_round_counts():
    rounds = [{"CPU per request": 0.9, "CPU per event": 0.7}, {"CPU per request": 0.45, "CPU per event": 1.4}]
    assert [one.best for one in judge(COMMITTED, rounds)] == [0.45, 0.7]
    assert not any(one.over for one in judge(COMMITTED, rounds))


def test_a_quarter_more_is_within_and_anything_beyond_is_over_and_named():
    assert not judge(COMMITTED, [{"CPU per request": 0.5, "CPU per event": 1.0}])[0].over
    found = judge(COMMITTED, [{"CPU per request": 0.501, "CPU per event": 1.0}])
    assert [one.over for one in found] == [True, False]
    assert found[0].line() == "CPU per request: 0.50 of the plain aiohttp proxy's; committed 0.40, at most 0.50: OVER"


def test_only_a_figure_that_is_over_fails_the_check(capsys):
    assert concluded(judge(COMMITTED, [{"CPU per event": 0.8}])) == 0
    assert concluded(judge(COMMITTED, [{"CPU per request": 0.4, "CPU per event": 1.1}])) == 1
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if line.endswith("OVER")] == [said[3]]
    assert said[3].startswith("bench: CPU per event: 1.10 ")


@pytest.mark.parametrize("rounds", [[], [{}], [{"CPU per event": 0.8}, {}]])
def test_what_others_disturbed_in_every_round_is_not_checked_and_not_over(rounds):
    assert not judge(COMMITTED, rounds)[0].over
    assert lines(rounds)[0] == "CPU per request: not checked, other processes were busy in every round"
    assert not settled(COMMITTED, rounds)


def test_no_more_rounds_are_needed_once_every_figure_has_been_within():
    over = {"CPU per request": 0.9, "CPU per event": 0.7}
    assert not settled(COMMITTED, [over])
    assert settled(COMMITTED, [over, {"CPU per request": 0.4}])


def test_what_is_written_is_the_median_and_is_read_again(tmp_path):
    path = tmp_path / "ratios.json"
    name = next(iter(FIGURES))
    made = ratios.write([{name: 0.5}, {name: 0.9}, {}, {name: 0.4}], path)
    assert made == {name: 0.5}
    assert ratios.read(path) == made


@pytest.mark.parametrize(
    "held", [[], {"CPU": 1.0}, {"CPU per event": 0}, {"CPU per event": "1"}, {"CPU per event": True}]
)
def test_another_file_is_refused(tmp_path, held):
    path = tmp_path / "ratios.json"
    path.write_text(json.dumps(held))
    with pytest.raises(ValueError, match=r"ratios\.json"):
        ratios.read(path)


def test_every_figure_is_committed():
    assert ratios.read().keys() == FIGURES.keys()
