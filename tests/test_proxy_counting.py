"""Requests are counted many together, and come out as if each had been counted alone."""

from hypothesis import given
from hypothesis import strategies as st

from pool.model import Natural, Shape, Source, Start, Wish
from proxy.answers.usage import KINDS, Usage
from proxy.counting import Counting
from proxy.errors import ConnectFailed
from proxy.exchange import Exchange
from proxy.gateway.paths import resolve
from proxy.gateway.signals import Signals
from proxy.insight.metrics import Metrics
from proxy.pour import Ended
from proxy.verdict import TABLE

TARGET = resolve(b"/zen/go/v1/chat/completions", "/zen/go/v1")
COUNTS = st.none() | st.integers(0, 5_000)
MS = st.none() | st.integers(0, 100_000).map(lambda eighths: eighths / 8)  # sums of these are exact in any order


def exchange(
    status, verdict, source, model, sent_ms, head_ms, upstream_ms, used, replayed, bytes_in, took_ms
) -> tuple[Exchange, float]:
    made = Exchange(1, 1_000, 4.0, b"POST", TARGET)
    made.status, made.verdict, made.ended = status, verdict, Ended.COMPLETE
    if status is None:
        made.error = ConnectFailed("x")
    if source is not None:
        wish = Wish("c" * 16, "", "opencode-go", model, Shape.UUID, Natural("n", minted=True))
        made.model = model
        made.start = Start(wish, "n", source, 1_000, bound=False, first_turn=True)
    made.sent_ms = 0.0 if sent_ms is None else 4.0 + sent_ms
    made.head_ms = None if head_ms is None else 4.0 + head_ms
    made.signals = Signals(upstream_ms=upstream_ms)
    made.used, made.replayed, made.bytes_in, made.bytes_out = used, replayed, bytes_in, 2 * bytes_in
    return made, 4.0 + took_ms


EXCHANGES = st.builds(
    exchange,
    st.sampled_from([None, 200, 404, 529]),
    st.none() | st.sampled_from([row.verdict for row in TABLE]),
    st.none() | st.sampled_from(Source),
    st.sampled_from(["kimi-k3", "glm-5", ""]),
    MS,
    MS,
    MS,
    st.none() | st.builds(Usage, *[COUNTS] * len(KINDS)),
    st.booleans(),
    st.integers(0, 5_000),
    st.integers(0, 80_000).map(float),
)


def snapshot(metrics):
    taken = metrics.snapshot()
    spreads = {key: (spread.counts, spread.sum_ms) for key, spread in taken.spreads.items()}
    return taken.counts, spreads


@given(st.lists(EXCHANGES, max_size=300))
def test_requests_counted_together_are_as_if_each_was_counted_alone(exchanges):
    together, alone = Metrics(), Metrics()
    counting, one = Counting(together, "o"), Counting(alone, "o")
    for made, ended_ms in exchanges:
        counting.request(made, ended_ms)
        one.request(made, ended_ms)
        one.gather()
    assert snapshot(together) == snapshot(alone)
    assert not together.undeclared()


def test_a_request_is_in_the_metrics_as_soon_as_somebody_asks():
    """Every label and number of one request, by hand."""
    metrics = Metrics()
    made, ended_ms = exchange(
        200,
        TABLE[-3].verdict,
        Source.SPARE,
        "kimi-k3",
        1.5,
        900.0,
        850.0,
        Usage(17, 5, None, 56, 0),
        True,
        241,
        1_000.0,
    )
    Counting(metrics, "o").request(made, ended_ms)
    counts, spreads = snapshot(metrics)
    told = {
        (name, *(str(value) for _, value in labels)): value
        for (name, labels), value in counts.items()
        if name != "upstream_connections_opened" and name != "upstream_connections_reused"
    }
    assert told == {
        ("requests", "opencode-go", "completions", "200", "ok", "none"): 1,
        ("request_bytes", "opencode-go"): 241,
        ("response_bytes", "opencode-go"): 482,
        ("route_starts", "opencode-go", "kimi-k3", "spare"): 1,
        ("route_matches", ""): 1,
        ("replays", "opencode-go", "kimi-k3", "ok"): 1,
        ("tokens", "opencode-go", "kimi-k3", "input"): 17,
        ("tokens", "opencode-go", "kimi-k3", "cached"): 5,
        ("tokens", "opencode-go", "kimi-k3", "written"): 0,
        ("tokens", "opencode-go", "kimi-k3", "output"): 56,
        ("tokens", "opencode-go", "kimi-k3", "reasoning"): 0,
    }
    sums = {name: (sum(places), total) for (name, _), (places, total) in spreads.items()}
    del sums["upstream_connect_seconds"]
    assert sums == {
        "request_seconds": (1, 1_000.0),
        "overhead_seconds": (1, 1.5),
        "first_byte_seconds": (1, 900.0),
        "first_event_seconds": (0, 0.0),
        "gateway_upstream_seconds": (1, 850.0),
    }
