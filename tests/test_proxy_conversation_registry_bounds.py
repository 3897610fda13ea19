"""How many conversations are kept, which are forgotten first, and that it costs none of them its identity."""

import tracemalloc

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from config.settings import Settings
from pool.eviction import batch
from proxy.conversation.body import BodyFacts
from proxy.conversation.ids import read_ids
from proxy.conversation.registry import Registry

SECRET = bytes(32)
SES = "ses_4a1b2c3d4e5fABCDEFGHIJKLMN"
PARENT = "ses_9f8e7d6c5b4aZYXWVUTSRQPONM"
ALICE, BOB = "a" * 16, "b" * 16
TURN = BodyFacts(True, "kimi-k3", True, (), None, True, 3)


def registry(**conversation):
    return Registry(limits(**conversation), SECRET, lambda _: None)


def limits(**conversation):
    return Settings.model_validate({"conversation": conversation})


def reading(*, named=None, **fields):
    return read_ids([(name.encode(), value.encode()) for name, value in fields.items()], named, None)


def resolve(known, read, scope=ALICE, now=0):
    return known.resolve(read, scope, "opencode-go", TURN, now)


def take_turn(known, read, scope=ALICE, now=0):
    resolved = resolve(known, read, scope, now)
    known.done(resolved, now, True)
    return resolved.conversation


def test_idle_conversations_are_forgotten_after_their_time():
    """One in flight is not, however long it takes."""
    known = registry(idle_ttl_ms=100)
    idle, busy = reading(named="idle"), reading(named="busy")
    take_turn(known, idle, now=0)
    running = resolve(known, busy, now=0)
    assert resolve(known, reading(named="x"), now=99).conversation
    assert len(known) == 3
    assert resolve(known, reading(named="y"), now=100).conversation
    assert known.by_label(running.conversation.label) is running.conversation
    assert len(known) == 3
    known.done(running, 500, True)
    assert resolve(known, busy, now=599).conversation is running.conversation


def test_of_idle_ones_the_longest_idle_goes_first_and_none_in_flight():
    """The bound is on their number."""
    known = registry(max_count=3)
    running = [resolve(known, reading(named=f"busy-{number}")) for number in range(5)]
    assert len(known) == 5
    done = take_turn(known, reading(named="one"))
    assert len(known) == 5
    assert known.by_label(done.label) is None
    for resolved in running:
        known.done(resolved, 1, True)
    assert len(known) == 3
    assert [known.by_label(each.conversation.label) is not None for each in running] == [False, False, True, True, True]


def test_new_limits_hold_from_the_next_request_on():
    """A reload needs no restart."""
    known = registry(max_count=10)
    for number in range(10):
        take_turn(known, reading(named=f"n-{number}"))
    known.reconfigure(limits(max_count=4))
    take_turn(known, reading(named="n-9"))
    assert len(known) == 4


def test_a_hundred_thousand_one_shot_sessions_leave_bounded_memory_and_the_active_one():
    """Entries and bytes are bounded, and a session in use survives the churn."""
    known = registry(max_count=500)
    active = reading(x_session_id=SES)
    first = take_turn(known, active)
    one_shot = reading(x_session_id="x" * 36)

    def churn(start, count):
        for number in range(start, start + count):
            value = f"0198c1f2-7a4b-7c3d-9e8f-{number:012x}"
            take_turn(known, one_shot._replace(value=value, session=value), now=number)
            if number % 400 == 0:
                assert take_turn(known, active, now=number) is first

    churn(0, 10_000)  # every bounded thing is full by now
    tracemalloc.start()
    churn(10_000, 5_000)
    before, _ = tracemalloc.get_traced_memory()
    churn(15_000, 5_000)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    churn(20_000, 80_000)
    assert 500 - batch(500) <= len(known) <= 500
    assert after - before < 500_000
    assert first.turns == 251
    assert first.natural.value == SES


class Churn(RuleBasedStateMachine):
    """Requests of few clients in any order, over a registry that holds three."""

    def __init__(self):
        super().__init__()
        self.known = registry(max_count=3, idle_ttl_ms=50)
        self.now = 0
        self.running = []
        self.labels = {}

    @rule(
        value=st.sampled_from([SES, PARENT, "1", "2", "work"]), scope=st.sampled_from([ALICE, BOB]), named=st.booleans()
    )
    def begin(self, value, scope, named):
        read = reading(named=value) if named else reading(x_session_id=value)
        resolved = resolve(self.known, read, scope, now=self.now)
        key = (scope, named, value)
        assert self.labels.setdefault(key, resolved.conversation.label) == resolved.conversation.label
        assert resolved.conversation.scope == scope
        self.running.append(resolved)

    @rule(index=st.integers(0, 20), completed=st.booleans())
    def end(self, index, completed):
        if self.running:
            self.known.done(self.running.pop(index % len(self.running)), self.now, completed)

    @rule(step=st.integers(-10, 60))
    def wait(self, step):
        self.now += step

    @invariant()
    def labels_belong_to_one_conversation(self):
        assert len(set(self.labels.values())) == len(self.labels)

    @invariant()
    def nothing_in_flight_is_forgotten_and_the_rest_is_bounded(self):
        busy = {resolved.conversation.label for resolved in self.running}
        for label in busy:
            assert self.known.by_label(label).in_flight == sum(r.conversation.label == label for r in self.running)
        assert len(self.known) <= max(3, len(busy))

    @invariant()
    def no_two_have_one_natural_id(self):
        values = [each.natural.value for each in self.known._all.values()]
        assert len(set(values)) == len(values)


TestChurn = Churn.TestCase
TestChurn.settings = settings(max_examples=40, stateful_step_count=30)
