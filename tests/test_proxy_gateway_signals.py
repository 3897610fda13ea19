"""What is read from an answer's header fields."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.gateway.signals import RETRY_AFTER_CEILING_MS, Signals, read, server_timing

NOW = 1_794_000_000_000.0


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([b"gateway;dur=10, upstream;dur=1447, total;dur=1498"], (10, 1447, 1498)),
        ([b"total;dur=1498,upstream;dur=1447,gateway;dur=10"], (10, 1447, 1498)),
        ([b"gateway;dur=10", b"upstream;dur=1447.25", b"total;dur=1498"], (10, 1447.25, 1498)),
        ([b"upstream;dur=.5"], (None, 0.5, None)),
        ([b"upstream;dur=5."], (None, 5, None)),
        ([b"upstream;dur=1e3"], (None, 1000, None)),
        ([b'cfEdge;dur=3,cfOrigin;dur=12;desc="a, b; dur=9",upstream;dur=7'], (None, 7, None)),
        ([b'upstream;desc="";dur=7'], (None, 7, None)),
        ([b'upstream;desc="say \\"x, upstream;dur=1\\"";dur=7'], (None, 7, None)),
        ([b'upstream;dur="12"'], (None, 12, None)),
        ([b" upstream ; DUR = 8 "], (None, 8, None)),
        ([b"Upstream;dur=8"], (None, 8, None)),
        ([b"upstream;dur=1, upstream;dur=2"], (None, 1, None)),
        ([b"upstream;dur=x, upstream;dur=2"], (None, 2, None)),
        ([b"upstream"], (None, None, None)),
        ([b"upstream;dur"], (None, None, None)),
        ([b"upstream;dur="], (None, None, None)),
        ([b"upstream;dur=-4"], (None, None, None)),
        ([b"upstream;dur=inf, gateway;dur=nan, total;dur=1_0"], (None, None, None)),
        ([b"upstream;dur=1e300"], (None, None, None)),
        ([b'upstream;desc="open, upstream;dur=1'], (None, None, None)),
        ([b""], (None, None, None)),
        ([b',;,;=,"\\'], (None, None, None)),
        ([], (None, None, None)),
    ],
)  # fmt: skip
def test_server_timing_is_read_in_any_form(lines, expected):
    found = read([(b"Server-Timing", line) for line in lines])
    assert (found.gateway_ms, found.upstream_ms, found.total_ms) == expected


def test_the_names_of_who_served_are_read():
    found = read(
        [
            (b"X-Opencode-Endpoint-Id", b" novita-deepseek "),
            (b"x-opencode-upstream-model-id", b"deepseek/v4.1"),
            (b"X-Zen-Model", b"deepseek-v4.1-flash"),
            (b"x-opencode-log-id", b"01a1b567-0000"),
            (b"x-opencode-log-id", b"second"),
        ]
    )
    assert found == Signals(
        endpoint="novita-deepseek",
        upstream_model="deepseek/v4.1",
        zen_model="deepseek-v4.1-flash",
        log_id="01a1b567-0000",
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([(b"Retry-After", b"60")], 60_000),
        ([(b"retry-after", b"1.5")], 1500),
        ([(b"retry-after", b"-5")], 0),
        ([(b"retry-after", b"0")], 0),
        ([(b"retry-after", b"146553")], 146_553_000),
        ([(b"retry-after", b"99999999999")], RETRY_AFTER_CEILING_MS),
        ([(b"retry-after-ms", b"1250.4"), (b"retry-after", b"60")], 1250.4),
        ([(b"retry-after-ms", b"-1"), (b"retry-after", b"60")], 0),
        ([(b"retry-after-ms", b"soon"), (b"retry-after", b"60")], 60_000),
        ([(b"retry-after", b"2026-01-01")], None),
        ([(b"retry-after", b"soon")], None),
        ([(b"retry-after", b"inf")], None),
        ([(b"retry-after", b"")], None),
        # a date counts from the answer's own clock, not from ours
        (
            [
                (b"Date", b"Thu, 01 Jan 2032 00:00:00 GMT"),
                (b"Retry-After", b"Thu, 01 Jan 2032 00:00:30 GMT"),
            ],
            30_000,
        ),
        (
            [
                (b"Retry-After", b"Thu, 01 Jan 2032 00:00:00 GMT"),
                (b"Date", b"Thu, 01 Jan 2032 00:00:30 GMT"),
            ],
            0,
        ),
        ([(b"retry-after", b"Fri, 06 Nov 2026 21:21:00 GMT")], 60_000.0),
        ([(b"date", b"nonsense"), (b"retry-after", b"Fri, 06 Nov 2026 21:21:00 GMT")], 60_000.0),
        ([], None),
    ],
)
def test_retry_after_is_read_and_bounded(fields, expected):
    now = 1_794_000_000_000.0  # 2026-11-06 21:20:00 GMT
    assert read(fields, now).retry_after_ms == expected


def test_a_date_without_any_clock_to_compare_it_with_says_nothing():
    assert read([(b"retry-after", b"Fri, 06 Nov 2026 21:21:00 GMT")]).retry_after_ms is None


@given(st.one_of(st.binary(max_size=200), st.text(alphabet=';,="\\ dur123.e-upstream', max_size=80)))
def test_no_server_timing_line_raises(line):
    raw = line if isinstance(line, bytes) else line.encode()
    for duration in server_timing(raw).values():
        assert 0 <= duration <= 86_400_000


NAMES = st.sampled_from([b"server-timing", b"retry-after", b"retry-after-ms", b"date", b"x-opencode-endpoint-id", b"x"])
DATES = st.text(alphabet="MonTueJanGMT,:- 0123456789+", max_size=40).map(str.encode)


@given(st.lists(st.tuples(NAMES, st.one_of(st.binary(max_size=60), DATES)), max_size=8))
def test_no_fields_raise_and_every_wait_is_bounded(fields):
    found = read(fields, NOW)
    assert found.retry_after_ms is None or 0 <= found.retry_after_ms <= RETRY_AFTER_CEILING_MS
    assert found.endpoint is None or found.endpoint.isprintable()


def test_a_long_hostile_line_is_read_in_linear_time():
    for line in (b'"' * 60_000, b'a;"\\' * 15_000, b",;" * 30_000, b'upstream;desc="' + b"\\" * 50_000):
        server_timing(line)


NUMBERS = st.from_regex(rb"\d{1,9}(\.\d{0,11})?", fullmatch=True) | st.sampled_from(
    [b"1_0", b".5", b"5.", b"-1", b"1e3"]
)


@given(NUMBERS, NUMBERS, NUMBERS, st.sampled_from([b", ", b",", b" ,", b";"]))
def test_the_usual_line_is_read_as_any_other(gateway, upstream, total, comma):
    line = comma.join((b"gateway;dur=" + gateway, b"upstream;dur=" + upstream, b"total;dur=" + total))
    found, durations = read([(b"server-timing", line)]), server_timing(line)
    assert (found.gateway_ms, found.upstream_ms, found.total_ms) == tuple(
        durations.get(name) for name in (b"gateway", b"upstream", b"total")
    )
