"""Conversations in virtual time: clients wait, retry and give up as they do on the wire, and nothing is drawn twice."""

import pytest

from proxy.simulator.baselines import Off
from proxy.simulator.clients import PI, SDK
from proxy.simulator.endpoints import NATIVE_1, RELAY
from proxy.simulator.limits import Window
from proxy.simulator.played import Play
from proxy.simulator.policies import Probe
from proxy.simulator.scenarios import MINUTE, SCENARIOS, Phase, Scenario
from proxy.simulator.timeline import Timeline
from proxy.simulator.traces import conversations
from proxy.simulator.world import World

MODEL = "deepseek-v4.1-flash"
GOOD = Scenario("good", "", (Phase(((NATIVE_1, 1.0),)),))


class Probing(Off):
    """Probes a new id every minute, and makes every first turn wait for one."""

    def __init__(self) -> None:
        super().__init__(MODEL)
        self.heard = []
        self.asked = 0
        self.due = 0.0
        self.waited = set()

    def before(self, asked, now):
        if asked.turn or asked.session in self.waited:
            return None
        self.waited.add(asked.session)
        return Probe(f"before-{asked.session}", 1, stream=False, timeout_ms=10_000.0)

    def probe(self, now):
        if now < self.due:
            return None
        self.due = now + MINUTE
        self.asked += 1
        return Probe(f"p-{self.asked}", 1, stream=False, timeout_ms=10_000.0)

    def probed(self, probe, answer, now):
        self.heard.append((probe.session, answer.status, answer.took_ms))


def played(scenario, policy=None, *, count=6, seed=1, **more):
    play = Play(World.of(scenario, seed, epoch_ms=10.0**12), policy or Off(MODEL))
    play.run(conversations(seed, count, every_ms=4 * MINUTE, **({"clients": (PI,)} | more)))
    return play


def test_routines_run_in_the_order_of_their_instants_and_what_is_beside_them_ends_with_them():
    time, seen = Timeline(5.0), []

    def routine(name, *waits):
        for wait_ms in waits:
            seen.append((name, time.now))
            yield wait_ms
        seen.append((name, time.now))

    def endless():
        while True:
            seen.append(("beside", time.now))
            yield 10.0

    time.run([(6.0, routine("a", 3.0, 20.0)), (7.0, routine("b", 1.0))], [endless()])
    assert seen == [
        ("beside", 5.0),
        ("a", 6.0),
        ("b", 7.0),
        ("b", 8.0),
        ("a", 9.0),
        ("beside", 15.0),
        ("beside", 25.0),
        ("a", 29.0),
    ]


def test_every_turn_is_played_once_and_in_its_order():
    play = played("sticky")
    trace = conversations(1, 6, every_ms=4 * MINUTE, clients=(PI,))
    for conversation in trace:
        turns = [one for one in play.turns if one.number == conversation.number]
        assert [one.turn for one in turns] == list(range(len(conversation.turns)))
        assert turns[0].at_ms == conversation.start_ms
        for before, after in zip(turns, turns[1:], strict=False):
            gap = after.at_ms - before.at_ms - before.ttfb_ms
            assert gap > conversation.waits_ms(after.turn)  # the answer's own length comes on top


def test_the_same_seed_plays_the_same():
    assert played("balanced").turns == played("balanced").turns
    assert played("balanced", seed=2).turns != played("balanced").turns


def test_a_policy_that_only_probes_changes_nothing_of_what_later_turns_meet():
    """Probes of its own cost time where a turn waits for them, and shift no draw of a sticky world."""
    met = [
        sorted((one.number, one.turn, one.bad, one.session) for one in played("sticky", policy).turns)
        for policy in (Off(MODEL), Probing())
    ]
    assert met[0] == met[1]


def test_a_turn_waits_for_the_probe_before_it():
    play = played(GOOD, Probing(), count=2)
    firsts = [one for one in play.turns if one.turn == 0]
    assert all(one.ttfb_ms > 1_800 for one in firsts)
    assert sum(probe.waited_for for probe in play.probes) == 2
    assert all(one.ttfb_ms < 6_000 for one in play.turns)


def test_a_probe_that_takes_too_long_is_given_up():
    slow = Scenario("slow", "", (Phase(((RELAY, 1.0),)),))
    policy = Probing()
    play = played(slow, policy, count=1)
    assert {(status, took) for _, status, took in policy.heard} == {(None, 10_000.0)}
    assert all(probe.tokens == 0 for probe in play.probes)


def test_a_prompt_that_was_read_is_cached_in_the_next_turn():
    turns = [one for one in played(GOOD).turns if one.number == 0]
    assert turns[0].cached_tokens == 0
    assert all(one.cached_tokens > 0.4 * one.prompt_tokens for one in turns[1:])


@pytest.mark.parametrize(("client", "attempts"), [(PI, 4), (SDK, 3)])
def test_a_client_retries_as_often_as_it_does_and_then_gives_up(client, attempts):
    """In an outage all of its attempts fail, and the turn's wait is that of all."""
    away = Scenario("away", "", GOOD.phases, windows=(Window("unavailable", 0, 10 * 3_600_000.0),))
    turns = played(away, count=1, clients=(client,)).turns
    assert all(not one.served and one.attempts == attempts for one in turns)
    assert all(one.ttfb_ms > 1_000 for one in turns)


def test_a_limit_of_the_account_is_not_retried_by_a_client_that_reads_it():
    limited = Scenario("limited", "", GOOD.phases, windows=(Window("GoUsageLimitError", 0, 10 * 3_600_000.0),))
    assert all(one.attempts == 1 for one in played(limited, count=1).turns)


def test_replies_that_break_are_retried_or_given_up_and_nothing_hangs():
    turns = played("faults", count=10).turns
    assert sum(one.served for one in turns) > 0.8 * len(turns)
    assert any(one.attempts > 1 for one in turns)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_can_be_played(name):
    play = played(name, count=3)
    assert play.turns
    assert not play.probes
    assert not any(one.moved for one in play.turns)
