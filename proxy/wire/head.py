"""Message heads as bytes: what is read from a response, what is written in either direction.

Hop-by-hop fields and the fields named by ``Connection`` stay on their own hop (RFC 9110, section 7.6.1). All other
fields keep their value, order, case and multiplicity.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import httptools

from proxy.errors import BadResponse
from proxy.wire.framing import Chunked, Framing, Sized, ToClose

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
# A line of such a field, but for Transfer-Encoding, which goes on beside the chunks that it announces.
_HOP_LINE = re.compile(
    rb"\r\n(?i:%b):[^\r\n]*" % b"|".join(sorted(name for name in _HOP_BY_HOP if name != b"transfer-encoding"))
)
# A Connection field that names one of these is an attack on framing, routing or credentials, or says nothing new.
_NEVER_NAMED = _HOP_BY_HOP | frozenset(
    (b"", b"close", b"host", b"content-length", b"content-type", b"content-encoding", b"authorization")
)
_WATCHED = _HOP_BY_HOP | frozenset((b"host", b"content-length"))
_BODYLESS = frozenset((204, 304))
_FRAMING = _HOP_BY_HOP | frozenset((b"content-length",))
# Fields whose lines may be read as one (RFC 9110, section 5.3); of any other the first line counts.
_LISTS = frozenset((b"connection", b"transfer-encoding", b"content-encoding", b"server-timing"))
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


class Noting:
    """Which fields of an answer are noted: those asked for, lower-case names, and those of the framing."""

    __slots__ = ("find",)

    def __init__(self, asked: frozenset[bytes] = frozenset()) -> None:
        beginnings: dict[bytes, list[bytes]] = {}
        for name in sorted(asked | _FRAMING):
            beginnings.setdefault(name[:1], []).append(re.escape(name[1:]))
        # Most lines are none of these, which their first letter tells.
        names = b"|".join(
            b"[%b%b](?i:%b)" % (first, first.upper(), b"|".join(rest)) for first, rest in beginnings.items()
        )
        self.find = re.compile(rb"\r\n(%b):[ \t]*([^\r\n]*[^ \t\r\n])?" % names).findall


_NOTING = Noting()


class ResponseHead:
    """A response's status line and fields, and what they say about the body and the connection.

    ``notable`` holds the fields that were asked for and those of the framing, by their lower-case names; ``get`` gives
    a value of it, or None. Of a field that came more than once it is the first value, or all of them where the field
    is a list (RFC 9110, section 5.3). ``length`` is the body's where it is known, 0 where there is none.
    """

    __slots__ = (
        "_crosses", "_data", "_fields", "chunked", "delimited", "get", "keep_alive", "length", "notable", "status",
    )  # fmt: skip

    def __init__(self, status: int, data: bytes, method: bytes, noted: Noting) -> None:
        self.status = status
        self._data = data
        self._fields: list[Field] | None = None
        self.notable = notable = _notable(noted.find(data))
        self.get = notable.get
        modern = data.startswith(b"HTTP/1.1 ")
        bounded = not _HOP_BY_HOP.isdisjoint(notable)
        self._crosses = modern and not bounded  # nothing of it stays on its hop: it goes on as it came
        self.keep_alive = modern
        self.chunked = False
        self.delimited = True
        self.length: int | None = None
        if method == b"HEAD" or status < 200 or status in _BODYLESS:
            self.length = 0
        elif b"content-length" in notable:
            self.length = int(notable[b"content-length"])
        else:
            self.chunked = self.delimited = _is_chunked(notable)
        if bounded and b"connection" in notable:
            tokens = notable[b"connection"].lower()
            self.keep_alive = b"close" not in tokens and (modern or b"keep-alive" in tokens)
        if not self.delimited:
            self.keep_alive = False

    @property
    def fields(self) -> list[Field]:
        """All fields, names as sent."""
        if self._fields is None:
            pairs = (line.partition(b":") for line in self._data[:-4].split(b"\r\n")[1:])
            self._fields = [(name, value.strip(b" \t")) for name, _, value in pairs]
        return self._fields

    def framing(self) -> Framing:
        """What finds the end of the body (RFC 9112, section 6.3)."""
        if self.length is not None:
            return Sized(self.length)
        return Chunked() if self.chunked else ToClose()


def _notable(found: list[Field]) -> dict[bytes, bytes]:
    """Fields by their lower-case names."""
    notable: dict[bytes, bytes] = {}
    for name, value in found:
        key = name.lower()
        if key not in notable:
            notable[key] = value
        elif key in _LISTS:
            notable[key] += b", " + value
    return notable


def _is_chunked(notable: dict[bytes, bytes]) -> bool:
    """Is chunked the last of the transfer codings?"""
    return notable.get(b"transfer-encoding", b"").rsplit(b",", 1)[-1].strip().lower() == b"chunked"


def parse_response(data: bytes, method: bytes, noted: Noting = _NOTING) -> ResponseHead:
    """Read one complete head, blank line included.

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
    return ResponseHead(parser.get_status_code(), data, method, noted)


class _Silent:
    """A parser's listener that wants to hear nothing: the fields are read by us, once it has let them pass."""

    __slots__ = ()


_SILENT = _Silent()


def _reason(exc: Exception) -> str:
    """The parser's own words, without bytes of the message in them."""
    return type(exc).__name__.removeprefix("HttpParser").removesuffix("Error") or "malformed head"


def response_head(head: ResponseHead, extra: bytes, *, close: bool, dechunk: bool) -> bytes:
    """The head written to the client: the upstream's own fields as they came, then ``extra``, whole lines of ours.

    ``dechunk`` is for HTTP/1.0 clients, which know no chunks. ``close`` announces that the connection ends.
    """
    data = head._data if head._crosses and not dechunk else _beyond_the_hop(head, dechunk=dechunk)  # noqa: SLF001
    return data[:-2] + extra + (b"Connection: close\r\n\r\n" if close else b"\r\n")


def _beyond_the_hop(head: ResponseHead, *, dechunk: bool) -> bytes:
    """The head with those lines only that a client may see."""
    data = b"HTTP/1.1 " + head._data.partition(b" ")[2]  # noqa: SLF001
    named = _named(head.notable.get(b"connection", b""))
    unchunked = dechunk or head.status in _BODYLESS
    if not named and not unchunked:
        return _HOP_LINE.sub(b"", data)
    start, *lines = data.split(b"\r\n")
    crossing = [start]
    for line in lines:
        key = lower(line.partition(b":")[0])
        if key in _HOP_BY_HOP:
            if key != b"transfer-encoding" or unchunked:
                continue
        elif key in named or (dechunk and key == b"trailer"):
            continue
        crossing.append(line)
    return b"\r\n".join(crossing)


def field_line(name: bytes, value: bytes) -> bytes:
    """One field as it stands in a head."""
    return b"%b: %b\r\n" % (name, value)
