"""The policies to compare with, held to what their documents say."""

from dataclasses import replace

from proxy.simulator.baselines import Extension, Off
from proxy.simulator.clients import PI
from proxy.simulator.played import Play
from proxy.simulator.policies import Answer, Asked
from proxy.simulator.rounds import Plugin
from proxy.simulator.scenarios import HOUR, MINUTE
from proxy.simulator.traces import conversations
from proxy.simulator.world import Ask, World

MODEL = "deepseek-v4.1-flash"
NOW = 1_796_000_000_000.0
SECOND = 1_000.0


def asked(session="c1", turn=0):
    return Asked(session, turn, MODEL, 6_000, 24_000)


def answer(upstream_ms=900.0, *, status=200, tps=110.0, first_ms=None, body_id="hex", tokens=100):
    """An answer of a healthy endpoint, with what matters set by hand."""
    world = World.of("sticky")
    session = next(str(n) for n in range(50) if not world.plan(_ask(str(n)), 0).bad)
    plan = replace(world.plan(_ask(session), 0), upstream_ms=upstream_ms, completion_tokens=tokens, body_id=body_id)
    first = upstream_ms + 50 if first_ms is None else first_ms
    last = first + (tokens - 1) / tps * 1000
    return Answer(
        plan, status, headers=True, head_ms=upstream_ms, first_ms=first, last_ms=last, complete=True, took_ms=last
    )


def _ask(session):
    from proxy.simulator.prompts import prompt_of

    return Ask(session, MODEL, prompt_of(b"OK"))


def stocked(count=3):
    """An extension with spares, found in its first cycle."""
    policy = Extension(MODEL, 1)
    policy.session(asked("warm"), NOW)
    at = NOW + 15 * SECOND
    for number in range(count):
        probe = policy.probe(at)
        policy.probed(probe, answer(900.0 + number), at)
    return policy, at


def test_off_leaves_every_conversation_on_its_own_id():
    policy = Off(MODEL)
    assert policy.session(asked(), NOW) == "c1"
    assert policy.probe(NOW) is policy.before(asked(), NOW) is policy.again(asked(), "c1", answer(), NOW) is None


def test_the_extension_fills_its_pool_fifteen_seconds_after_the_first_start_and_stops_at_three():
    policy = Extension(MODEL, 1)
    assert policy.session(asked(), NOW) == "c1"
    assert policy.probe(NOW + 14 * SECOND) is None
    policy, at = stocked()
    assert policy.probe(at) is None
    assert policy.probe(at + HOUR / 60) is None


def test_the_extension_takes_the_fastest_fresh_spare_and_keeps_it_for_the_conversation():
    policy, at = stocked()
    taken = policy.session(asked(), at)
    assert taken != "c1"
    assert policy.session(asked(turn=1), at + MINUTE) == taken
    assert policy.session(asked("c2"), at) not in {taken, "c2"}
    assert policy.probe(at + 15 * SECOND) is not None


def test_the_extension_never_hands_an_id_out_twice():
    policy, at = stocked()
    assert len({policy.session(asked(f"c{n}"), at) for n in range(6)}) == 6


def test_the_extension_verifies_a_stale_spare_before_new_ids_and_drops_it_when_it_is_slow():
    policy, at = stocked(1)
    later = at + 31 * MINUTE
    probe = policy.probe(later)
    assert probe.again
    policy.probed(probe, answer(9_000.0), later)
    assert policy.session(asked(), later) == "c1"


def test_the_extension_retires_at_eight_seconds_at_a_429_and_at_the_second_of_two_strikes():
    for outcomes in ([answer(8_000.0)], [answer(status=429)], [answer(6_000.0), answer(6_500.0)]):
        policy, at = stocked()
        taken = policy.session(asked(), at)
        for one in outcomes:
            assert policy.session(asked(turn=1), at) == taken
            policy.headed(asked(turn=1), taken, one, at)
        assert policy.session(asked(turn=2), at) != taken


def test_the_extension_forgets_a_strike_after_a_healthy_turn():
    policy, at = stocked()
    taken = policy.session(asked(), at)
    for upstream_ms in (6_000.0, 900.0, 6_000.0, 900.0):
        policy.headed(asked(turn=1), taken, answer(upstream_ms), at)
    assert policy.session(asked(turn=2), at) == taken


