"""Message heads as bytes: what is read from a response, what is written in either direction.

Hop-by-hop fields and the fields named by ``Connection`` stay on their own hop (RFC 9110, section 7.6.1). All other
fields keep their value, order, case and multiplicity.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import httptools

from proxy.errors import BadResponse
from proxy.wire.framing import Chunked, Empty, Framing, Sized, ToClose

Field = tuple[bytes, bytes]

MAX_HEAD_BYTES = 262_144

# Fields that belong to one connection. Transfer-Encoding is one of them, but its value decides the framing first.
_HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"transfer-encoding",
        b"upgrade",
        b"http2-settings",
        b"expect",
    )
)
# A Connection field that names one of these is an attack on framing, routing or credentials, or says nothing new.
_NEVER_NAMED = _HOP_BY_HOP | frozenset(
    (b"", b"close", b"host", b"content-length", b"content-type", b"content-encoding", b"authorization")
)
_WATCHED = _HOP_BY_HOP | frozenset((b"host", b"content-length"))
_BODYLESS = frozenset((204, 304))
_LOWER: dict[bytes, bytes] = {}


def lower(name: bytes) -> bytes:
    """A field name in lower case, remembered because the same few names come all day."""
    known = _LOWER.get(name)
    if known is None:
        known = name.lower()
        if len(_LOWER) < 4096:
            _LOWER[name] = known
    return known


def _named(value: bytes) -> frozenset[bytes]:
    """The fields that a Connection field names, but for those that no one may take away."""
    tokens = frozenset(token.strip() for token in value.lower().split(b","))
    return tokens - _NEVER_NAMED


def _without(fields: Iterable[Field], named: frozenset[bytes]) -> list[Field]:
    return [field for field in fields if (key := lower(field[0])) not in named and key != b"connection"]


def request_head(method: bytes, target: bytes, host: bytes, fields: Sequence[Field], *, chunked: bool) -> bytes:
    """The head sent upstream. ``Host`` takes the place of the client's, or comes first where there was none."""
    lines: list[bytes] = []
    hosted = False
    named: frozenset[bytes] = frozenset()
    for name, value in fields:
        key = lower(name)
        if key in _WATCHED:
            if key == b"host":
                hosted = True
                lines.append(b"%b: %b\r\n" % (name, host))
                continue
            if key == b"connection":
                named |= _named(value)
            if key != b"content-length" or chunked:
                continue
        lines.append(b"%b: %b\r\n" % (name, value))
    if named:
        return request_head(method, target, host, _without(fields, named), chunked=chunked)
    start = b"%b %b HTTP/1.1\r\n" % (method, target)
    if not hosted:
        start += b"Host: %b\r\n" % host
    lines.append(b"Transfer-Encoding: chunked\r\n\r\n" if chunked else b"\r\n")
    return start + b"".join(lines)


class ResponseHead:
    """A response's status line and fields, and what they say about the body and the connection."""

    __slots__ = ("fields", "framing", "keep_alive", "reason", "status", "version")

    def __init__(self, status: int, reason: bytes, version: str, fields: list[Field]) -> None:
        self.status = status
        self.reason = reason
        self.version = version
        self.fields = fields
        self.framing: Framing = Empty()
        self.keep_alive = version != "1.0"

    def get(self, wanted: bytes) -> bytes | None:
        """The first value of a field, by its lower-case name."""
        for name, value in self.fields:
            if lower(name) == wanted:
                return value
        return None


class _Collector:
    """httptools' callbacks for one head."""

    __slots__ = ("fields", "reason")

    def __init__(self) -> None:
        self.fields: list[Field] = []
        self.reason = b""

    def on_status(self, reason: bytes) -> None:
        self.reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        self.fields.append((name, value))


def parse_response(data: bytes, method: bytes) -> ResponseHead:
    """Read one complete head, blank line included.

    Raises:
        BadResponse: for anything that llhttp refuses in strict mode, such as two lengths, a length beside chunks,
            folded fields or a bare LF.
    """
    collector = _Collector()
    parser: Any = httptools.HttpResponseParser(collector)
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        raise BadResponse("The upstream switched protocols, which was not asked for.", written=True) from None
    except httptools.HttpParserError as exc:
        raise BadResponse(f"The upstream's answer is not valid HTTP: {_reason(exc)}.", written=True) from None
    head = ResponseHead(parser.get_status_code(), collector.reason, parser.get_http_version(), collector.fields)
    _read_framing(head, method)
    return head


def _reason(exc: Exception) -> str:
    """The parser's own words, without bytes of the message in them."""
    return type(exc).__name__.removeprefix("HttpParser").removesuffix("Error") or "malformed head"


def _read_framing(head: ResponseHead, method: bytes) -> None:
    """Length, chunks or neither (RFC 9112, section 6.3), and whether the connection stays."""
    length: bytes | None = None
    coding = b""
    for name, value in head.fields:
        key = lower(name)
        if key == b"content-length":
            length = value
        elif key == b"transfer-encoding":
            coding = coding + b"," + value if coding else value
        elif key == b"connection":
            tokens = value.lower()
            head.keep_alive = b"close" not in tokens and (head.keep_alive or b"keep-alive" in tokens)
    if method == b"HEAD" or head.status in _BODYLESS or head.status < 200:
        head.framing = Empty()
    elif coding:
        last = coding.rsplit(b",", 1)[-1].strip().lower()
        head.framing = Chunked() if last == b"chunked" else ToClose()
    elif length is not None:
        head.framing = Sized(int(length))
    else:
        head.framing = ToClose()
    if not head.framing.delimited:
        head.keep_alive = False


def response_head(head: ResponseHead, extra: Sequence[Field], *, close: bool, dechunk: bool) -> bytes:
    """The head written to the client: the upstream's own fields, then ``extra``.

    ``dechunk`` is for HTTP/1.0 clients, which know no chunks. ``close`` announces that the connection ends.
    """
    lines = [b"HTTP/1.1 %d %b\r\n" % (head.status, head.reason)]
    named: frozenset[bytes] = frozenset()
    unchunked = dechunk or head.status in _BODYLESS
    for name, value in head.fields:
        key = lower(name)
        if key in _HOP_BY_HOP:
            if key == b"connection":
                named |= _named(value)
            if key != b"transfer-encoding" or unchunked:
                continue
        elif dechunk and key == b"trailer":
            continue
        lines.append(b"%b: %b\r\n" % (name, value))
    if named:
        bare = ResponseHead(head.status, head.reason, head.version, _without(head.fields, named))
        return response_head(bare, extra, close=close, dechunk=dechunk)
    for name, value in extra:
        lines.append(b"%b: %b\r\n" % (name, value))
    lines.append(b"Connection: close\r\n\r\n" if close else b"\r\n")
    return b"".join(lines)
