"""May a refused request be sent once more, and on what?"""

from pool.model import Start
from proxy.daemon import Daemon
from proxy.exchange import Exchange
from proxy.incoming import Incoming
from proxy.verdict import Verdict
from proxy.wayout import unrouted


def replay_start(daemon: Daemon, exchange: Exchange, incoming: Incoming, verdict: Verdict) -> Start | None:
    """What the request goes out on once more: another id, or what its client itself sent. None: it does not."""
    if exchange.start is None or not _replayable(daemon, exchange, incoming, verdict):
        return None
    now = daemon.clock.wall_ms()
    if verdict.retires:
        return daemon.routes.replace(exchange.start, now)
    names = exchange.refusal is not None and exchange.refusal.names_session
    return unrouted(exchange.start.wish, now) if names else None


def _replayable(daemon: Daemon, exchange: Exchange, incoming: Incoming, verdict: Verdict) -> bool:
    return (
        verdict.retryable
        and not exchange.replayed
        and not daemon.observing
        and daemon.max_replays > 0
        and incoming.complete
        and incoming.size <= daemon.replay_max_bytes
    )
