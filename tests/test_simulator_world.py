"""The simulated world: statistics of each scenario, and the rules that keep it honest."""

import re
from pathlib import Path
from statistics import median, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy import simulator
from proxy.simulator.draw import Draw
from proxy.simulator.endpoints import HEALTHY, NATIVE_1, NATIVE_2, RELAY, STRICT
from proxy.simulator.faults import Fault
from proxy.simulator.limits import Window
from proxy.simulator.prompts import Prompt, PromptCaches, common_blocks, prompt_of
from proxy.simulator.scenarios import HOUR, MINUTE, SCENARIOS, Phase, Scenario, scenario_named
from proxy.simulator.world import Ask, World

MODEL = "deepseek-v4.1-flash"
TINY = prompt_of(b"OK" * 20)


def test_it_imports_nothing_of_the_product():
    """A double that shares code with what it is to judge would share its mistakes."""
    folder = Path(simulator.__file__).parent
    found = {
        name
        for file in folder.glob("*.py")
        for name in re.findall(r"^(?:from|import) ((?:proxy|pool|config)[\w.]*)", file.read_text(), re.MULTILINE)
    }
    assert found
    assert all(name.startswith("proxy.simulator") for name in found)


def ask(session: str, **more: object) -> Ask:
    return Ask(session, MODEL, **({"prompt": TINY} | more))


def probe(session: str) -> Ask:
    return ask(session, stream=False, max_tokens=1)


def ids(count: int) -> list[str]:
    return [Draw("ids").hex(str(number), 32) for number in range(count)]


def test_half_of_the_ids_are_bad_in_sticky():
    """Half of the ids land on the relay, for every seed."""
    for seed in range(20):
        bad = sum(World.of("sticky", seed).plan(ask(session), 0).bad for session in ids(1000))
        assert 430 <= bad <= 570


def test_an_id_stays_on_its_endpoint_in_sticky():
    """A day later an id is still where it was."""
    world = World.of("sticky")
    for session in ids(50):
        assert len({world.plan(ask(session), at * HOUR).endpoint.name for at in range(24)}) == 1


def test_where_an_id_lands_is_said_per_model():
    """An id that is fast for one model says nothing about another."""
    world = World.of("sticky")
    moved = [
        world.plan(ask(session), 0).bad != world.plan(Ask(session, "glm-5.3", TINY), 0).bad for session in ids(400)
    ]
    assert 140 <= sum(moved) <= 260


def test_probes_take_as_long_as_was_measured_in_sticky():
    """The relay answers in 10 to 43 s, the others in 0.8 to 2 s."""
    world = World.of("sticky")
    plans = [world.plan(probe(session), at * 60_000.0) for session in ids(300) for at in range(3)]
    good = [plan.upstream_ms for plan in plans if not plan.bad]
    bad = [plan.upstream_ms for plan in plans if plan.bad]
    assert min(good) >= 800
    assert max(good) <= 2_000
    assert min(bad) >= 10_000
    assert max(bad) <= 43_500
    assert median(bad) / median(good) > 10


def test_one_ids_latency_is_near_itself_in_sticky():
    """Within a session the spread is small beside the spread between sessions."""
    world = World.of("sticky")
    bad = [session for session in ids(100) if world.plan(ask(session), 0).bad]
    means, spreads = [], []
    for session in bad:
        seen = [world.plan(probe(session), at * 60_000.0).upstream_ms for at in range(8)]
        means.append(median(seen))
        spreads.append(pstdev(seen))
    assert median(spreads) < pstdev(means) / 3


def test_body_ids_tell_the_shard_in_sticky_alone():
    """Workers' ids begin with gw-, the relay's with chatcmpl-."""
    world = World.of("sticky")
    for session in ids(100):
        plan = world.plan(ask(session), 0)
        assert plan.body_id.startswith("chatcmpl-" if plan.bad else "gw-")


def test_an_id_says_nothing_in_balanced():
    """Every request goes to any worker, and takes from 388 ms to 7.1 s whatever its id."""
    world = World.of("balanced")
    session = ids(1)[0]
    plans = [world.plan(probe(session), at * 1_000.0) for at in range(500)]
    took = [plan.upstream_ms for plan in plans]
    assert {plan.endpoint.name for plan in plans} == {"worker-1", "worker-2", "worker-3", "worker-4"}
    assert 388 <= min(took) < 500
    assert 6_000 < max(took) <= 7_300
    assert not any(plan.bad for plan in plans)
    forms = {"gw" if plan.body_id[:3] == "gw-" else plan.body_id[:8] == "chatcmpl" for plan in plans}
    assert forms == {"gw", True, False}


