"""One daemon thread for what may block, the state file: a file system that hangs holds up this thread alone."""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Worker:
    """Runs jobs one after the other, in the order they were given."""

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    async def do(self, job: Callable[[], T]) -> T:
        """Run ``job`` in the thread and wait for it; the wait can be cancelled, the job cannot."""
        return await self.give(job)

    def give(self, job: Callable[[], T]) -> asyncio.Future[T]:
        """Have ``job`` run in the thread; the future is what comes of it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def settle(result: Any, error: BaseException | None) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)

        def run() -> None:
            result: Any = None
            error: BaseException | None = None
            try:
                result = job()
            except BaseException as exc:  # noqa: BLE001  (it belongs to whoever waits)
                error = exc
            try:
                loop.call_soon_threadsafe(settle, result, error)
            except RuntimeError:  # the loop is closed: nobody waits any more
                return

        self._jobs.put(run)
        return future

    def stop(self) -> None:
        """Let the thread end after what it was given; nobody waits for it."""
        self._jobs.put(None)
