"""What follows from a request's head alone, under the settings in force: may it come in, where it goes, who asks.

A client sends the same head again and again, but for the length of its body; so what was made of it once is
remembered, and parsed, checked, resolved and rewritten once for all of them.
"""

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
_LONGEST_LENGTH: Final = 12


class Entry:
    """One head, of all requests that have it but for their length; the length in ``head`` is the first one's.

    ``admitted``: it was let in. ``origin`` is the page of ``listen.allowed_origins`` that asks, ``allowed``
    what it wants to read in every answer, as it stands in a head.
    """

    __slots__ = (
        "_daemon",
        "_forms",
        "_reading",
        "_scope",
        "_token_scope",
        "admitted",
        "allowed",
        "encoded",
        "head",
        "origin",
        "preflight",
        "remembered",
        "routed",
        "target",
    )

    def __init__(self, daemon: Daemon, head: RequestHead) -> None:
        seen, guard = head.seen, daemon.guard
        self._daemon = daemon
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
        self._token_scope: str | None = None
        self._scope: str | None = None
        self._reading: Reading | None = None
        self._forms: tuple[Form | None, Form] | None = None

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
        if guard.tokens and not open_to_all:
            sent = target.token.encode() if target.token is not None else seen.get(b"x-ocpool-token")
            self._token_scope = guard.check_token(sent)
        if b"websocket" in seen.get(b"upgrade", b"").lower():
            raise UpgradeRefused("WebSocket is not served here; use plain HTTP.")
        self.admitted = True

    @property
    def scope(self) -> str:
        """Who asks: 16 hex, see ``scopes.py``."""
        if self._scope is None:
            self._scope = scope_of(self._token_scope, self.head.fields, self._daemon.secret)
        return self._scope

    def reading(self, facts: BodyFacts | None) -> Reading:
        """Which conversation the client's ids say it is; of the body only its own ids matter."""
        if facts is not None and facts.ids:
            return self._read(facts)
        if self._reading is None:
            self._reading = self._read(facts)
        return self._reading

    def _read(self, facts: BodyFacts | None) -> Reading:
        target = self.target
        path = target.upstream.decode("latin-1")
        return ids.read_ids(self.head.fields, target.named, facts, self._daemon.rules, path)

    def sized(self, length: int | None) -> list[Field]:
        """The fields with the length of this request's body: the head is that of the first one that was like it."""
        if length is None:
            return self.head.fields
        value = b"%d" % length
        return [(name, value if lower(name) == b"content-length" else sent) for name, sent in self.head.fields]

    def form(self, *, rewritten: bool) -> Form | None:
        """The head that goes upstream with its blanks; None where it must be made for each request anew."""
        if not self.remembered:
            return None
        if self._forms is None:
            daemon = self._daemon
            host = daemon.upstream.origin.host_field
            upward = self.head, self.target.upstream, host, daemon.session_header
            plain = form_of(*upward, rewritten=False)
            assert plain is not None
            self._forms = form_of(*upward, rewritten=True), plain
        return self._forms[0 if rewritten else 1]


class Entrance:
    """Reads heads, and remembers the last few hundred of them for as long as the settings stay."""

    __slots__ = ("_daemon", "_known", "_settings")

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._known: dict[bytes, Entry] = {}
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
        cut = _length_in(data)
        if cut is None:
            head = parse_request(data)
            return Entry(daemon, head), head.length
        start, end = cut
        key = data[:start] + data[end:]
        entry = known.get(key)
        if entry is None:
            entry = Entry(daemon, parse_request(data))
            if len(known) >= _REMEMBERED:
                known.clear()
            known[key] = entry
        else:
            entry.remembered = True
        return entry, int(data[start:end])


def _length_in(data: bytes) -> tuple[int, int] | None:
    """Where the digits of a head's length stand, if it is written in one of the usual two ways.

    A head that has two is refused by the parser when it is first seen with one of them cut out, and never remembered.
    """
    if len(data) > _REMEMBERED_BYTES:
        return None
    for field in _LENGTH_FIELDS:
        start = data.find(field)
        if start >= 0:
            start += len(field)
            end = data.find(b"\r\n", start)
            digits = data[start:end]
            # The length goes up as a number again, so it must be written as one is.
            plain = digits.isdigit() and len(digits) <= _LONGEST_LENGTH and (digits[:1] != b"0" or digits == b"0")
            return (start, end) if plain else None
    return None