def test_the_mean_of_an_id_is_the_mean_of_all_in_balanced():
    """No id is faster than another beyond chance."""
    world = World.of("balanced")
    means = [sum(world.plan(probe(s), at * 1_000.0).upstream_ms for at in range(200)) / 200 for s in ids(20)]
    assert max(means) / min(means) < 1.5


@given(st.lists(st.tuples(st.sampled_from(ids(5)), st.integers(0, 10**7), st.booleans()), max_size=30))
def test_probes_do_not_shift_the_world(asked):
    """What a session meets is the same whatever others asked before."""
    alone, crowded = World.of("balanced", 3), World.of("balanced", 3)
    for session, at, read in asked:
        plan = crowded.plan(probe(session), at)
        if read:
            crowded.served(probe(session), plan, at)
    for at in (0, 1_000, 10**6):
        assert crowded.plan(ask("mine"), at) == alone.plan(ask("mine"), at)


def test_planning_changes_nothing():
    """The same question twice has the same answer."""
    world = World.of("faults")
    for session in ids(50):
        assert world.plan(ask(session), 5.0) == world.plan(ask(session), 5.0)


def test_two_worlds_of_a_seed_agree():
    """They agree whenever each began, and another seed differs."""
    one, other = World.of("balanced", 1, epoch_ms=0), World.of("balanced", 1, epoch_ms=10**12)
    for session in ids(50):
        assert one.plan(ask(session), 7_000) == other.plan(ask(session), 10**12 + 7_000)
    third = World.of("balanced", 2)
    assert any(one.plan(ask(session), 0) != third.plan(ask(session), 0) for session in ids(10))


def test_uncached_tokens_are_read_before_the_head():
    """A long prompt takes its time once, and not while it is cached."""
    world = World(Scenario("good", "", (Phase(((NATIVE_1, 1.0),)),)))
    long = ask("a", prompt=prompt_of(b"word " * 120_000))
    first = world.plan(long, 0)
    assert first.cached_tokens == 0
    assert first.upstream_ms > long.prompt.tokens / NATIVE_1.prefill_tps * 1000
    world.served(long, first, 0)
    again = world.plan(long, 60_000)
    assert again.cached_tokens == long.prompt.tokens // 128 * 128
    assert again.upstream_ms < 2_000
    assert world.plan(long, 400_000).cached_tokens == 0


def test_a_cache_is_of_one_session_and_endpoint():
    """Another session has to read it all again, and so has one that hopped."""
    phase = Phase(((NATIVE_1, 1.0), (NATIVE_2, 1.0)), hop=0.3)
    world = World(Scenario("hops", "", (phase,)))
    prompt = prompt_of(b"word " * 10_000)
    world.served(ask("a", prompt=prompt), world.plan(ask("a", prompt=prompt), 0), 0)
    assert world.plan(ask("b", prompt=prompt), 1).cached_tokens == 0
    home = world.plan(ask("a", prompt=prompt), 0).endpoint
    seen = [world.plan(ask("a", prompt=prompt), at * 1000) for at in range(200)]
    assert all((plan.cached_tokens > 0) == (plan.endpoint is home) for plan in seen)
    assert 0.05 < sum(plan.endpoint is not home for plan in seen) / 200 < 0.3


def test_a_json_reply_has_its_generation_before_its_head():
    """Without a stream upstream;dur is the whole answer."""
    world = World.of("sticky")
    streamed, whole = world.plan(ask("a"), 0), world.plan(ask("a", stream=False), 0)
    tokens_ms = whole.completion_tokens / whole.tokens_per_s * 1000
    assert whole.upstream_ms == pytest.approx(streamed.upstream_ms + streamed.first_token_ms + tokens_ms, abs=2)
    assert whole.first_token_ms == 0
    assert streamed.total_ms >= streamed.gateway_ms + streamed.upstream_ms


def test_an_account_limit_meets_every_id_alike():
    """In its window all sessions are refused, with the same rest of time, and none outside."""
    world = World.of("limits")
    for session in ids(20):
        refused = world.plan(ask(session), 6 * MINUTE)
        assert refused.refusal.name == "GoUsageLimitError"
        assert refused.refusal.retry_after_s == 9 * 60 + 1
        assert refused.refusal.metadata["limitName"] == "5 hour"
        assert refused.endpoint is None
        assert not refused.bad
        assert world.plan(ask(session), 16 * MINUTE).refusal is None
    assert world.limits_left_ms(6 * MINUTE) == {"5 hour": 9 * MINUTE}


def test_a_rate_limit_is_of_one_model():
    """Another model is served, and the account's own limits are for Go alone."""
    world = World.of("limits")
    assert world.plan(ask("a"), 25 * MINUTE).refusal.name == "rate_limit_exceeded"
    assert world.plan(Ask("a", "glm-5.3", TINY), 25 * MINUTE).refusal is None
    assert world.plan(Ask("a", "glm-5.3", TINY, provider="opencode"), 6 * MINUTE).refusal is None


