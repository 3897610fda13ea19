"""Settings that change while the daemon runs: what can be taken over is, what is bad changes nothing and is said."""

import asyncio
import signal
import time

import pytest

from tests.fakes.client import Client, request
from tests.fakes.daemon import Daemon
from tests.fakes.kept import ask, house, relay, ticking, until
from tests.fakes.upstream import ROUTED, Upstream, play, sized


async def exposes(daemon: Daemon, upstream: Upstream) -> bool:
    reply = await ask(daemon, upstream.case(play(sized(b"ok"))).on(ROUTED))
    return reply.one(b"x-ocpool-route") is not None


@pytest.mark.parametrize("how", ["SIGHUP", "changed file", "replaced file"])
async def test_other_settings_are_taken_over_and_bad_ones_are_not(tmp_path, how):
    """Without a restart, while a stream goes on; what needs one is said."""
    file = tmp_path / "config.toml"
    file.write_text("[headers]\nexpose = true\n")
    async with relay(tmp_path / "d", "--config", str(file)) as (daemon, upstream):
        assert await exposes(daemon, upstream)
        case = upstream.case(lambda exchange: ticking(exchange, 60, 0.1))
        async with await Client.open(daemon.host, daemon.port) as client:
            await client.send(request(case.on(ROUTED)))
            head = await client.head()

            def change(text: str) -> None:
                if how == "replaced file":
                    (tmp_path / "new").write_text(text)
                    (tmp_path / "new").replace(file)
                else:
                    file.write_text(text)
                if how == "SIGHUP":
                    daemon.tell(signal.SIGHUP)

            change("[headers]\nexpose = false\n[pool]\nsize = 5\n[upstream]\nconnect_timeout_ms = 5000\n")
            await until(lambda: "settings reloaded" in daemon.log(), 12)
            assert not await exposes(daemon, upstream)
            [line] = [line for line in daemon.log().splitlines() if "settings reloaded" in line]
            assert "headers.expose" in line
            assert "pool.size" in line
            assert "upstream.connect_timeout_ms" in daemon.log().partition("next start")[2]
            for bad, named in (
                ("[headers]\nexpose = true\n[pool]\nsize = 99\n", "pool.size"),
                ("[headers\n", "config.toml"),
            ):
                before = daemon.log().count("not reloaded")
                change(bad)
                await until(lambda: daemon.log().count("not reloaded") > before, 12)
                assert named in daemon.log().rpartition("not reloaded")[2]
                assert not await exposes(daemon, upstream)
            assert (await client.rest(head, 20)).complete
        assert daemon.process.poll() is None
        await until(lambda: [event["event"] for event in daemon.events()].count("reload_refused") == 2)


async def test_another_pool_size_is_stocked_after_a_reload(tmp_path):
    """The target in status and the spares follow."""
    file = tmp_path / "config.toml"
    file.write_text("[pool]\nsize = 1\n")
    async with house(tmp_path, arguments=("--config", str(file)), pool__size=None) as daemon:
        await daemon.talks_on()

        async def fresh() -> tuple[int, int]:
            [pool] = (await daemon.status())["pool"]
            return pool["target"], pool["fresh"]

        deadline = time.perf_counter() + 20
        while await fresh() != (1, 1):
            assert time.perf_counter() < deadline
            await asyncio.sleep(0.1)
        file.write_text("[pool]\nsize = 4\n")
        daemon.tell(signal.SIGHUP)
        while await fresh() != (4, 4):
            assert time.perf_counter() < deadline
            await asyncio.sleep(0.1)
