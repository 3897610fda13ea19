"""Four real processes on one state file, killed at random under load; judged by what the gateway was sent."""

import asyncio
import contextlib
import random

import aiohttp
import pytest

from pool.ids import id_digest
from proxy.simulator.record import Record
from tests.fakes.fleet import CALM, Fleet, Load, talks, uneasy_gateway
from tests.fakes.judged import HONOURED_MS, WHO, Verdict, Watch, judge, who


async def storm(folder, *, for_s, clients, kill_every, repin_every, seed=1, **settings):
    """Load, kills and repins for a while, then a kill of all and one more turn of everybody everywhere."""
    gateway = await uneasy_gateway(seed=seed)
    fleet = Fleet(folder, gateway.url, settings=settings)
    load = Load(fleet, random.Random(seed))
    watch = Watch(fleet.state)
    watching = asyncio.get_running_loop().create_task(watch.run())
    try:
        await fleet.start()
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session:
            source = talks(load.chance)
            loop = asyncio.get_running_loop()
            running = [loop.create_task(load.client(session, source)) for _ in range(clients)]
            running.append(loop.create_task(load.operator(session, repin_every)))
            await load.chaos(for_s, kill_every, lambda: fleet.kills > 5 and len(watch.retired_at) > 10)
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            assert not [t for t in running if not t.cancelled() and t.exception()], running
            kept, moved = await after_a_crash_of_all(fleet, gateway, load, session)
        verdict = judge(gateway.log, watch.retired_at)
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
        await fleet.stop()
        await gateway.stop()
    print(told(fleet, load, watch, verdict, kept))
    assert not verdict.shared, f"ids of several conversations: {verdict.shared}"
    assert not verdict.late, f"retired ids that came back: {verdict.late}"
    assert not moved, f"conversations that lost their binding in a restart: {moved}"
    assert not {"500", "502"} & load.routes.keys(), "the gateway was there all the time"
    assert verdict.routed > 10
    assert len(watch.retired_at) > 5
    assert kept > 5
    return verdict


async def after_a_crash_of_all(fleet, gateway, load, session, most=40):
    """Kill every process once what they decided is in the file; each conversation must come back on its id everywhere."""
    gateway.world.scenario = CALM
    await asyncio.sleep(HONOURED_MS / 1000)
    bound = fleet.bound()
    await fleet.restart_all()
    mark = len(gateway.log)
    routed = {}
    for talk in load.begun:
        key = f"{talk.label}::{talk.provider}::{talk.model}"
        if talk.label and key in bound:
            routed[talk.name] = (talk, bound[key])
    for talk, _ in list(routed.values())[-most:]:
        await asyncio.gather(*(fleet.turn(session, talk, number) for number in range(fleet.size)))
    seen = [record for record in gateway.log[mark:] if not record.probe]
    moved = {who(r): (r.session, routed[who(r)][1]) for r in seen if r.session != routed[who(r)][1]}
    return len({who(record) for record in seen}), moved


def told(fleet: Fleet, load: Load, watch: Watch, verdict: Verdict, kept: int) -> str:
    return (
        f"\n{fleet.size} processes, {fleet.kills} kills, {fleet.stops} clean restarts, {verdict.conversations} "
        f"conversations, {verdict.live} requests at the gateway ({dict(load.routes)} answers), {verdict.probes} probes, "
        f"{verdict.routed} routed ids seen, {len(watch.retired_at)} retirements, {fleet.commands} repins, "
        f"{watch.reads} states of the file read, {kept} bindings checked after a crash of all; "
        f"shared {len(verdict.shared)}, late {len(verdict.late)}"
    )


def test_the_judge_finds_what_must_not_be():
    """An id of two conversations and a retired one are told apart from a natural one and a timely one."""

    def record(session, name, at, probe=False):
        return Record(0, at, "POST", "/", fields=((WHO, name.encode()),), session=session, probe=probe)

    log = [
        record("fast", "", 1, probe=True),
        record("left", "", 1, probe=True),
        record("fast", "one", 10),
        record("fast", "two", 20),
        record("natural", "one", 10),
        record("natural", "two", 20),
        record("left", "three", 1_000 + HONOURED_MS),
        record("left", "three", 1_001 + HONOURED_MS),
    ]
    verdict = judge(log, {id_digest("left"): 1_000})
    assert verdict.shared == {"fast": {"one", "two"}}
    assert verdict.late == [("left", 1)]


async def test_four_processes_killed_at_random_never_share_or_revive_an_id(tmp_path):
    """A quarter of a minute of it; natural ids are not judged."""
    await storm(tmp_path, for_s=12, clients=6, kill_every=1.2, repin_every=0.25)


@pytest.mark.slow
async def test_five_minutes_of_kills_never_share_or_revive_an_id(tmp_path):
    """The same for longer, with another world."""
    await storm(tmp_path, for_s=300, clients=6, kill_every=1.5, repin_every=0.5, seed=2)