def test_windows_come_back():
    """A daily limit is there at the same minute of the next hour."""
    window = Window("RateLimitError", 5.0, 2.0, every_ms=10.0, retry_after=60)
    seen = [window.refusal("opencode", "m", None, float(at)) is not None for at in range(20)]
    assert [at for at, refused in enumerate(seen) if refused] == [5, 6, 15, 16]


def test_overload_is_the_endpoints_own():
    """Half of the ids are well served; the others are refused with one of three statuses, most of the time."""
    world = World.of("overload")
    plans = [world.plan(ask(session), at * 1_000.0) for session in ids(200) for at in range(10)]
    refused = [plan for plan in plans if plan.refusal]
    assert {plan.endpoint.name for plan in refused} == {"crowded-1", "crowded-2"}
    assert {plan.refusal.status for plan in refused} == {429, 529, 503}
    assert 0.25 < len(refused) / len(plans) < 0.45
    assert all("[overloaded]" in plan.refusal.message for plan in refused)


def test_the_whole_gateway_is_overloaded_once_an_hour():
    """Then no id helps."""
    world = World.of("overload")
    assert all(world.plan(ask(session), 41 * MINUTE).refusal is not None for session in ids(50))


def test_half_of_the_replies_break_in_faults():
    """Every kind of break comes about."""
    world = World.of("faults")
    plans = [world.plan(ask(session), at * 1_000.0) for session in ids(100) for at in range(20)]
    broken = [plan.fault for plan in plans if plan.fault]
    assert 0.45 < len(broken) / len(plans) < 0.55
    assert set(broken) == set(Fault)


def test_a_strict_endpoint_refuses_what_others_accept():
    """A repeated tool call without its thinking is a 400 there."""
    world = World(Scenario("strict", "", (Phase(((STRICT, 1.0),)),)))
    assert world.plan(ask("a", lacks_reasoning=True), 0).refusal.status == 400
    assert world.plan(ask("a"), 0).refusal is None


def test_a_scenario_may_change_in_its_course():
    """Phases are data: sticky at first, balanced later."""
    later = Phase(((NATIVE_1, 1.0), (RELAY, 1.0)), sticky=False, from_ms=1_000)
    flip = Scenario("flip", "", (Phase(((NATIVE_1, 1.0), (RELAY, 1.0))), later))
    world = World.of(flip)
    assert len({world.plan(ask("a"), at).bad for at in range(0, 1_000, 250)}) == 1
    assert len({world.plan(ask("a"), at).bad for at in range(1_000, 20_000, 250)}) == 2


def test_an_unknown_scenario_is_refused_with_the_names_there_are():
    """The message helps."""
    with pytest.raises(ValueError, match="no scenario 'rainy'; there are sticky, balanced"):
        scenario_named("rainy")
    assert all(scenario_named(name).says for name in SCENARIOS)


@given(st.text(min_size=1), st.text(min_size=1))
def test_draws_are_in_their_ranges(subject, purpose):
    """Whatever they are about."""
    draw = Draw.about(subject)
    assert 0 <= draw.fraction(purpose) < 1
    assert 2 <= draw.scaled(purpose, 2, 50) < 50
    assert 1 <= draw.along(purpose, (1, 2, 9)) <= 9
    assert draw.pick(purpose, (("a", 0.0), ("b", 1.0))) == "b"
    assert HEALTHY.of(draw, draw) > 0


@given(st.binary(max_size=5000), st.binary(max_size=5000), st.binary(max_size=5000))
def test_common_blocks_are_those_of_the_common_prefix(prefix, one, other):
    """Blocks of 512 bytes, all of them before the first difference."""
    common = len(prefix)
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        common += 1
    else:
        common += min(len(one), len(other))
    found = common_blocks(prompt_of(prefix + one).blocks, prompt_of(prefix + other).blocks)
    assert found == common // 512


def test_a_title_call_does_not_push_the_conversation_out():
    """A session's cache keeps several prefixes, and forgets the oldest."""
    caches = PromptCaches()
    prompts = [prompt_of(bytes([number]) * 2_000) for number in range(6)]
    for prompt in prompts[:4]:
        caches.store(("e", "s", "m"), prompt, 0)
    assert all(caches.cached_tokens(("e", "s", "m"), prompt, 1) == 384 for prompt in prompts[:4])
    for prompt in prompts[4:]:
        caches.store(("e", "s", "m"), prompt, 0)
    kept = [caches.cached_tokens(("e", "s", "m"), prompt, 1) for prompt in prompts]
    assert kept == [0] * 2 + [384] * 4
    caches.store(("e", "s", "m"), Prompt(3, ()), 0)
