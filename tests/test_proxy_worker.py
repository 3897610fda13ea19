"""The thread for what may block."""

import asyncio
import threading

import pytest

from proxy.worker import Worker


async def test_jobs_run_in_order_off_the_loop():
    worker = Worker("test")
    seen: list[int] = []
    here = threading.get_ident()

    def job(number):
        seen.append(number)
        return threading.get_ident()

    there = await asyncio.gather(*(worker.do(lambda n=n: job(n)) for n in range(5)))
    assert seen == [0, 1, 2, 3, 4]
    assert here not in there
    worker.stop()


async def test_an_error_belongs_to_who_waits():
    worker = Worker("test")
    with pytest.raises(ZeroDivisionError):
        await worker.do(lambda: 1 / 0)
    assert await worker.do(lambda: "alive") == "alive"
    worker.stop()


async def test_a_job_that_hangs_holds_up_nobody_who_gave_up_waiting():
    worker = Worker("test")
    release = threading.Event()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await worker.do(release.wait)
    release.set()
    assert await worker.do(lambda: 1) == 1
    worker.stop()
