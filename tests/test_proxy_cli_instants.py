"""Times as people write and read them."""

import pytest

from proxy.cli.instants import clock_time, duration, parse_since

NOW = 1_796_057_852_391


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("90s", NOW - 90_000),
        ("15m", NOW - 900_000),
        (" 2h ", NOW - 7_200_000),
        ("7d", NOW - 604_800_000),
        ("500ms", NOW - 500),
        ("1796057852391", NOW),
        ("2026-11-30T16:57:32Z", 1_796_057_852_000),
        ("2026-11-30T17:57:32+01:00", 1_796_057_852_000),
    ],
)
def test_a_moment_can_be_said_in_several_ways(text, at):
    """How long ago, ISO with a zone, or unix milliseconds."""
    assert parse_since(text, NOW) == at


def test_a_time_without_a_zone_is_local(monkeypatch):
    """As a person means it."""
    assert parse_since("2026-11-30", NOW) % 60_000 == 0


@pytest.mark.parametrize("text", ["", "soon", "5", "5y", "-5m", "2026-13-01", "99999999999999999999d", "1e3s"])
def test_what_is_no_moment_is_refused_with_examples(text):
    """The message says how to say it."""
    with pytest.raises(ValueError, match="15m"):
        parse_since(text, NOW)


def test_instants_and_durations_are_shown_short():
    """And what is none is a dash."""
    assert clock_time(NOW)[-4:] == ".391"
    assert clock_time(None) == clock_time("x") == clock_time(True) == clock_time(10**30) == "-"
    assert [duration(ms) for ms in (0, 12_400, 600_000, 7_200_000, 10**9)] == ["0 s", "12 s", "10 min", "2 h", "12 d"]
