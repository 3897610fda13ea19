"""From a plan to the exact bytes of a reply and the time of each write, breaks included.

Times of pieces are ms after the head, times of writes ms after the request's arrival.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import orjson

from proxy.simulator.draw import Draw
from proxy.simulator.faults import Ending, Fault, Script
from proxy.simulator.refusals import JSON, Refusal, failed_inside
from proxy.simulator.replies import KEEP_ALIVE, Pieces
from proxy.simulator.styles import Style

REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    402: "Payment Required",
    403: "Forbidden",
    404: "Not Found",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
    529: "Overloaded",
}
EVENT_STREAM: Final = "text/event-stream"
Named = list[tuple[str, str]]


@dataclass(slots=True)
class Answer:
    """A reply before it is cut into writes. ``sized`` has a length; else it is chunked, or for HTTP/1.0 ends by FIN."""

    status: int
    fields: Named
    pieces: Pieces
    head_ms: float
    sized: bool = True
    split: Draw | None = None


def encoded(events: Iterable[tuple[float, bytes]], style: Style, thinking_ms: float, keepalive_ms: float) -> Pieces:
    """Events as pieces of a body, after a silence that only comments break."""
    end = (style.line_end * 2).encode()
    comments = int(thinking_ms / keepalive_ms) if keepalive_ms else 0
    pieces = [(number * keepalive_ms, KEEP_ALIVE + end) for number in range(1, comments + 1)]
    newline = style.line_end.encode()
    pieces += [(at + thinking_ms, event.replace(b"\n", newline) + end) for at, event in events]
    return pieces


def cut(pieces: Pieces, draw: Draw) -> Pieces:
    """The same bytes cut at arbitrary places; a cut piece comes when its last byte was due."""
    cuts: Pieces = []
    left, due = b"", 0.0
    for number, (at, data) in enumerate(pieces):
        left, due = left + data, at
        while len(left) > 1:
            size = int(draw.scaled(f"cut {number} {len(left)}", 1, 400))
            if size >= len(left):
                break
            cuts.append((due, left[:size]))
            left = left[size:]
    if left:
        cuts.append((due, left))
    return cuts


def error_event(refusal: Refusal, style: Style) -> bytes:
    """An error inside a stream."""
    return b"data: " + refusal.body() + (style.line_end * 2).encode()


def spoil(answer: Answer, fault: Fault | None, style: Style, stall_ms: float) -> Answer:
    """Breaks that are made of whole events, or of the whole answer."""
    middle = max(1, len(answer.pieces) // 2)
    kept = answer.pieces[:middle]
    if fault is Fault.EMPTY_200:
        answer.pieces = []
    elif fault is Fault.ERROR_200:
        answer.pieces, answer.sized, answer.split = [(0.0, failed_inside().body())], True, None
        answer.fields = [(name, JSON if name == "content-type" else value) for name, value in answer.fields]
    elif answer.sized:
        pass
    elif fault is Fault.NO_FINISH:
        answer.pieces = kept
    elif fault is Fault.ERROR_EVENT:
        answer.pieces = [*kept, (kept[-1][0], error_event(failed_inside(), style))]
    elif fault is Fault.STALL:
        answer.pieces = [*kept, *((at + stall_ms, data) for at, data in answer.pieces[middle:])]
    return answer


def script(answer: Answer, *, http10: bool, close: bool) -> Script:
    """The bytes of an answer."""
    pieces = cut(answer.pieces, answer.split) if answer.split else answer.pieces
    fields = list(answer.fields)
    chunked = not answer.sized and not http10
    if answer.sized:
        fields.append(("content-length", str(sum(len(data) for _, data in pieces))))
    elif chunked:
        fields.append(("transfer-encoding", "chunked"))
    close = close or http10
    fields.append(("connection", "close" if close else "keep-alive"))
    writes = [(answer.head_ms, head(answer.status, fields))]
    for at, data in pieces:
        writes.append((answer.head_ms + at, b"%x\r\n%b\r\n" % (len(data), data) if chunked else data))
    if chunked:
        at, last = writes[-1]
        end = b"0\r\n\r\n"
        writes[-1:] = [(at, last + end)] if len(writes) > 1 else [(at, last), (at, end)]
    return Script(writes, Ending.CLOSE if close else Ending.KEEP, join=answer.split is None)


def head(status: int, fields: Named) -> bytes:
    """A response head as bytes."""
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, '')}", *(f"{name}: {value}" for name, value in fields)]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


_BREAKS: Final = {  # what is kept of the bytes, and how it ends
    Fault.RESET_BEFORE_HEAD: ("nothing", Ending.RESET),
    Fault.CLOSE_BEFORE_HEAD: ("nothing", Ending.CLOSE),
    Fault.SILENT_BODY: ("head", Ending.HOLD),
    Fault.RESET_MID_CHUNK: ("half a write", Ending.RESET),
    Fault.CLOSE_MID_CHUNK: ("half a write", Ending.CLOSE),
    Fault.CLOSE_WITHOUT_END: ("whole writes", Ending.CLOSE),
    Fault.HANG: ("half a write", Ending.HOLD),
}


def broken(whole: Script, fault: Fault | None) -> Script:
    """Breaks of the connection: what the bytes of a script come to."""
    if fault not in _BREAKS:
        return whole
    what, ending = _BREAKS[fault]
    writes = whole.writes
    if what == "nothing":
        return Script([(writes[0][0], b"")], ending)
    if what == "head" or len(writes) == 1:
        return Script(writes[:1], ending, whole.join)
    middle = max(1, len(writes) // 2)
    at, data = writes[middle]
    kept = list(writes[:middle])
    if what == "half a write" or len(kept) == 1:
        kept.append((at, data[: max(1, len(data) // 2)]))
    return Script(kept, ending, whole.join)


def as_json(body: object) -> Pieces:
    """A JSON body as one piece."""
    return [(0.0, orjson.dumps(body))]
