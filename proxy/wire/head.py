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
_FRAMING = _HOP_BY_HOP | frozenset((b"content-length",))
_EMPTY = Empty()
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
    """A response's status line and fields, and what they say about the body and the connection.

    ``notable`` holds the fields that were asked for and those of the framing, lower-case names, each with all of its
    values in their order.
    """

    __slots__ = ("_bounded", "_fields", "_lines", "framing", "keep_alive", "notable", "reason", "status")

    def __init__(self, status: int, reason: bytes, lines: list[bytes], *, keep_alive: bool) -> None:
        self.status = status
        self.reason = reason
        self.framing: Framing = _EMPTY
        self.keep_alive = keep_alive
        self.notable: dict[bytes, list[bytes]] = {}
        self._lines = lines
        self._fields: list[Field] | None = None
        self._bounded = False  # some of its fields stay on their hop

    @property
    def fields(self) -> list[Field]:
        """All fields, names as sent."""
        if self._fields is None:
            pairs = (line.partition(b":") for line in self._lines)
            self._fields = [(name, value.strip(b" \t")) for name, _, value in pairs]
        return self._fields

    def get(self, wanted: bytes) -> bytes | None:
        """The first value of a field that is notable, by its lower-case name."""
        values = self.notable.get(wanted)
        return values[0] if values else None


def noting(asked: frozenset[bytes] = frozenset()) -> frozenset[bytes]:
    """The fields that ``parse_response`` notes: those asked for, lower-case names, and those of the framing."""
    return asked | _FRAMING


def parse_response(data: bytes, method: bytes, noted: frozenset[bytes] = _FRAMING) -> ResponseHead:
    """Read one complete head, blank line included. ``noted``: see ``noting``.

    Raises:
        BadResponse: for anything that llhttp refuses in strict mode, such as two lengths, a length beside chunks,
            folded fields or a bare LF.
    """
    parser: Any = httptools.HttpResponseParser(_SILENT)
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        raise BadResponse("The upstream switched protocols, which was not asked for.", written=True) from None
    except httptools.HttpParserError as exc:
        raise BadResponse(f"The upstream's answer is not valid HTTP: {_reason(exc)}.", written=True) from None
    lines = data[:-4].split(b"\r\n")
    start = lines.pop(0)  # HTTP/1.1 200 OK: what the parser let through stands where it should
    head = ResponseHead(parser.get_status_code(), start[13:], lines, keep_alive=start[5:8] != b"1.0")
    notable = head.notable
    for line in lines:
        name, _, value = line.partition(b":")
        key = _LOWER.get(name) or lower(name)
        if key in noted:
            notable.setdefault(key, []).append(value.strip(b" \t"))
    head._bounded = not _HOP_BY_HOP.isdisjoint(notable)  # noqa: SLF001
    _read_framing(head, method)
    return head


class _Silent:
    """A parser's listener that wants to hear nothing: the fields are read by us, once it has let them pass."""

    __slots__ = ()


_SILENT = _Silent()


def _reason(exc: Exception) -> str:
    """The parser's own words, without bytes of the message in them."""
    return type(exc).__name__.removeprefix("HttpParser").removesuffix("Error") or "malformed head"


def _read_framing(head: ResponseHead, method: bytes) -> None:
    """Length, chunks or neither (RFC 9112, section 6.3), and whether the connection stays."""
    notable = head.notable
    if b"connection" in notable:
        for value in notable[b"connection"]:
            tokens = value.lower()
            head.keep_alive = b"close" not in tokens and (head.keep_alive or b"keep-alive" in tokens)
    if method == b"HEAD" or head.status in _BODYLESS or head.status < 200:
        return  # no body at all
    if b"transfer-encoding" in notable:
        last = b",".join(notable[b"transfer-encoding"]).rsplit(b",", 1)[-1].strip().lower()
        head.framing = Chunked() if last == b"chunked" else ToClose()
    elif b"content-length" in notable:
        head.framing = Sized(int(notable[b"content-length"][0]))
    else:
        head.framing = ToClose()
    if not head.framing.delimited:
        head.keep_alive = False


def response_head(head: ResponseHead, extra: bytes, *, close: bool, dechunk: bool) -> bytes:
    """The head written to the client: the upstream's own fields as they came, then ``extra``, whole lines of ours.

    ``dechunk`` is for HTTP/1.0 clients, which know no chunks. ``close`` announces that the connection ends.
    """
    lines = head._lines  # noqa: SLF001
    if head._bounded or dechunk:  # noqa: SLF001
        lines = _beyond_the_hop(head, dechunk=dechunk)
    start = b"HTTP/1.1 %d %b\r\n" % (head.status, head.reason)
    fields = b"\r\n".join(lines) + b"\r\n" if lines else b""
    return start + fields + extra + (b"Connection: close\r\n\r\n" if close else b"\r\n")


def _beyond_the_hop(head: ResponseHead, *, dechunk: bool) -> list[bytes]:
    """The lines that a client may see."""
    named: frozenset[bytes] = frozenset()
    for value in head.notable.get(b"connection", ()):
        named |= _named(value)
    unchunked = dechunk or head.status in _BODYLESS
    lines = []
    for line in head._lines:  # noqa: SLF001
        key = lower(line.partition(b":")[0])
        if key in _HOP_BY_HOP:
            if key != b"transfer-encoding" or unchunked:
                continue
        elif key in named or (dechunk and key == b"trailer"):
            continue
        lines.append(line)
    return lines


def field_line(name: bytes, value: bytes) -> bytes:
    """One field as it stands in a head."""
    return b"%b: %b\r\n" % (name, value)
