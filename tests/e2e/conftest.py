"""Every end-to-end test runs on one event loop a process, so that hundreds of cases share a few daemons."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.fakes.relay import CROSSED, Relay, Relays
from tests.fakes.tls import Authority

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def all_relays(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Relays]:
    relays = Relays(tmp_path_factory.mktemp("relays"), Authority(tmp_path_factory.mktemp("ca")))
    yield relays
    await relays.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def relays(all_relays: Relays) -> AsyncIterator[Relays]:
    """Daemons with settings of the test's own, stopped after it."""
    yield all_relays
    await all_relays.stop_private()


@pytest_asyncio.fixture(loop_scope="session", params=CROSSED, ids="-".join)
async def relay(request: pytest.FixtureRequest, all_relays: Relays) -> AsyncIterator[Relay]:
    """A shared daemon: both loops, both schemes; ALL, given indirectly, makes each loop meet each scheme."""
    relay = await all_relays.get(*request.param)
    relay.upstream.failures.clear()
    relay.upstream.cases.clear()
    yield relay
    await relay.hang_up()
    assert not relay.upstream.failures, relay.upstream.failures
    assert relay._daemon is None or not (faults := relay._daemon.faults()), faults
