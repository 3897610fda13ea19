"""Every way a reply can break, and behaviours that a test asks for by hand."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from proxy.simulator.record import Record
from proxy.simulator.refusals import Refusal
from proxy.simulator.styles import Style


class Fault(StrEnum):
    """How a reply breaks. All but the first three come with a head of status 200."""

    SILENT_524 = "silence-then-524"  # no head for two minutes, then Cloudflare's page
    RESET_BEFORE_HEAD = "reset-before-head"
    CLOSE_BEFORE_HEAD = "close-before-head"
    SILENT_BODY = "head-then-silence"
    RESET_MID_CHUNK = "reset-mid-chunk"
    CLOSE_MID_CHUNK = "close-mid-chunk"
    CLOSE_WITHOUT_END = "close-without-end"  # at an event's end, but the last chunk never comes
    NO_FINISH = "clean-end-without-finish"  # HTTP is complete, the answer is not
    STALL = "stall-mid-stream"  # goes on after a while
    HANG = "hang-mid-stream"
    ERROR_EVENT = "error-event"  # inside a stream, which then ends cleanly
    ERROR_200 = "error-in-200"  # JSON in place of the answer
    EMPTY_200 = "empty-200"


class Ending(StrEnum):
    """How the connection goes on after the last byte."""

    KEEP = "keep"  # open for the next request
    CLOSE = "close"  # FIN
    RESET = "reset"  # RST
    HOLD = "hold"  # nothing more comes until the client leaves


@dataclass(slots=True)
class Script:
    """A reply as exact bytes: each written at a time in ms after the request's arrival, in order.

    With ``join``, what is due at the same moment goes out in one write.
    """

    writes: list[tuple[float, bytes]] = field(default_factory=list)
    ending: Ending = Ending.KEEP
    join: bool = False


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What to do in place of what the world would; None leaves it to the world.

    Attributes:
        refusal: Answer with this error.
        fault: Break the reply this way.
        gateway_ms, upstream_ms: What ``server-timing`` tells and the client waits for the head.
        first_token_ms: Wait from the head to the first token.
        thinking_ms: Silence after the head but for keep-alive comments, before the first token.
        tokens, tokens_per_s: Length and speed of the answer.
        tool_calls: Whether a request with tools is answered by a call.
        style: Spelling of the reply.
        timing: Spelling of ``server-timing``, see `proxy.simulator.timing.VARIANTS`.
        fields: More response fields.
        script: The exact bytes to send, head included; all else is ignored.
        hold: Send nothing until this is set.
    """

    refusal: Refusal | None = None
    fault: Fault | None = None
    gateway_ms: float | None = None
    upstream_ms: float | None = None
    first_token_ms: float | None = None
    thinking_ms: float | None = None
    tokens: int | None = None
    tokens_per_s: float | None = None
    tool_calls: bool | None = None
    style: Style | None = None
    timing: str | None = None
    fields: tuple[tuple[str, str], ...] = ()
    script: Script | None = None
    hold: asyncio.Event | None = None


Match = Callable[[Record], bool]


@dataclass(slots=True)
class _Scripted:
    match: Match
    behaviour: Behaviour
    times: int


class Behaviours:
    """A queue of scripted behaviours: the oldest that matches serves a request and is used up."""

    def __init__(self) -> None:
        self._queue: list[_Scripted] = []

    def add(self, match: Match, behaviour: Behaviour, times: int) -> None:
        """``times`` requests that match get this behaviour; -1: all."""
        self._queue.append(_Scripted(match, behaviour, times))

    def take(self, record: Record) -> Behaviour | None:
        """The behaviour for this request, if one was scripted."""
        for scripted in self._queue:
            if scripted.match(record):
                scripted.times -= 1
                if scripted.times == 0:
                    self._queue.remove(scripted)
                return scripted.behaviour
        return None
