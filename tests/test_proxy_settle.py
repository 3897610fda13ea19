"""What a finished request means: stages, verdicts and the pool's view of an attempt."""

import pytest

from config.settings import Settings
from pool.clock import Clock
from pool.model import Blame, Latency
from proxy.conversation.body import BodyFacts
from proxy.errors import (
    BadResponse,
    ClosedEarly,
    ConnectFailed,
    ConnectTimedOut,
    NameNotResolved,
    TlsFailed,
    UpstreamTimedOut,
)
from proxy.exchange import Exchange
from proxy.gateway.paths import resolve
from proxy.gateway.refusals import Refusal, RefusalKind
from proxy.gateway.signals import Signals
from proxy.pour import Ended
from proxy.settle import outcome_of, stage_of, verdict_of
from proxy.tap import Tap
from proxy.verdict import Stage

HEADER = "x-opencode-session"


class Frozen(Clock):
    """A clock that stands still until it is set."""

    __slots__ = ("mono", "wall")

    def __init__(self, mono: float, wall: int) -> None:
        super().__init__()
        self.mono, self.wall = mono, wall
        self.mono_ms, self.wall_ms = lambda: self.mono, lambda: self.wall


class House:
    """What outcome_of reads of a daemon."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.settings = Settings()


def exchange(*, stream: bool = True, **facts) -> Exchange:
    made = Exchange(1, 1_000, 0.0, b"POST", resolve(b"/zen/go/v1/chat/completions", "/zen/go/v1"))
    made.routed = True
    made.facts = BodyFacts(parsed=True, model="m", stream=stream)
    made.attempts = 1
    made.sent_ms, made.sent_at = 10.0, 1_010
    for name, value in facts.items():
        setattr(made, name, value)
    return made


def outcome(it: Exchange, *, mono: float = 5_010.0, wall: int = 6_010):
    verdict = verdict_of(it, HEADER)
    assert verdict is not None
    return outcome_of(House(Frozen(mono, wall)), it, verdict, mono, wall)


@pytest.mark.parametrize(
    ("error", "stage"),
    [
        (TlsFailed("x"), Stage.TLS_FAILED),
        (ConnectFailed("x"), Stage.CONNECT_FAILED),
        (ConnectTimedOut("x"), Stage.CONNECT_FAILED),
        (NameNotResolved("x"), Stage.CONNECT_FAILED),
        (BadResponse("x"), Stage.BAD_HEAD),
        (ClosedEarly("x"), Stage.NO_HEAD),
        (UpstreamTimedOut("x"), Stage.NO_HEAD),
    ],
)
def test_each_error_belongs_to_a_stage(error, stage):
    assert stage_of(error) is stage


def test_server_timing_is_the_latency_when_there_is_one():
    it = exchange(status=200, ended=Ended.COMPLETE, signals=Signals(upstream_ms=1447.0, endpoint="e"))
    got = outcome(it)
    assert (got.latency_ms, got.latency, got.endpoint) == (1447.0, Latency.UPSTREAM, "e")
    assert got.accepted
    assert got.judged


def test_without_it_the_first_semantic_event_is():
    tap = Tap(lambda: 2_010.0, stream=True)
    tap.feed(b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n')
    got = outcome(exchange(status=200, ended=Ended.COMPLETE, signals=Signals(), tap=tap))
    assert (got.latency_ms, got.latency) == (2_000.0, Latency.FIRST_EVENT)


def test_who_leaves_before_the_first_byte_has_measured_the_wait():
    got = outcome(exchange(ended=Ended.CLIENT_GONE))
    assert (got.latency_ms, got.latency, got.blame) == (5_000.0, Latency.WAITED, Blame.CLIENT)
    assert got.judged


def test_an_answer_that_is_no_stream_is_not_judged_by_its_latency():
    got = outcome(exchange(stream=False, status=200, ended=Ended.COMPLETE, signals=Signals(upstream_ms=30_000.0)))
    assert not got.judged
    assert got.accepted


def test_a_suspend_in_between_means_nothing_was_measured():
    it = exchange(status=200, ended=Ended.COMPLETE, signals=Signals(upstream_ms=1.0))
    assert not outcome(it, mono=5_010.0, wall=600_000).judged


@pytest.mark.parametrize(("told", "pause"), [(None, 60_000.0), (5_000.0, 5_000.0)])
def test_a_limit_blames_no_route_and_keeps_probes_away_for_its_window(told, pause):
    refusal = Refusal(RefusalKind.LIMIT, "GoUsageLimitError", "weekly", told)
    got = outcome(exchange(status=429, ended=Ended.COMPLETE, refusal=refusal))
    assert got.blame is Blame.LIMIT
    assert got.pause_ms == pause
    assert not got.refused
    assert not got.accepted


def test_an_overload_is_the_routes():
    got = outcome(exchange(status=529, ended=Ended.COMPLETE, refusal=Refusal(RefusalKind.OVERLOAD, "overloaded")))
    assert got.blame is Blame.ROUTE
    assert got.refused


def test_an_error_inside_a_200_is_no_success():
    tap = Tap(lambda: 1.0, stream=True)
    tap.feed(b'data: {"error":{"message":"Upstream request failed: [502] gone","type":"server_error"}}\n\n')
    it = exchange(status=200, ended=Ended.COMPLETE, signals=Signals(), tap=tap)
    verdict = verdict_of(it, HEADER)
    assert verdict is not None
    assert verdict.kind == "error_in_stream"
    assert not outcome(it).accepted


def test_nothing_asked_is_nothing_judged():
    assert verdict_of(exchange(attempts=0, error=ConnectFailed("x")), HEADER) is None
    assert verdict_of(exchange(), HEADER) is None


def test_uncached_input_is_what_the_provider_had_to_read():
    tap = Tap(lambda: 1.0, stream=True)
    tap.feed(b'data: {"choices":[],"usage":{"prompt_tokens":900,"prompt_tokens_details":{"cached_tokens":640}}}\n\n')
    assert outcome(exchange(status=200, ended=Ended.COMPLETE, tap=tap)).uncached_tokens == 260
