"""Did routing help? From events to a table, a median gain with its interval, and a sentence that claims no more."""

import io
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from proxy.cli.stats import show
from proxy.insight.contrast import CONVERSATIONS, Days, contrast
from proxy.insight.effectiveness import DECISIONS, ROWS, Effectiveness
from proxy.insight.intervals import Interval, fewer, interval, median, ratio
from proxy.insight.rotation import RotatingFile
from proxy.insight.samples import Sample
from proxy.insight.stored import effectiveness

NOW = 1_796_060_000_000


def decision(event="pin", *, at=NOW, natural="rejected", gain=None, profile="throughput", **more):
    known = {"provider": "opencode-go", "model": "m", "conversation": "c" * 16, "source": "probe"}
    return {"at": at, "event": event, **known, "profile": profile, "natural": natural, "gain": gain, **more}


def request(conversation, *, tps=100.0, first_ms=1_500.0, output=201, at=NOW, **more):
    total = first_ms + (output - 1) / tps * 1000
    known = {"status": 200, "ended": "complete", "model": "m", "conversation": conversation}
    tokens = {"input": 9_000, "cached": 0, "output": output}
    return {
        "at": at,
        "event": "request",
        **known,
        "first_event_ms": first_ms,
        "total_ms": total,
        "tokens": tokens,
    } | more


def facts(*events, since=None):
    return Effectiveness(since).feed(events).facts()


def test_the_plugins_table_comes_out_as_its_document_shows_it():
    """decisions 2, kept natural 1, switched 1; natural route: ok 1, rejected 1, dead 0."""
    found = facts(
        decision("pin", natural="rejected", natural_tps=0, chosen_tps=163, conversation="0820e3ded68e"),
        decision("keep-natural", natural="ok", natural_tps=143, chosen_tps=143, gain=1.0, source="natural"),
    )
    assert found["decisions"] == {
        "total": 2,
        "kept_natural": 1,
        "switched": 1,
        "skipped": 0,
        "sources": {"probe": 1, "natural": 1},
    }
    assert found["natural"] == {"ok": 1, "rejected": 1, "dead": 0, "unmeasured": 0}
    assert found["rescued"] == {"rejected": 1, "dead": 0}
    assert [(row["natural_tps"], row["chosen_tps"], row["gain"]) for row in found["rows"]] == [
        (0, 163, None),
        (143, 143, 1.0),
    ]


@pytest.mark.parametrize(
    ("gains", "word"),
    [
        ([], "unknown"),
        ([1.4, 2.0], "unknown"),
        ([1.8, 2.2, 1.9, 2.5, 1.7, 2.1, 2.0], "helps"),
        ([0.9, 1.1, 1.05, 0.95, 1.2, 0.8, 1.0, 1.02], "none"),
        ([0.4, 0.5, 0.6, 0.5, 0.55, 0.45], "harms"),
    ],
)
def test_the_effect_is_what_the_gains_say(gains, word):
    found = facts(*(decision(gain=gain) for gain in gains), decision(natural="dead"))
    assert found["effect"] == word
    assert found["gain"]["throughput"]["measured"] == len(gains)
    assert ("No effect" in found["says"]) == (word == "none")


def test_nothing_switched_is_no_effect_and_nothing_decided_is_unknown():
    assert facts(decision("keep-natural", natural="ok", gain=1.0))["effect"] == "none"
    assert facts()["effect"] == "unknown"
    assert facts(request("c1"))["says"] == "No decision was made in this window."


def test_only_the_window_counts_but_the_mode_that_was_in_force_before_it_is_known():
    events = [
        {"at": NOW - 10, "event": "started", "mode": "observe"},
        decision(at=NOW - 5),
        request("c1", at=NOW + 1),
        {"at": NOW + 2, "event": "reloaded", "mode": "route"},
        request("c2", at=NOW + 3),
        decision(at=NOW + 4),
    ]
    found = facts(*events, since=NOW)
    assert found["decisions"]["total"] == 1
    assert (found["days"]["without"]["conversations"], found["days"]["with"]["conversations"]) == (1, 1)
    assert (found["from"], found["to"], found["events"]) == (NOW + 1, NOW + 4, 4)


def probe(kind="fast", *, upstream_ms=900.0, **more):
    return {"at": NOW, "event": "probe", "kind": kind, "upstream_ms": upstream_ms, "again": False, **more}


def routed(upstream_ms, **more):
    return request("c1", upstream_ms=upstream_ms, route="spare", stream=True, verdict="ok", **more)


def test_new_ids_are_what_natural_ones_would_have_met_and_turns_tell_what_choosing_is_worth():
    """Half of all ids are slow, and turns on chosen ones are not: that is a help, although no natural was measured."""
    found = facts(
        *(probe() for _ in range(20)),
        *(probe("timeout", upstream_ms=None, wall_ms=10_000.0) for _ in range(20)),
        *(decision(source="lease", natural="unmeasured", profile="latency") for _ in range(20)),
        *(routed(1_200.0) for _ in range(60)),
    )
    assert found["routes"]["unchosen"] == {"seen": 40, "bad": 20}
    assert found["routes"]["chosen"] == {"seen": 60, "bad": 0}
    assert 30 < found["routes"]["fewer"]["low"] < 50 < found["routes"]["fewer"]["high"]
    assert found["effect"] == "helps"
    assert "0.0% of turns on chosen ids were slow or refused, and 50.0% of ids that nobody had chosen" in found["says"]


