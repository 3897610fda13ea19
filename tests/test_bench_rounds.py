"""Measuring again what others disturbed, and one measurement of each kind on real processes."""

import sys
from pathlib import Path

import pytest

from tests.bench import measures
from tests.bench.load import Counts, Crowd, Requests, Wrong
from tests.bench.rounds import Patience, Results
from tests.bench.table import other_rows, relay_rows
from tests.bench.targets import AIOHTTP, OCPOOL, PLAIN, Target, running

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
TARGET = Target(OCPOOL, PLAIN, 1)


class Shares:
    """What others used, try by try."""

    def __init__(self, *shares):
        self._shares = list(shares)

    def __call__(self, _pids):
        return self

    def share(self):
        return self._shares.pop(0)


async def measured(patience):
    """What was kept: the number of the try."""
    tries = []

    async def measure(_target):
        tries.append(len(tries) + 1)
        return {"try": float(tries[-1])}

    figures, share = await patience.measure(measure, TARGET, ())
    return figures["try"], share, len(tries)


@pytest.mark.parametrize(
    ("shares", "kept", "tries"),
    [((0.12,), 1, 1), ((0.13, 0.02), 2, 2), ((0.5, 0.3, 0.4), 2, 3)],
    ids=["undisturbed", "once", "always"],
)
async def test_a_disturbed_measurement_is_repeated_and_the_least_disturbed_kept(shares, kept, tries):
    patience = Patience(60.0, watch=Shares(*shares))
    assert await measured(patience) == (kept, min(shares), tries)
    assert patience.measured == 1
    assert patience.repeated == tries - 1
    assert patience.kept == (min(shares) > 0.12)


async def test_nothing_is_repeated_when_the_time_for_it_is_used_up():
    patience = Patience(0.0, watch=Shares(0.9, 0.0))
    assert await measured(patience) == (1, 0.9, 1)
    assert patience.worst == 0.9


async def test_every_figure_is_measured_on_real_proxies(tmp_path: Path, monkeypatch):
    """Quickly: what matters here is that there is one, and that nobody answered wrongly."""
    for name, value in {"SECONDS": 0.3, "OPEN_STREAMS": 40, "FILLING_STREAMS": 10, "UPLOADS": 1, "STREAMS": 20}.items():
        monkeypatch.setattr(measures, name, value)
    results = Results()
    with running(tmp_path, (AIOHTTP, OCPOOL)) as made:
        for target in made.targets:
            assert target.start_ms is not None
            results.add(target, {"start_ms": target.start_ms})
            for measure in (measures.requests, measures.events):
                results.add(target, await measure(target))
            if target.way == PLAIN:
                for measure in (measures.memory, measures.large_bodies, measures.openings):
                    results.add(target, await measure(target))
    assert {(name, way) for name, way, _ in results.rows} == {(one.name, one.way) for one in made.targets}
    assert all(value > 0 for (_, _, name), (value,) in results.rows.items() if name != "mib_per_1000_streams")
    relayed = [row for row in relay_rows(results) if row[0] == OCPOOL]
    assert all(float(row[4]) > 0 and float(row[7]) > 0 for row in relayed)
    proxy, _memory, *rest = other_rows(results)[2]  # a machine too busy to open all streams in time tells no memory
    assert proxy == OCPOOL
    assert "-" not in rest


async def test_an_answer_that_is_no_200_is_no_figure(unused_tcp_port_factory):
    """A refusal is quick; it must not pass for a fast proxy."""
    import asyncio

    class Refusing(asyncio.Protocol):
        def connection_made(self, transport):
            self.transport = transport

        def data_received(self, _data):
            self.transport.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")

    port = unused_tcp_port_factory()
    server = await asyncio.get_running_loop().create_server(Refusing, "127.0.0.1", port)
    counts = Counts()
    async with server, Crowd(1, lambda: Requests(counts, lambda: b"GET / HTTP/1.1\r\n\r\n"), port, None):
        while counts.wrong is None:
            await asyncio.sleep(0.01)
    with pytest.raises(Wrong, match="502"):
        counts.check()
