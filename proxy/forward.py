"""What is decided about a request before it is sent: its conversation, and the id that it goes out on.

Local memory only, never a wait. What decides lives in ``conversation`` and ``pool``; this is the order of the steps.
"""

from pool.model import Source, Start, Wish
from proxy.conversation import body
from proxy.conversation.registry import Resolved
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
    model = exchange.model
    provider = exchange.target.provider
    wish = _wish(resolved, provider, model or "", exchange.child)
    if not daemon.observing and daemon.way_out.bypasses(provider, exchange.at):
        exchange.bypassed = True
        start = unrouted(wish, exchange.at)
    else:
        start = daemon.routes.start(wish, exchange.at)
        if resolved.side:
            existing = daemon.routes.route_of(wish.conversation, provider, None)
            if existing is not None and existing != start.routed_id:
                start.routed_id = existing
                start.source = Source.SPARE
    exchange.start = start
    if model is not None:
        daemon.targets.remember(exchange.target, model, entry.head.fields, exchange.scope)
    return start


def _wish(resolved: Resolved, provider: str, model: str, child: bool) -> Wish:
    """What the request asks of the pool: what the last one of its conversation asked, unless they differ."""
    conversation, turn = resolved.conversation, resolved.turn
    wish = conversation.wish
    if (
        wish is None
        or wish.model != model
        or wish.provider != provider
        or wish.turn is not turn
        or wish.child is not child
    ):
        wish = conversation.wish = Wish(
            conversation.label,
            conversation.scope,
            provider,
            model,
            conversation.shape,
            conversation.natural,
            turn,
            child,
        )
    return wish


def _fill(daemon: Daemon, exchange: Exchange, entry: Entry) -> None:
    """What is not routed keeps its session fields; an inference POST without any is given a minted one."""
    if not (exchange.target.inference and exchange.method == b"POST"):
        return
    exchange.scope = entry.scope
    if not daemon.fill_missing or fields.has_session_field(entry.head.fields):
        return
    unnamed = daemon.registry.unnamed(exchange.scope, exchange.target.provider, exchange.at)
    exchange.filled = unnamed.natural.value.encode("latin-1")
