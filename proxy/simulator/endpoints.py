"""The servers behind the gateway: how fast each is, what it accepts, and how it spells things.

Two days were measured. On the first an id stayed on its shard: 1.5 to 3 s on one half of the ids and 25 to 43 s on the
other. Four days later each request went to any worker, and took from 388 ms to 7.1 s.
"""

from dataclasses import dataclass
from typing import Final, Literal

from proxy.simulator.draw import Draw
from proxy.simulator.styles import DEEPSEEK, MOONSHOT, PLAIN, TWICE, WINDOWS, Style


@dataclass(frozen=True, slots=True)
class Centred:
    """Each session has a centre of its own between two bounds, and each request is near it."""

    low_ms: float
    high_ms: float
    jitter: float

    def of(self, session: Draw, moment: Draw) -> float:
        """What one request takes, in ms; within the bounds widened by the jitter."""
        centre = session.scaled("centre", self.low_ms, self.high_ms)
        return centre * moment.between("jitter", 1 - self.jitter, 1 + self.jitter)


@dataclass(frozen=True, slots=True)
class Spread:
    """Each request is drawn afresh from equally likely steps; the session says nothing."""

    points: tuple[float, ...]

    def of(self, session: Draw, moment: Draw) -> float:  # noqa: ARG002  (the same call as above)
        """What one request takes, in ms."""
        return moment.along("spread", self.points)


BodyIds = Literal["worker", "chatcmpl", "hex"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One of them.

    Attributes:
        latency: Time to its head for a tiny prompt.
        prefill_tps: Uncached prompt tokens it reads a second; that time comes on top.
        tokens_per_s: How fast it answers.
        body_ids: Which forms its replies' ids have.
        bad: One to stay away from: the truth that the product has to find out.
        tokenizer: Its tokens for each of ours.
        cache: Endpoints of one name share their prompt caches; empty: its own.
        refuses: The share of requests it refuses as overloaded, and with which statuses.
        wants_reasoning: It refuses an assistant's tool call that comes without ``reasoning_content``.
    """

    name: str
    latency: Centred | Spread
    prefill_tps: float = 12_000.0
    tokens_per_s: float = 110.0
    body_ids: tuple[BodyIds, ...] = ("worker",)
    bad: bool = False
    tokenizer: float = 1.0
    cache: str = ""
    refuses: float = 0.0
    refusal_statuses: tuple[int, ...] = (429, 529, 503)
    wants_reasoning: bool = False
    style: Style = PLAIN


HEALTHY: Final = Centred(880.0, 1_650.0, 0.08)
CRAWLING: Final = Centred(11_200.0, 39_500.0, 0.08)
MEASURED: Final = Spread((388, 448, 900, 1_435, 1_585, 2_185, 3_574, 5_138, 6_309, 7_098))

NATIVE_1: Final = Endpoint("native-1", HEALTHY)
NATIVE_2: Final = Endpoint("native-2", HEALTHY, style=DEEPSEEK, tokenizer=1.016)
RELAY: Final = Endpoint(
    "relay-1", CRAWLING, prefill_tps=5_000.0, tokens_per_s=45.0, body_ids=("chatcmpl",), bad=True, style=TWICE
)

_MIXED: Final[tuple[BodyIds, ...]] = ("worker", "chatcmpl", "hex")
WORKERS: Final = (
    Endpoint("worker-1", MEASURED, body_ids=_MIXED, cache="stack-1"),
    Endpoint("worker-2", MEASURED, body_ids=_MIXED, cache="stack-1", style=MOONSHOT),
    Endpoint("worker-3", MEASURED, body_ids=_MIXED, cache="stack-2", tokenizer=1.016, style=DEEPSEEK),
    Endpoint("worker-4", MEASURED, body_ids=_MIXED, cache="stack-2", style=WINDOWS),
)

CROWDED: Final = Endpoint("crowded-1", HEALTHY, bad=True, refuses=0.9)
BUSY: Final = Endpoint("crowded-2", HEALTHY, bad=True, refuses=0.5)
STRICT: Final = Endpoint("strict-1", HEALTHY, wants_reasoning=True, style=DEEPSEEK)
