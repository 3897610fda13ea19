"""What follows from a request's head alone, under the settings in force: may it come in, where it goes, who asks.

A client sends the same head again and again, but for the length of its body; so what was made of it once is
remembered, and parsed, checked, resolved and rewritten once for all of them.
"""

import re
from typing import Final

from proxy.arrival import RequestHead, parse_request
from proxy.conversation import ids
from proxy.conversation.body import BodyFacts
from proxy.conversation.ids import Reading
from proxy.conversation.scopes import scope_of
from proxy.daemon import Daemon
from proxy.errors import BadTarget, UpgradeRefused
from proxy.gateway import paths
from proxy.guard import allow_origin
from proxy.upward import Form, form_of
from proxy.wire.head import Field, field_line, lower

_OPEN_PAGES = (b"/-/health", b"/-/ready")
_REMEMBERED: Final = 512
_REMEMBERED_BYTES: Final = 8_192
_LENGTH_FIELDS = (b"\r\nContent-Length: ", b"\r\ncontent-length: ")
# The length goes up as a number again, so it must be written as one is.
_LENGTH: Final = re.compile(rb"(?:0|[1-9][0-9]{0,11})(?=\r\n)")


class Entry:
    """One head, of all requests that have it but for their length; the length in ``head`` is the first one's.

    ``admitted``: it was let in, and ``scope`` is who asks, 16 hex, see ``scopes.py``. ``origin`` is the page of
    ``listen.allowed_origins`` that asks, ``allowed`` what it wants to read in every answer, as it stands in a head.
    ``settings`` are those under which all this holds. ``reading`` is what the client's ids say, once it was asked for;
    ``form`` the head that goes upstream with the id we chose, where it came before and can have one.
    """

    __slots__ = (
        "_after",
        "_before",
        "_begins_at",
        "_daemon",
        "_forms",
        "admitted",
        "allowed",
        "encoded",
        "form",
        "head",
        "origin",
        "preflight",
        "reading",
        "remembered",
        "routed",
        "scope",
        "settings",
        "target",
    )

    def __init__(self, daemon: Daemon, head: RequestHead, before: bytes = b"", after: bytes = b"") -> None:
        seen, guard = head.seen, daemon.guard
        self._daemon = daemon
        self._before = before  # of the digits of its length
        self._begins_at = len(before)
        self._after = after
        self.settings = daemon.settings
        self.head = head
        self.target = target = paths.resolve(head.target, daemon.default_path, daemon.base_path)
        self.routed = not target.own and daemon.routed(target)
        origin = seen.get(b"origin")
        self.origin = origin if origin is not None and guard.allowed_origin(origin) else None
        self.allowed = b"".join(field_line(*field) for field in allow_origin(self.origin))
        asks = b"access-control-request-method" in seen and head.method == b"OPTIONS"
        self.preflight = asks and bool(guard.origins)
        self.encoded = seen.get(b"content-encoding", b"identity").strip().lower() != b"identity"
        self.admitted = False
        self.remembered = False  # it came before: what is made of it will be needed again
        self.scope = ""
        self.reading: Reading | None = None
        self.form: Form | None = None
        self._forms: tuple[Form | None, Form | None] | None = None

    def admit(self) -> None:
        """Check who asks for what.

        Raises:
            ProxyError: it may not come in.
        """
        guard, seen, target = self._daemon.guard, self.head.seen, self.target
        guard.check_host(seen.get(b"host"))
        if b"origin" in seen or b"sec-fetch-site" in seen:
            guard.check_origin(seen)
        if target.bad is not None or self.head.method == b"CONNECT":
            raise BadTarget(f"This proxy takes paths only: {target.bad or 'CONNECT is not served'}.")
        open_to_all = self.preflight or (target.own and target.upstream.partition(b"?")[0] in _OPEN_PAGES)
        scope = None
        if guard.tokens and not open_to_all:
            sent = target.token.encode() if target.token is not None else seen.get(b"x-ocpool-token")
            scope = guard.check_token(sent)
        if b"websocket" in seen.get(b"upgrade", b"").lower():
            raise UpgradeRefused("WebSocket is not served here; use plain HTTP.")
        self.scope = scope_of(scope, self.head.fields, self._daemon.secret)
        self.admitted = True

    def read(self, facts: BodyFacts | None) -> Reading:
        """Which conversation the client's ids say it is; of the body only its own ids matter."""
        target = self.target
        path = target.upstream.decode("latin-1")
        reading = ids.read_ids(self.head.fields, target.named, facts, self._daemon.rules, path)
        if facts is None or not facts.ids:
            self.reading = reading
        return reading

    def sized(self, length: int | None) -> list[Field]:
        """The fields with the length of this request's body: the head is that of the first one that was like it."""
        if length is None:
            return self.head.fields
        value = b"%d" % length
        return [(name, value if lower(name) == b"content-length" else sent) for name, sent in self.head.fields]

    def form_with(self, *, session: bool) -> Form | None:
        """The head that goes upstream with its blanks; None where it must be made for each request anew."""
        if not self.remembered:
            return None
        if self._forms is None:
            daemon = self._daemon
            host = daemon.upstream.origin.host_field
            upward = self.head, self.target.upstream, host, daemon.session_header
            self._forms = form_of(*upward, rewritten=False), form_of(*upward, rewritten=True)
            if not daemon.observing:
                self.form = self._forms[1]
        return self._forms[session]

    def length_in(self, data: bytes) -> tuple[int, int] | None:
        """The length in ``data``, and where its body begins, if it begins with this head but for the length."""
        if data.startswith(self._before):
            found = _LENGTH.match(data, self._begins_at)
            if found is not None:
                after, end = self._after, found.end()
                if data.startswith(after, end):
                    return int(found[0]), end + len(after)
        return None


class Entrance:
    """Reads heads, and remembers the last few hundred of them for as long as the settings stay."""

    __slots__ = ("_daemon", "_known", "_settings")

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._known: dict[tuple[bytes, bytes], Entry] = {}
        self._settings = daemon.settings

    def enter(self, data: bytes) -> tuple[Entry, int | None]:
        """Read one complete head, blank line included. Returns what it is, and its Content-Length if it has one.

        Raises:
            BadRequest: it is no head of HTTP/1.1.
            HeadTooLarge: it is over our limits.
        """
        daemon, known = self._daemon, self._known
        if self._settings is not daemon.settings:
            known.clear()
            self._settings = daemon.settings
        before, digits, after = _split(data)
        if not digits:
            head = parse_request(data)
            return Entry(daemon, head), head.length
        key = before, after
        entry = known.get(key)
        if entry is None:
            entry = Entry(daemon, parse_request(data), before, after)
            if len(known) >= _REMEMBERED:
                known.clear()
            known[key] = entry
        else:
            entry.remembered = True
        return entry, int(digits)


def _split(head: bytes) -> tuple[bytes, bytes, bytes]:
    """A head around the digits of its length; without digits where it is not written in one of the usual two ways.

    A head that has two is refused by the parser when it is first seen with one of them cut out, and never remembered.
    """
    if len(head) <= _REMEMBERED_BYTES:
        for field in _LENGTH_FIELDS:
            start = head.find(field)
            if start >= 0:
                found = _LENGTH.match(head, start + len(field))
                return (head[: found.start()], found[0], head[found.end() :]) if found is not None else (head, b"", b"")
    return head, b"", b""
