"""The traces over sockets: through a running ocpool and the simulated gateway, whose answers the clients go on with.

What happened, in the order in which it happened, can then be told to the resolver directly.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.fakes.client import Client
from tests.traces.direct import Played, Resolver
from tests.traces.play import All, Ask, Beside, Call, Clock, Reply, Request, Script, Wait
from tests.traces.wire import Wire, wire

PATIENCE_S = 30.0


class Happened(NamedTuple):
    """The daemon's resolver was told that a request begins or is over."""

    number: int
    at: int
    over: bool


def overhear(registry: Any) -> list[Happened]:
    """What a running daemon tells its resolver from now on, in its order and with its instants."""
    heard: list[Happened] = []
    begun: list[Any] = []
    resolve, done = registry.resolve, registry.done

    def resolved(*given: Any) -> Any:
        found = resolve(*given)
        heard.append(Happened(len(begun), given[-1], over=False))
        begun.append(found)
        return found

    def is_done(found: Any, now: int, completed: bool) -> None:
        number = next(number for number, one in enumerate(begun) if one is found)
        heard.append(Happened(number, now, over=True))
        done(found, now, completed)

    registry.resolve, registry.done = resolved, is_done
    return heard


@dataclass
class Line:
    """One run: every request with the label that the response carried, as it was sent, and what came back."""

    host: str
    port: int
    with_ids: bool
    clock: Clock
    wall_ms: Callable[[], int]
    played: list[Played] = field(default_factory=list)
    sent: list[Wire] = field(default_factory=list)
    replies: dict[int, Reply] = field(default_factory=dict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def play(self, scripts: list[Script]) -> None:
        """Run all scripts at once, to their ends."""
        async with asyncio.TaskGroup() as group:
            for script in scripts:
                group.create_task(self._run(script, group))

    async def _run(self, script: Script, group: asyncio.TaskGroup) -> None:
        value: Any = None
        while True:
            try:
                wish = script.send(value)
            except StopIteration:
                return
            value = None
            match wish:
                case Ask(request):
                    value = await self._ask(request)
                case Wait():
                    await asyncio.sleep(0)
                case Beside(beside):
                    group.create_task(self._run(beside, group))
                case All(scripts):
                    async with asyncio.TaskGroup() as all_of:
                        for one in scripts:
                            all_of.create_task(self._run(one, group))

    async def _ask(self, request: Request) -> Reply:
        """Send it and read the answer; one begins only when the last one's head is there, so that their order is known."""
        sent = wire(request, self.with_ids)
        async with await Client.open(self.host, self.port) as client:
            async with self._turn:
                number = len(self.played)
                self.clock.now = self.wall_ms()
                self.sent.append(sent)
                await client.send(_bytes(sent))
                answer = await client.head(within=PATIENCE_S)
                assert answer.status == 200, (answer.status, answer.head.raw)
                label = (answer.one(b"x-ocpool-conversation") or b"").decode()
                match = (answer.one(b"x-ocpool-match") or b"").decode()
                self.played.append(Played(request, self.clock.now, label, match))
            await client.rest(answer, within=PATIENCE_S)
        reply = self.replies[number] = read(answer.data)
        self.clock.now = self.wall_ms()
        return reply


def again(line: Line, heard: list[Happened], resolver: Resolver) -> list[str]:
    """Tell a resolver what a daemon's was told; its labels, in the order of the requests."""
    tokens: dict[int, Any] = {}
    labels: list[str] = []
    for number, at, over in heard:
        if over:
            resolver.end(tokens.pop(number), line.replies[number], at)
        else:
            label, _, tokens[number] = resolver.begin(line.sent[number], at)
            labels.append(label)
    return labels


def read(data: bytes) -> Reply:
    """What a client makes of a stream of chat chunks."""
    text = ""
    calls: dict[int, list[str]] = {}
    for piece in data.decode().replace("\r\n", "\n").split("\n"):
        if not piece.startswith("data:") or piece.removeprefix("data:").strip() == "[DONE]":
            continue
        for choice in json.loads(piece.removeprefix("data:")).get("choices", ()):
            delta = choice.get("delta") or {}
            text += delta.get("content") or ""
            for made in delta.get("tool_calls") or ():
                call = calls.setdefault(made["index"], ["", "", ""])
                function = made.get("function") or {}
                call[0] += made.get("id") or ""
                call[1] += function.get("name") or ""
                call[2] += function.get("arguments") or ""
    return Reply(text, tuple(Call(*call) for call in calls.values()))


def _bytes(sent: Wire) -> bytes:
    head = "".join(f"{name.decode()}: {value.decode()}\r\n" for name, value in sent.fields)
    return f"POST {sent.target} HTTP/1.1\r\n{head}\r\n".encode() + b"".join(sent.chunks)
