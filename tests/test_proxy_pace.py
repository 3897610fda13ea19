"""proxy/pace.py"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.pace import Pace, tells


class Time:
    def __init__(self):
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def delta(text="x") -> bytes:
    return b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n' % text.encode()


ROLE = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"completion_tokens":40}}\n\n'
FINISH = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
REASONING = b'data: {"choices":[{"delta":{"content":"","reasoning_content":"hm"}}]}\n\n'
TOOL = b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]}\n\n'
ANTHROPIC = b'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}\n\n'


def played(*steps) -> Pace:
    """``steps`` are (ms, bytes)."""
    time = Time()
    pace = Pace(time)
    for at, data in steps:
        time.now = at
        pace.feed(data)
    return pace


def test_speed_is_tokens_over_the_time_from_the_first_to_the_last_event_with_content():
    pace = played((0, ROLE), (1_000, delta()), (1_250, delta()), (1_500, delta()), (9_000, FINISH + USAGE))
    assert (pace.first_ms, pace.last_ms, pace.deltas, pace.generation_ms) == (1_000, 1_500, 3, 500)
    assert pace.tps(40) == (80.0, False)


def test_without_usage_the_events_are_counted_and_that_is_said():
    pace = played(*[(10 * number, delta()) for number in range(21)])
    assert pace.tps(None) == (105.0, True)


@pytest.mark.parametrize("steps", [[], [(5, delta())], [(5, delta()), (6, delta())]])
def test_too_little_tells_nothing(steps):
    assert played(*steps).tps(400 if len(steps) < 2 else 2)[0] is None


@pytest.mark.parametrize("line", [delta(), REASONING, TOOL, ANTHROPIC])
def test_what_carries_output_counts(line):
    assert tells(line)


@pytest.mark.parametrize("line", [ROLE, USAGE, FINISH, b"data: [DONE]", b"data: {}", b'data: {"type":"ping"}'])
def test_roles_usage_and_the_end_do_not(line):
    assert not tells(line)


@given(cuts=st.lists(st.integers(1, 30), max_size=40))
def test_events_may_be_split_anywhere(cuts):
    whole = ROLE + delta("one") + b": keep-alive\n\n" + REASONING + delta("two") + USAGE + b"data: [DONE]\n\n"
    pace, left = Pace(Time()), whole
    for cut in cuts:
        pace.feed(left[:cut])
        left = left[cut:]
    pace.feed(left)
    assert pace.deltas == 3


def test_a_line_that_never_ends_is_not_kept_for_ever():
    pace = Pace(Time())
    for _ in range(100):
        pace.feed(b"data: " + b"x" * 65_536)
    assert len(pace._carry) <= 65_536


def test_it_looks_beside_another_and_changes_nothing():
    seen: list[bytes] = []
    pace = Pace(Time())
    pace.beside(seen.append)(delta())
    assert seen == [delta()]
    assert pace.deltas == 1
