"""What the daemon says over sockets is what its resolver says when it is called directly."""

from random import Random

import pytest

from tests.fakes.house import street
from tests.traces import corpus, words
from tests.traces.clients.table import CLIENTS
from tests.traces.play import Clock, Script
from tests.traces.report import judged
from tests.traces.resolver import Ocpool
from tests.traces.score import score
from tests.traces.sockets import Line, again, overhear

CLIENT = "opencode"
SCALE = 40  # as fast as the pauses allow that mean something to recognition
HAPPENS = ((), (), (), (), ("compact",), ("agents",), ("edit_last",), ("fork",), ("prune",), ("switch",))


def scripts(clock: Clock) -> list[Script]:
    """Ten conversations of one client, the first four with one opener."""
    made = []
    for number, happens in enumerate(HAPPENS):
        rng = Random(f"sockets/{number}")
        opener = words.task(Random("same") if number < 4 else rng)
        made.append(_life(rng, clock, f"{CLIENT}-{number}", opener, happens))
    return made


def _life(rng: Random, clock: Clock, label: str, opener: str, happens: tuple[str, ...]) -> Script:
    session = CLIENTS[CLIENT].session(rng, clock, label, corpus.KEY, cwd="/srv")
    yield from corpus.life(session, opener, 3, happens)


def numbered(labels: list[str]) -> list[int]:
    """The partition, without the labels' own spelling."""
    seen: dict[str, int] = {}
    return [seen.setdefault(label, len(seen)) for label in labels]


@pytest.mark.parametrize("with_ids", [True, False], ids=["ids present", "ids removed"])
async def test_a_client_over_sockets(tmp_path, with_ids):
    """The same partition as when the same things are told to the resolver, in the same order; and a good one."""
    async with street(tmp_path, settings=("probe.enabled=false",), scale=SCALE) as at:
        clock = Clock(at.clock.wall_ms())
        line = Line(at.place.host, at.place.port, with_ids, clock, at.clock.wall_ms)
        heard = overhear(at.daemon.registry)
        await line.play(scripts(clock))
    assert len(line.played) > 60
    assert all(one.label for one in line.played)
    found = score(judged(line.played, with_ids))
    assert found.precision >= (1 if with_ids else 0.95)
    assert found.recall >= (1 if with_ids else 0.85)
    assert numbered([one.label for one in line.played]) == numbered(again(line, heard, Ocpool()))
