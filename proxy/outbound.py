"""The head of one request as it goes up: the client's fields, with the one session field that was decided."""

from functools import partial

from proxy.daemon import Daemon
from proxy.entry import Entry
from proxy.exchange import Exchange
from proxy.gateway.fields import rewrite
from proxy.wire.head import Field, request_head


def outbound_head(daemon: Daemon, exchange: Exchange, entry: Entry, length: int | None) -> bytes:
    """Make the head, and note in the exchange whether its session fields are still the client's own.

    ``length`` is that of the body, None where the head has none.
    """
    start, form = exchange.start, entry.form
    if form is None or start is None or exchange.bypassed:
        return _made(daemon, exchange, entry, length)
    natural, routed_id = start.wish.natural, start.routed_id
    session = routed_id.encode("latin-1")
    exchange.rewrote = session != form.sole or natural.minted or routed_id != natural.value
    return form.fill(session, length)


def _made(daemon: Daemon, exchange: Exchange, entry: Entry, length: int | None) -> bytes:
    """The head of a request whose own head is new, or gets no session id of ours."""
    start = exchange.start
    session, ours = None, False
    if start is None:
        session = _unnamed(daemon, exchange, entry)
    elif not exchange.bypassed:
        ours = not daemon.observing
        if ours:
            session = start.routed_id.encode("latin-1")
        elif daemon.lacks_session(entry.head.fields):
            session = start.wish.natural.value.encode("latin-1")
    form = entry.form_with(session=session is not None)
    if form is not None:
        sole, head = form.sole, form.fill(session, length)
    else:
        sole, head = _anew(daemon, exchange, entry.sized(length), entry, session, ours=ours)
    exchange.rewrote = False
    if ours and start is not None:
        natural = start.wish.natural
        exchange.rewrote = natural.minted or start.routed_id != natural.value or session != sole
    return head


def _unnamed(daemon: Daemon, exchange: Exchange, entry: Entry) -> bytes | None:
    """What is not routed keeps its session fields; an inference POST without any is given a minted one."""
    target, head = entry.target, entry.head
    if not (target.inference and head.method == b"POST" and daemon.lacks_session(head.fields)):
        return None
    unnamed = daemon.registry.unnamed(entry.scope, target.provider, exchange.at)
    return unnamed.natural.value.encode("latin-1")


def _anew(
    daemon: Daemon, exchange: Exchange, fields: list[Field], entry: Entry, session: bytes | None, *, ours: bool
) -> tuple[bytes | None, bytes]:
    """The head without a form, and the session in it where its fields are what the client's own would have been."""
    header = daemon.session_header
    own = rewrite(fields, session_header=header, session=None, parent=_nobody)
    sent = own
    if session is not None:
        parent = partial(_parent, daemon, exchange) if ours else _same
        sent = rewrite(fields, session_header=header, session=session, parent=parent)
    head = request_head(
        entry.head.method,
        entry.target.upstream,
        daemon.upstream.origin.host_field,
        sent,
        chunked=entry.head.chunked,
    )
    return session if sent == own else None, head


def _parent(daemon: Daemon, exchange: Exchange, value: bytes) -> bytes | None:
    """The routed id of the conversation that started this one, if it lives here."""
    label = daemon.registry.parent_label(exchange.scope, value)
    if label is None:
        return None
    routed: str | None = daemon.routes.route_of(label, exchange.target.provider, None)
    return routed.encode("latin-1") if routed is not None else None


def _nobody(_value: bytes) -> bytes | None:
    return None


def _same(value: bytes) -> bytes | None:
    return value
