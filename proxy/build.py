"""How the parts of a daemon are put together."""

from config import paths
from config.load import Loaded
from pool.bindings import Bindings
from pool.clock import Clock
from pool.inventory import Inventory
from pool.keeper import Keeper
from pool.routes import Routes
from pool.stores.file import FileStore
from proxy.conversation.evidence import Evidence
from proxy.conversation.registry import Registry
from proxy.conversation.scopes import load_secret
from proxy.daemon import Daemon, upstream_of
from proxy.insight.events import EventLog
from proxy.insight.redact import Redactor
from proxy.logs import log
from proxy.prober import Prober
from proxy.targets import Targets


def build(loaded: Loaded, clock: Clock, redactor: Redactor) -> Daemon:
    """Put the daemon's parts together. Blocking, for the start: it reads the secret.

    Raises:
        OSError: ``upstream.ca_file`` cannot be read.
    """
    settings = loaded.settings
    upstream = upstream_of(settings, clock)
    configured = settings.state.secret.get_secret_value() if settings.state.secret is not None else None
    secret, warning = load_secret(paths.key_path(settings), configured)
    routes = Routes(settings, Inventory(), Bindings(settings), shared_key=settings.probe.api_key is not None)
    store = FileStore(paths.state_path(settings))
    targets = Targets(settings)
    daemon = Daemon(
        settings=settings,
        clock=clock,
        secret=secret,
        store=store,
        upstream=upstream,
        events=EventLog(
            paths.events_path(settings),
            settings.state.events_max_bytes,
            settings.state.events_keep,
            clock,
            redactor=redactor,
            warn=log.warning,
        ),
        routes=routes,
        registry=Registry(settings, secret, routes.natural_holder, Evidence(settings, secret)),
        keeper=Keeper(settings, routes, store),
        redactor=redactor,
        targets=targets,
        prober=Prober(upstream, clock, settings),
        loaded=loaded,
    )
    if warning is not None:
        daemon.problem("secret", warning)
    return daemon
