"""Waiting for facts: an object whose changes a test can wait for, and a way to judge times on a busy machine."""

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable


class Watched:
    """Something that changes; ``until`` returns as soon as a condition on it holds."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def changed(self) -> None:
        """Let everybody who waits look again."""
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def until(self, holds: Callable[[], bool], within: float = 10.0, what: str = "it") -> None:
        """Wait at most ``within`` seconds for ``holds()``; an AssertionError names what did not happen."""
        deadline = time.perf_counter() + within
        while not holds():
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(waiter)
            try:
                await asyncio.wait_for(waiter, deadline - time.perf_counter())
            except TimeoutError:
                if holds():
                    return
                raise AssertionError(f"{what} did not happen within {within} s") from None
            finally:
                self._waiting.discard(waiter)


def best_of(attempts: int) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., Awaitable[None]]]:
    """Let a test of times try again: what the product delays is late each time, what a busy machine delays is not."""

    def wrap(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        @functools.wraps(test)
        async def run(*args: object, **kwargs: object) -> None:
            for left in range(attempts - 1, -1, -1):
                try:
                    await test(*args, **kwargs)
                    return
                except AssertionError:
                    if not left:
                        raise
                    await asyncio.sleep(0.3)

        return run

    return wrap
