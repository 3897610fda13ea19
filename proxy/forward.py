"""What is decided about a request before it is sent: its conversation, and the id that it goes out on.

Local memory only, never a wait. What decides lives in ``conversation`` and ``pool``; this is the order of the steps.
"""

from pool.model import Source, Start, Wish
from proxy.conversation import body
from proxy.conversation.registry import Resolved
from proxy.daemon import Daemon
from proxy.entry import Entry
from proxy.exchange import Exchange
from proxy.incoming import Incoming
from proxy.wayout import unrouted


def choose(daemon: Daemon, exchange: Exchange, entry: Entry, incoming: Incoming) -> Start | None:
    """Tell the conversation of a request that is routed, and choose its id. None where that failed."""
    try:
        facts = model = None
        if incoming.arrived and incoming.kept:
            facts = body.read(incoming.chunks, incoming.size, entry.encoded, daemon.registry.prefixes)
            exchange.model = model = facts.model
            exchange.stream = facts.stream
        reading = entry.reading
        if reading is None or (facts is not None and facts.ids):
            reading = entry.read(facts)
        provider, now = entry.target.provider, exchange.at
        exchange.resolved = resolved = daemon.registry.resolve(reading, entry.scope, provider, facts, now)
        wish = _wish(resolved, provider, model or "", reading.parent is not None)
        if daemon.way_out.watched and not daemon.observing and daemon.way_out.bypasses(provider, now):
            exchange.bypassed = True
            start = unrouted(wish, now)
        else:
            start = daemon.routes.start(wish, now)
            if resolved.side:
                _join(daemon, start)
        if model is not None:
            daemon.targets.remember(entry.target, model, entry.head.fields, entry.scope)
    except Exception as exc:  # noqa: BLE001  (no fault of ours in choosing an id may fail a request)
        daemon.trouble("route_not_chosen", exc)
        start = None
    exchange.start = start
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


def _join(daemon: Daemon, start: Start) -> None:
    """A side call goes where its conversation is."""
    existing = daemon.routes.route_of(start.wish.conversation, start.wish.provider, None)
    if existing is not None and existing != start.routed_id:
        start.routed_id = existing
        start.source = Source.SPARE