def test_the_extension_stops_probing_for_good_when_its_key_is_refused_and_for_a_while_when_told():
    policy, at = stocked(0)
    policy.probed(policy.probe(at), answer(status=401), at)
    assert policy.probe(at + HOUR) is None


def test_the_plugin_probes_the_natural_id_first_and_keeps_it_when_it_is_admissible():
    policy = Plugin(MODEL, 1)
    probe = policy.before(asked(), NOW)
    assert (probe.session, probe.max_tokens, probe.stream) == ("c1", 96, True)
    policy.probed(probe, answer(tps=80.0), NOW)
    assert policy.before(asked(), NOW) is None
    assert policy.session(asked(), NOW) == "c1"


def test_the_plugin_leases_the_best_of_four_when_the_natural_id_is_no_good():
    policy = Plugin(MODEL, 1)
    speeds = [20.0, 90.0, 120.0, 75.0]
    probes = []
    for tps in speeds:
        probes.append(policy.before(asked(), NOW))
        policy.probed(probes[-1], answer(tps=tps), NOW)
    assert policy.before(asked(), NOW) is None
    assert policy.session(asked(), NOW) == probes[2].session
    # what was left over is leased before new ids are tried
    other = asked("c2")
    policy.probed(policy.before(other, NOW), answer(tps=10.0), NOW)
    assert policy.before(other, NOW) is None
    assert policy.session(other, NOW) == probes[1].session


def test_the_plugin_stops_a_round_at_its_target():
    policy = Plugin(MODEL, 1)
    policy.probed(policy.before(asked(), NOW), answer(tps=20.0), NOW)
    policy.probed(policy.before(asked(), NOW), answer(tps=160.0), NOW)
    assert policy.before(asked(), NOW) is None


def test_the_plugin_corrects_a_bad_estimate_once():
    policy = Plugin(MODEL, 1)
    policy.probed(policy.before(asked(), NOW), answer(tps=100.0), NOW)
    assert policy.before(asked(), NOW) is None
    policy.ended(asked(), "c1", answer(tps=55.0), NOW)
    again = policy.before(asked(turn=1), NOW)
    assert again is not None
    policy.probed(again, answer(tps=100.0), NOW)
    assert policy.before(asked(turn=1), NOW) is None
    policy.ended(asked(turn=1), "c1", answer(tps=55.0), NOW)
    assert policy.before(asked(turn=2), NOW) is None


def test_the_plugin_moves_no_session_that_is_locked_but_for_a_429():
    policy = Plugin(MODEL, 1)
    policy.probed(policy.before(asked(), NOW), answer(tps=100.0), NOW)
    policy.before(asked(), NOW)
    for turn in range(2):
        policy.ended(asked(turn=turn), "c1", answer(tps=90.0), NOW)
    for turn in range(2, 6):
        policy.ended(asked(turn=turn), "c1", answer(tps=10.0), NOW)
    assert policy.before(asked(turn=6), NOW) is None
    policy.ended(asked(turn=6), "c1", answer(status=429), NOW)
    assert policy.before(asked(turn=6), NOW) is not None


def test_the_plugin_spends_at_most_forty_probes_an_hour():
    policy = Plugin(MODEL, 1)
    spent = 0
    for number in range(60):
        one = asked(f"c{number}")
        at = NOW + number * (MINUTE / 2)
        while (probe := policy.before(one, at)) is not None:
            spent += 1
            policy.probed(probe, answer(tps=100.0), at)
    assert spent == 40


def test_what_was_published_of_both_shows_in_play():
    """On the sticky day the extension is never on the relay once it is warm; on the balanced day it moves for nothing."""
    trace = conversations(1, 12, every_ms=4 * MINUTE, clients=(PI,))
    sticky, balanced = (Play(World.of(name, 1, epoch_ms=NOW), Extension(MODEL, 1)) for name in ("sticky", "balanced"))
    for play in (sticky, balanced):
        play.run(trace)
    assert not any(one.bad for one in sticky.turns if one.number > 1)
    assert sum(one.moved for one in balanced.turns) > 0
