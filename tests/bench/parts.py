"""What the parts of a request's way cost, each alone: time in memory, without sockets, the best of many rounds.

Three kinds of requests: one that names its conversation by a header, the first of a conversation of its own, and the
next turn of one that is told by its content. Behind them the reading of a stream's events.
"""

import gc
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import orjson

from config.load import load
from pool.clock import Clock
from pool.model import Wish
from proxy import settle
from proxy.answers.body import BodyReader
from proxy.answers.stream import StreamReader
from proxy.build import build
from proxy.conversation import body
from proxy.conversation.ids import Reading, read_ids
from proxy.daemon import Daemon
from proxy.exchange import Exchange
from proxy.gateway.paths import resolve
from proxy.gateway.signals import Signals
from proxy.insight.redact import Redactor
from proxy.pour import Ended
from tests.bench.table import made_console, table_of

STAGES: Final = ("read the body", "recognise", "choose the id", "read the answer", "settle")
KINDS: Final = ("named by a header", "begins", "goes on, by content")
_SCOPE, _PROVIDER, _MODEL = "bench", "opencode-go", "bench"
_TARGET = resolve(b"/zen/go/v1/chat/completions", "/zen/go/v1")
_DRAW = random.Random(7)  # noqa: S311  (words, not secrets)
_WORDS: Final = ["".join(_DRAW.choices("abcdefghijklmnopqrstuvwxyz", k=_DRAW.randint(2, 10))) for _ in range(3000)]
_EACH: Final = 128  # requests of a round
_ROUNDS: Final = 24
_EVENTS: Final = 500
_ANSWER_MS: Final = 1400.0

Said = list[dict[str, str]]


class Asks(NamedTuple):
    """One request's body, and the words of its answer."""

    data: bytes
    answer: str


class Cost(NamedTuple):
    """One stage of one kind of request, us."""

    kind: str
    stage: str
    us: float


def _text(size: int) -> str:
    return " ".join(_DRAW.choices(_WORDS, k=size // 7))


def _body(said: Said) -> bytes:
    return orjson.dumps({"model": _MODEL, "messages": said, "temperature": 0.2, "max_tokens": 256})


def _opening() -> Said:
    return [{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": _text(120)}]


def _begun() -> Iterator[list[Asks]]:
    """Requests that all begin a conversation."""
    while True:
        yield [Asks(_body(_opening()), _text(300)) for _ in range(_EACH)]


def _continued() -> Iterator[list[Asks]]:
    """The next turn of each of many conversations."""
    chats = [_opening() for _ in range(_EACH)]
    while True:
        asks = [Asks(_body(said), _text(300)) for said in chats]
        yield asks
        for said, (_, answer) in zip(chats, asks, strict=True):
            said += [{"role": "assistant", "content": answer}, {"role": "user", "content": _text(80)}]


def _answered(text: str) -> bytes:
    return orjson.dumps(
        {
            "id": "chatcmpl-bench",
            "model": _MODEL,
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 17, "completion_tokens": 56, "total_tokens": 73},
        }
    )


class Way:
    """The way of a request through a daemon, stage by stage."""

    def __init__(self, daemon: Daemon, fields: list[tuple[bytes, bytes]]) -> None:
        self._daemon = daemon
        self._reading: Reading = read_ids(fields, None, None)
        self._count = 0
        self.spent = dict.fromkeys(STAGES, 0.0)

    def play(self, asks: list[Asks]) -> None:
        """Note the time of each stage, us a request, where it is the best so far."""
        took = dict.fromkeys(STAGES, 0.0)
        for each in asks:
            self._one(each, took)
        for stage, seconds in took.items():
            us = seconds / len(asks) * 1e6
            self.spent[stage] = min(self.spent[stage] or us, us)

    def _one(self, each: Asks, took: dict[str, float]) -> None:
        daemon, self._count = self._daemon, self._count + 1
        now, mono_ms = daemon.clock.wall_ms(), daemon.clock.mono_ms()
        exchange = Exchange(self._count, now, mono_ms, b"POST", _TARGET)
        exchange.scope, exchange.attempts, exchange.status = _SCOPE, 1, 200
        exchange.signals = Signals(upstream_ms=_ANSWER_MS)
        answer = _answered(each.answer)
        facts: body.BodyFacts | None = None

        def read() -> None:
            nonlocal facts
            facts = body.read([each.data], len(each.data), False, daemon.registry.prefixes)
            exchange.model, exchange.stream = facts.model, facts.stream

        def recognise() -> None:
            exchange.resolved = daemon.registry.resolve(self._reading, _SCOPE, _PROVIDER, facts, now)

        def choose() -> None:
            resolved = exchange.resolved
            assert resolved is not None
            known = resolved.conversation
            wish = Wish(known.label, _SCOPE, _PROVIDER, _MODEL, known.shape, known.natural, resolved.turn)
            exchange.start = daemon.routes.start(wish, now)

        def hear() -> None:
            wanted = exchange.resolved is not None and exchange.resolved.wants_answer
            exchange.tap = BodyReader(wants_answer=wanted)
            exchange.tap.feed(answer)
            exchange.ended = Ended.COMPLETE
            exchange.verdict = settle.verdict_of(exchange, "x-opencode-session")

        def close() -> None:
            settle.settle(daemon, exchange, mono_ms + _ANSWER_MS, now)

        for stage, work in zip(STAGES, (read, recognise, choose, hear, close), strict=True):
            took[stage] += _timed(work)


def _timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _stream(*, wants_answer: bool) -> float:
    """Reading one event of a stream, us."""
    choice = {"index": 0, "delta": {"content": "hello "}, "finish_reason": None}
    event = b"data: %b\n\n" % orjson.dumps({"id": "chatcmpl-bench", "model": _MODEL, "choices": [choice]})
    best = 0.0
    for _ in range(_ROUNDS):
        tap = StreamReader(lambda: 0.0, wants_answer=wants_answer)

        def hear(tap: StreamReader = tap) -> None:
            for _ in range(_EVENTS):
                tap.feed(event)
            tap.close()

        us = _timed(hear) / _EVENTS * 1e6
        best = min(best or us, us)
    return best


def costs() -> list[Cost]:
    """All of them; takes a few seconds."""
    found = []
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "state.json"
            daemon = build(load(None, [f"state.path={path}"], {}), Clock(), Redactor(()))
            named = [(b"x-opencode-session", b"bench")] if kind == KINDS[0] else []
            way, asks = Way(daemon, named), _continued() if kind == KINDS[2] else _begun()
            for _ in range(_ROUNDS):
                batch = next(asks)
                gc.collect()
                way.play(batch)
            daemon.events.close()
            daemon.usage.close()
        found += [Cost(kind, stage, us) for stage, us in way.spent.items()]
    found += [Cost(KINDS[0], "read an event", _stream(wants_answer=False))]
    found += [Cost(KINDS[1], "read an event", _stream(wants_answer=True))]
    return found


def show(*, markdown: bool) -> None:
    """Print the table."""
    table = {(cost.kind, cost.stage): cost.us for cost in costs()}
    rows = [
        [stage, *(f"{table[kind, stage]:.1f}" if (kind, stage) in table else "" for kind in KINDS)]
        for stage in (*STAGES, "read an event")
    ]
    rows.append(["sum of a request", *(f"{sum(table[kind, stage] for stage in STAGES):.1f}" for kind in KINDS)])
    made_console().print(table_of("us of each part alone", ("part", *KINDS), rows, markdown=markdown))