def test_where_chosen_ids_are_as_slow_as_any_there_is_no_effect_however_fast_their_probes_were():
    """The trap of a balanced gateway: what was chosen for a fast probe is no faster afterwards."""
    found = facts(
        *(probe(upstream_ms=900.0) for _ in range(40)),
        *(probe("slow", upstream_ms=7_000.0) for _ in range(10)),
        *(decision(source="lease", natural="unmeasured", profile="latency", chosen_ms=900.0) for _ in range(20)),
        *(routed(7_000.0 if number % 5 == 0 else 1_500.0) for number in range(100)),
    )
    assert (found["effect"], found["routes"]["fewer"]["effect"]) == ("none", "none")


def test_verified_spares_large_prompts_side_calls_and_natural_turns_are_no_such_evidence():
    found = facts(
        probe(again=True),
        probe("limit"),
        routed(9_000.0, tokens={"input": 30_000, "cached": 0, "output": 50}),
        routed(9_000.0, side_call=True),
        request("c1", upstream_ms=9_000.0, route="natural", stream=True),
        routed(None, first_event_ms=None),
    )
    assert [found["routes"][kind]["seen"] for kind in ("unchosen", "chosen")] == [0, 0]


def test_a_gateway_that_balances_is_said_to_leave_nothing_to_gain():
    belief = {"event": "routing", "provider": "opencode-go", "model": "m", "because": "ids move"}
    sticky, balanced = ({"at": NOW, "regime": regime, **belief} for regime in ("sticky", "balanced"))
    assert facts(sticky, balanced)["effect"] == "none"
    assert "balances every request" in facts(sticky, balanced)["says"]
    assert facts(balanced, sticky)["effect"] == "unknown"
    gains = [decision(gain=gain) for gain in (1.8, 2.2, 1.9, 2.5, 1.7, 2.1, 2.0)]
    assert "By now the gateway balances" in facts(*gains, balanced)["says"]


@pytest.mark.parametrize(
    ("counts", "bounds"),
    [((56, 70, 48, 80), (0.0524, 0.3339)), ((9, 10, 3, 10), (0.1705, 0.8090)), ((10, 10, 0, 20), (0.6791, 1.0))],
)
def test_the_difference_of_two_shares_has_newcombes_bounds(counts, bounds):
    """Method 10 of the table in his paper."""
    assert fewer(*counts)[1:] == pytest.approx(bounds, abs=0.0002)
    assert fewer(0, 0, 1, 1) is None


def days(without, within):
    """Both kinds of day, each conversation by the median of its speed."""
    events = [{"at": NOW, "event": "started", "mode": "observe"}]
    events += [request(f"o{number}", tps=tps) for number, tps in enumerate(without)]
    events += [{"at": NOW, "event": "reloaded", "mode": "route"}]
    events += [request(f"r{number}", tps=tps) for number, tps in enumerate(within)]
    return facts(*events)["days"]


def test_days_with_routing_are_compared_by_the_median_conversation():
    chance = random.Random(3)
    slow, fast = ([chance.gauss(middle, 8) for _ in range(40)] for middle in (70, 110))
    found = days(slow, fast)
    assert found["faster"]["effect"] == "helps"
    assert found["faster"]["low"] > 1.3
    assert days(fast, slow)["faster"]["effect"] == "harms"
    assert days(slow, [chance.gauss(70, 8) for _ in range(40)])["faster"]["effect"] == "none"
    assert days(slow[:3], fast)["faster"]["effect"] == "unknown"
    assert found["without"]["tps"]["median"] == pytest.approx(median(slow), rel=0.001)


def test_waits_are_compared_too_and_a_shorter_one_is_a_help():
    without, within = Days(), Days()
    for number in range(20):
        without.request(f"c{number}", request("x", first_ms=20_000.0 + number))
        within.request(f"c{number}", request("x", first_ms=2_000.0 + number))
    assert contrast(without, within)["sooner"]["effect"] == "helps"


def test_a_turns_own_line_knows_its_speed_better_than_the_requests():
    found = Days()
    found.request("c1", request("c1", tps=10.0))
    found.turn("c1", {"tps": 120.0})
    found.turn("c1", {"tps": 999.0, "estimated": True})
    assert found.speeds() == [120.0]


def test_side_calls_bypassed_and_broken_requests_say_nothing():
    found = facts(
        request("c1", side_call=True), request("c2", bypassed=True), request("c3", status=429), request("c4", ended="x")
    )
    assert found["days"]["with"]["conversations"] == 0


