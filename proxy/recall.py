"""Conversations of earlier runs, while they are read from the archive beside the first traffic."""

import asyncio
import contextlib

_AFTER_S = 0.1  # the first answers before that, unless one of them is told by its content


class Recall:
    """One start's reading. ``wanted``: a request waits for it."""

    __slots__ = ("_over", "_wanted")

    def __init__(self) -> None:
        self._wanted = asyncio.Event()
        self._over = asyncio.Event()

    async def wait(self) -> None:
        """Until it is over: a second or so, see ``archiving.py``."""
        self._wanted.set()
        await self._over.wait()

    async def due(self) -> None:
        """Until it is time to begin."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_AFTER_S):
                await self._wanted.wait()

    def over(self) -> None:
        """Let all go on that wait for it."""
        self._over.set()
