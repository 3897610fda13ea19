"""Plays conversations against a server, as a coding agent does, and sets what the gateway wrote down beside it."""

import asyncio
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from pool.clock import Clock
from proxy.cli.asking import Client
from proxy.cli.stage import Place
from proxy.simulator.record import Record
from proxy.simulator.traces import Call, Conversation

BASE_PATH = "/zen/go/v1"
_AHEAD_MS = 10_000.0  # a first turn's body is written this long before it is sent, so that nobody else waits for that


@dataclass(slots=True)
class Played:
    """One turn as the client saw it. ``number`` is the conversation's, ``at_ms`` counts from the beginning.

    ``route`` is what ocpool says of the id (``spare``, ``natural`` ...), empty without it. ``record`` is the gateway's.
    """

    number: int
    turn: int
    at_ms: float
    body_sha256: str
    status: int
    ttfb_ms: float
    route: str
    complete: bool
    record: Record | None = None

    @property
    def served(self) -> bool:
        """Was it answered, and to the end?"""
        return self.status == 200 and self.complete

    @property
    def bad(self) -> bool:
        """Did it come to an endpoint to stay away from? The gateway knows, the client does not."""
        return self.record is not None and self.record.bad


class Player:
    """Plays conversations against one server; ``played`` grows as their turns end."""

    def __init__(self, place: Place, clock: Clock, base_path: str = BASE_PATH) -> None:
        self.played: list[Played] = []
        self._place = place
        self._clock = clock
        self._base_path = base_path
        self._began_ms = 0.0

    async def play(self, conversations: Iterable[Conversation]) -> None:
        """Play them all, each from its own start and on a connection of its own."""
        self._began_ms = self._clock.mono_ms()
        async with asyncio.TaskGroup() as group:
            for conversation in conversations:
                group.create_task(self._converse(conversation), name=f"conversation {conversation.number}")

    async def _converse(self, conversation: Conversation) -> None:
        client = Client(self._place, self._clock)
        await self._until(conversation.start_ms - _AHEAD_MS)
        at_ms = conversation.start_ms
        try:
            for number in range(len(conversation.turns)):
                call = conversation.call(number)
                await self._until(at_ms)
                self.played.append(await self._turn(client, conversation, number, call))
                if number + 1 < len(conversation.turns):
                    at_ms = self._now_ms() + conversation.turns[number + 1].tool_ms
        finally:
            client.close()

    async def _turn(self, client: Client, conversation: Conversation, number: int, call: Call) -> Played:
        at_ms = self._now_ms()
        answer = await client.ask(self._base_path + call.path, call.fields, call.body)
        return Played(
            number=conversation.number,
            turn=number,
            at_ms=at_ms,
            body_sha256=hashlib.sha256(call.body).hexdigest(),
            status=answer.status,
            ttfb_ms=answer.ttfb_ms,
            route=answer.fields.get("x-ocpool-route", ""),
            complete=answer.complete,
        )

    def _now_ms(self) -> float:
        return self._clock.mono_ms() - self._began_ms

    async def _until(self, at_ms: float) -> None:
        await self._clock.sleep(max(0.0, at_ms - self._now_ms()))


def match(played: Iterable[Played], records: Iterable[Record]) -> None:
    """Find each turn in the gateway's log by its body; a repeated one is what was served last."""
    by_body = {record.body_sha256: record for record in records if not record.probe}
    for one in played:
        one.record = by_body.get(one.body_sha256)