def test_what_a_line_holds_otherwise_than_expected_is_passed_over():
    """The log may have been written by another version, or by hand."""
    found = facts(
        {"event": "pin"},
        {"at": "soon", "event": "pin"},
        {"at": NOW, "event": 7},
        decision(natural=["x"] and "odd", gain="much", source=3),
        decision(gain=-1.0, profile="other"),
        request("c1", tokens="many", total_ms=None),
        {"at": NOW, "event": "probe", "tokens": "few"},
        {"at": NOW, "event": "started", "mode": 5},
    )
    assert found["natural"]["unmeasured"] == 1
    assert found["probes"]["sent"] == 1
    assert found["gain"]["throughput"]["measured"] == 0


ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(
        ["ok", "dead", "latency", "throughput", "sticky", "balanced", "route", "spare", "fast", "complete"]
    ),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["input", "cached", "output"]), inner),
    max_leaves=4,
)
FACTS = (
    *("conversation", "model", "provider", "mode", "profile", "source", "natural", "gain", "regime", "because", "kind"),
    *("tokens", "tps", "first_event_ms", "total_ms", "upstream_ms", "route", "stream", "status", "ended", "again"),
    *("natural_tps", "chosen_tps", "natural_ms", "chosen_ms", "verdict", "estimated", "confidence", "at"),
)
NAMES = st.sampled_from([*DECISIONS, "request", "turn", "routing", "probe", "probe-round", "evict", "started"])


@settings(max_examples=300)
@given(st.lists(st.tuples(NAMES, st.dictionaries(st.sampled_from(FACTS), ODD)), max_size=8))
def test_no_log_whatsoever_makes_the_figures_fail(events):
    """Lines that are JSON, but not of ours: from another version, or damaged."""
    told = facts(*({"at": NOW, **line, "event": name} for name, line in events))
    assert told["effect"] in {"helps", "harms", "none", "unknown"}
    show(told | {"broken": 0}, Console(file=io.StringIO()))


def test_probes_and_evictions_are_counted():
    names = ("probe", "probe", "probe-reject", "probe-dead", "probe-round", "evict")
    found = facts(*({"at": NOW, "event": name, "tokens": 9} for name in names))
    assert found["probes"] == {"sent": 2, "tokens": 18, "rejected": 1, "dead": 1, "rounds": 1}
    assert found["evicted"] == 1


def test_its_memory_is_bounded_however_long_the_log_is():
    """So many gains, rows and conversations are kept, and no more."""
    made = Effectiveness()
    chance = random.Random(1)

    def stream(count):
        for number in range(count):
            yield decision(gain=1.0 + chance.random(), source=f"s{number % 4}")
            yield request(f"{number:016x}", tps=50 + chance.random())

    found = made.feed(stream(7_000)).facts()
    assert len(made._gains["throughput"].values) == 5_000
    assert len(found["rows"]) == ROWS
    assert found["days"]["with"]["conversations"] == CONVERSATIONS
    assert found["gain"]["throughput"]["measured"] == 7_000
    assert found["gain"]["throughput"]["median"] == pytest.approx(1.5, abs=0.03)


def test_a_log_on_disk_is_read_with_its_rotated_files_after_a_restart(tmp_path):
    log = RotatingFile(tmp_path / "events.jsonl", 20_000, 50)
    for number in range(500):
        log.write(json.dumps(decision(gain=2.0, at=NOW + number)).encode() + b"\n")
    log.write(b'{"at": 1, "event": "pi\n')
    log.close()
    assert len(list(tmp_path.glob("events.jsonl*"))) > 3
    found = effectiveness(tmp_path / "events.jsonl")
    assert (found["decisions"]["switched"], found["broken"]) == (500, 1)
    assert effectiveness(tmp_path / "events.jsonl", NOW + 490)["decisions"]["switched"] == 10
    assert effectiveness(tmp_path / "none.jsonl")["events"] == 0


def test_an_interval_covers_the_truth_as_often_as_it_says():
    chance = random.Random(11)
    held = sum(interval([chance.gauss(5, 2) for _ in range(25)]).holds(5.0) for _ in range(60))
    assert 51 <= held <= 60


def test_of_few_values_there_are_no_bounds():
    assert interval([]) is None
    assert interval([1.0, 2.0]) == Interval(1.5, None, None)
    assert interval([1.0, 2.0]).holds(99.0)
    assert ratio([1.0], []) is None
    assert ratio([1.0] * 9, [0.0] * 9) is None
    assert ratio([2.0] * 9, [1.0] * 9) == Interval(2.0, 2.0, 2.0)


def test_the_same_values_have_the_same_interval():
    values = [random.Random(number).random() for number in range(30)]
    assert interval(values) == interval(list(values))


def test_a_sample_keeps_all_of_few_and_a_fair_share_of_many():
    few, many = Sample(10), Sample(100)
    for number in range(8):
        few.add(number)
    for number in range(10_000):
        many.add(number)
    assert few.values == list(range(8))
    assert len(many.values) == 100
    assert many.count == 10_000
    assert 3_500 < median(many.values) < 6_500
