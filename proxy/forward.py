"""What is decided about a request before it is sent: its conversation, and the id that it goes out on.

Local memory only, never a wait. What decides lives in ``conversation`` and ``pool``; this is the order of the steps.
"""

from pool.model import Source, Start, Wish
from proxy.conversation import body
from proxy.daemon import Daemon
from proxy.entry import Entry
from proxy.exchange import Exchange
from proxy.gateway import fields
from proxy.incoming import Incoming
from proxy.wayout import unrouted


def prepare(daemon: Daemon, exchange: Exchange, entry: Entry, incoming: Incoming) -> Start | None:
    """Choose the id. None where nothing is chosen: the request is not routed, or the choice failed."""
    exchange.bytes_in = incoming.size
    if not exchange.routed:
        _fill(daemon, exchange, entry)
        return None
    try:
        _identify(daemon, exchange, entry, incoming)
        return _start(daemon, exchange, entry)
    except Exception as exc:  # noqa: BLE001  (no fault of ours in choosing an id may fail a request)
        daemon.trouble("route_not_chosen", exc)
        exchange.start = None
        _fill(daemon, exchange, entry)
        return None


def _identify(daemon: Daemon, exchange: Exchange, entry: Entry, incoming: Incoming) -> None:
    """Which conversation is this?"""
    if incoming.complete:
        exchange.facts = body.read(incoming.chunks, incoming.size, entry.encoded, daemon.registry.prefixes)
    reading = entry.reading(exchange.facts)
    exchange.scope = entry.scope
    exchange.child = reading.parent is not None
    exchange.resolved = daemon.registry.resolve(
        reading, exchange.scope, exchange.target.provider, exchange.facts, exchange.at
    )
    exchange.match = exchange.resolved.match


def _start(daemon: Daemon, exchange: Exchange, entry: Entry) -> Start:
    """The id it goes out on."""
    resolved = exchange.resolved
    assert resolved is not None
    conversation = resolved.conversation
    model = exchange.model
    provider = exchange.target.provider
    wish = Wish(
        conversation.label,
        exchange.scope,
        provider,
        model or "",
        conversation.shape,
        conversation.natural,
        resolved.turn and model is not None and daemon.serves_model(model),
        exchange.child,
    )
    if not daemon.observing and daemon.way_out.bypasses(provider, exchange.at):
        exchange.bypassed = True
        start = unrouted(wish, exchange.at)
    else:
        start = daemon.routes.start(wish, exchange.at)
        if resolved.side:
            existing = daemon.routes.route_of(conversation.label, provider, None)
            if existing is not None and existing != start.routed_id:
                start.routed_id = existing
                start.source = Source.SPARE
    exchange.start = start
    if model is not None:
        daemon.targets.remember(exchange.target, model, entry.head.fields, exchange.scope)
    return start


def _fill(daemon: Daemon, exchange: Exchange, entry: Entry) -> None:
    """What is not routed keeps its session fields; an inference POST without any is given a minted one."""
    if not (exchange.target.inference and exchange.method == b"POST"):
        return
    exchange.scope = entry.scope
    if not daemon.fill_missing or fields.has_session_field(entry.head.fields):
        return
    unnamed = daemon.registry.unnamed(exchange.scope, exchange.target.provider, exchange.at)
    exchange.filled = unnamed.natural.value.encode("latin-1")
