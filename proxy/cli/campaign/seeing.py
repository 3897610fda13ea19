"""What ocpool sees of an answer of the simulated world: an exchange such as the relay would have filled.

The head's fields are the bytes that the simulated gateway sends, read by the product's own readers; only the sockets
between are left out.
"""

from dataclasses import dataclass
from typing import Final, cast

import orjson

from pool.model import Outcome, Start
from proxy import settle
from proxy.answers.stream import StreamReader
from proxy.conversation.registry import Resolved
from proxy.daemon import Daemon
from proxy.exchange import Exchange
from proxy.gateway import refusals, signals
from proxy.gateway.paths import Target, resolve
from proxy.pour import Ended
from proxy.simulator import replies, timing
from proxy.simulator.policies import Answer, Asked
from proxy.tap import Tap
from proxy.verdict import Seen, Stage, Verdict, judge

SESSION_HEADER: Final = "x-opencode-session"
TARGET: Final[Target] = resolve(b"/zen/go/v1/chat/completions", "/zen/go/v1")


@dataclass(slots=True)
class Instant:
    """A clock that stands where it was put."""

    ms: float
    scale: float = 1.0

    def mono_ms(self) -> float:
        return self.ms

    def wall_ms(self) -> int:
        return int(self.ms)


@dataclass(frozen=True, slots=True)
class _House:
    """As much of a daemon as judging an attempt asks for."""

    clock: Instant


def exchange_of(asked: Asked, start: Start, answer: Answer, now: float, *, replayed: bool) -> Exchange:
    """The exchange of an attempt that is over now."""
    sent = now - answer.took_ms
    exchange = Exchange(0, int(sent), sent, b"POST", TARGET)
    exchange.rewrote = exchange.stream = True
    exchange.model = asked.model
    exchange.resolved = cast(Resolved, _TURN)
    exchange.start, exchange.replayed = start, replayed
    exchange.attempts = 1 + replayed
    exchange.bytes_in, exchange.sent_ms = asked.body_bytes, sent
    exchange.status = answer.status
    exchange.head_ms = None if answer.head_ms is None else sent + answer.head_ms
    fields = fields_of(answer, asked.model)
    exchange.signals = signals.read(fields, now)
    if answer.status is None:
        exchange.ended = Ended.TRUNCATED
        return exchange
    exchange.ended = Ended.COMPLETE if answer.complete else Ended.TRUNCATED
    if answer.status >= 400 and answer.plan.refusal is not None:
        exchange.refusal = refusals.read(answer.status, fields, answer.plan.refusal.body(), now, SESSION_HEADER)
    elif answer.status == 200:
        exchange.tap = _tap(answer, sent)
        exchange.bytes_out = answer.plan.completion_tokens * 60
    return exchange


def fields_of(answer: Answer, model: str) -> list[tuple[bytes, bytes]]:
    """The fields of an answer's head that say anything about it."""
    plan = answer.plan
    named: list[tuple[str, str]] = []
    if answer.headers and plan.endpoint is not None:
        if plan.refusal is None:
            named += timing.served_by(plan, model)
        named += timing.server_timing(plan, timing.usual(plan.draw))
    if plan.refusal is not None and plan.refusal.retry_after_s is not None:
        named.append(("retry-after", str(plan.refusal.retry_after_s)))
    return [(name.encode(), value.encode()) for name, value in named]


def verdict_of(exchange: Exchange) -> Verdict | None:
    """The verdict on an attempt whose answer was the client's."""
    return settle.verdict_of(exchange, SESSION_HEADER)


def verdict_before(exchange: Exchange) -> Verdict:
    """The verdict on a refusal that was gathered before anything of it was relayed."""
    return judge(Seen(Stage.REFUSED, exchange.status, refusal=exchange.refusal, rewrote=True, stream=True))


def outcome_of(exchange: Exchange, verdict: Verdict, now: float) -> Outcome:
    """The pool's view of an attempt, as the relay makes it."""
    return settle.outcome_of(cast(Daemon, _House(Instant(now))), exchange, verdict, now, int(now))


def _tap(answer: Answer, sent: float) -> Tap:
    """What a tap saw of the answer: its first event with content, and its usage at the end."""
    first_ms = sent + (answer.first_ms or 0.0)
    tap = StreamReader(lambda: first_ms)
    if answer.first_ms is not None:
        tap.feed(_event({"choices": [{"index": 0, "delta": {"content": "x"}}]}))
        if answer.complete:
            tap.feed(_event({"choices": [], "usage": replies.usage(answer.plan)}))
    return tap


def _event(facts: dict[str, object]) -> bytes:
    return b"data: " + orjson.dumps(facts) + b"\n\n"


@dataclass(frozen=True, slots=True)
class _Turn:
    """A conversation's turn and no side call: what judging asks of how it was recognised."""

    side: bool = False
    turn: bool = True


_TURN: Final = _Turn()
