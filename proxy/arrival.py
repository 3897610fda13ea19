"""A request's head as it came from the client: parsed strictly, by llhttp, and never answered with what it said.

``find_head`` says where a head ends, ``parse_request`` what is in it. What follows from it under the settings in
force is ``entry.py``'s business.
"""

from typing import Any

import httptools

from proxy.errors import BadRequest, HeadTooLarge
from proxy.wire.head import Field, lower

MAX_FIELDS = 600
MAX_LINE_BYTES = 70_000
MAX_HEAD_BYTES = 1_048_576
HEAD_END = b"\r\n\r\n"

_INVALID = "The request is not valid HTTP/1.1."
_LARGE = "The request line or a header field is larger than 70000 bytes, or there are over 600 fields."

# What the edge and the framing ask of a head, found in one pass.
_WATCHED = frozenset(
    (
        b"host",
        b"origin",
        b"sec-fetch-site",
        b"connection",
        b"content-length",
        b"transfer-encoding",
        b"content-encoding",
        b"expect",
        b"upgrade",
        b"x-ocpool-token",
        b"access-control-request-method",
        b"access-control-request-headers",
    )
)


class RequestHead:
    """A request line and its fields. ``seen`` holds what is watched, lower-case names, the last of a doubled one."""

    __slots__ = ("chunked", "expects", "fields", "keep_alive", "length", "method", "modern", "seen", "target")

    def __init__(self, method: bytes, target: bytes, fields: list[Field], *, modern: bool) -> None:
        self.method = method
        self.target = target
        self.fields = fields
        self.modern = modern  # HTTP/1.1: chunks, interim answers and kept connections are understood
        self.seen = seen = {key: value for name, value in fields if (key := lower(name)) in _WATCHED}
        # A connection of HTTP/1.0 is not used again (RFC 9112, section 9.3).
        self.keep_alive = modern and b"close" not in seen.get(b"connection", b"").lower()
        self.chunked = b"transfer-encoding" in seen  # llhttp takes no other transfer coding from a client
        length = seen.get(b"content-length")
        self.length = int(length) if length is not None else None
        # The client waits for ``100 Continue`` before it sends the body (RFC 9110, section 10.1.1).
        self.expects = modern and seen.get(b"expect", b"").lower() == b"100-continue"


class _Collector:
    """httptools' callbacks for one head."""

    __slots__ = ("fields", "target")

    def __init__(self) -> None:
        self.fields: list[Field] = []
        self.target = b""

    def on_url(self, target: bytes) -> None:
        self.target += target

    def on_header(self, name: bytes, value: bytes) -> None:
        self.fields.append((name, value.strip(b" \t")))


def parse_request(data: bytes) -> RequestHead:
    """Read one complete head, blank line included.

    Raises:
        BadRequest: llhttp refuses it in strict mode, say for two lengths, a length beside chunks, or a bare LF; or it
            names two hosts.
        HeadTooLarge: a line is over 70,000 bytes, or there are over 600 fields.
    """
    collector = _Collector()
    parser: Any = httptools.HttpRequestParser(collector)
    _feed(parser, data)
    fields = collector.fields
    if len(fields) > MAX_FIELDS or (len(data) > MAX_LINE_BYTES and _longest_line(data) > MAX_LINE_BYTES):
        raise HeadTooLarge(_LARGE)
    version = parser.get_http_version()
    hosts = sum(lower(name) == b"host" for name, _ in fields)
    if version not in {"1.0", "1.1"} or hosts > 1:  # RFC 9112, section 3.2
        raise BadRequest(_INVALID)
    return RequestHead(parser.get_method(), collector.target, fields, modern=version == "1.1")


def check_part(data: bytes) -> None:
    """Refuse at once what cannot become a head, such as a TLS handshake or a line without end.

    Raises:
        BadRequest: what is here of the head is not HTTP/1.1.
        HeadTooLarge: it is over a limit already.
    """
    if len(data) > MAX_HEAD_BYTES or _longest_line(data) > MAX_LINE_BYTES or data.count(b"\n") > MAX_FIELDS + 1:
        raise HeadTooLarge(_LARGE)
    _feed(httptools.HttpRequestParser(_Collector()), data)


def _feed(parser: Any, data: bytes) -> None:
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:  # an offer to switch protocols, which nobody has to take
        return
    except httptools.HttpParserError:
        raise BadRequest(_INVALID) from None


def _longest_line(data: bytes) -> int:
    return max(map(len, data.split(b"\n")))
