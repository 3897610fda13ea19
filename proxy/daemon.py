"""The parts of a running daemon and the settings they obey. Everything else reads them here; nothing is global."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from config.load import Loaded
from config.settings import Settings
from pool.clock import Clock
from pool.keeper import Keeper
from pool.model import Note, Start
from pool.ports import Store
from pool.routes import Routes
from proxy import tap
from proxy.conversation.registry import Registry
from proxy.conversation.rules import NO_RULES, Rules
from proxy.counting import Counting
from proxy.errors import ProxyError
from proxy.exchange import Exchange
from proxy.gateway import signals
from proxy.gateway.fields import has_session_field
from proxy.gateway.paths import Target, base_path
from proxy.guard import Guard
from proxy.incoming import Buffers
from proxy.insight.events import EventLog, Noted
from proxy.insight.metrics import Metrics
from proxy.insight.redact import Redactor
from proxy.insight.usage import Ledger
from proxy.logs import log
from proxy.prober import Prober
from proxy.recall import Recall
from proxy.targets import Targets
from proxy.wayout import REASON, Change, WayOut, banner
from proxy.wire.head import Field
from proxy.wire.pool import Upstream

_TOLD_ELSEWHERE: Final = frozenset({"state_notice", "routing", "retire", "evict"})
_LEARNED: Final = ("provider", "model", "before", "regime", "because")  # what the log says of another belief


@dataclass
class Daemon:
    """One daemon. ``reconfigure`` compiles what the request path asks of the settings."""

    settings: Settings
    clock: Clock
    secret: bytes
    store: Store
    upstream: Upstream
    events: EventLog
    routes: Routes
    registry: Registry
    keeper: Keeper
    redactor: Redactor
    targets: Targets
    prober: Prober
    usage: Ledger
    metrics: Metrics = field(default_factory=Metrics)
    way_out: WayOut = field(default_factory=WayOut)
    loaded: Loaded | None = None
    started_at: int = 0
    address: str = ""
    ready: bool = False
    stopping: bool = False
    aborting: bool = False
    problems: dict[str, str] = field(default_factory=dict)  # what is wrong, by part, for status and ready
    clients: set[Any] = field(default_factory=set)  # the open connections; kept by the edge
    refresh: Callable[[], None] | None = None  # asks the refill for a cycle now; set by upkeep
    tasks: asyncio.TaskGroup | None = None  # the parent of every task of a request; set by serve
    recall: Recall | None = None  # while conversations of earlier runs are read; set by upkeep
    search: Callable[[Start], Awaitable[Start]] | None = None  # the budgeted acquisition; set by upkeep

    def __post_init__(self) -> None:
        self.started_at = self.clock.wall_ms()
        self.counting = Counting(self.metrics, self.upstream.origin.host_field.decode("latin-1"))
        self.buffers = Buffers(self.settings.listen.max_buffered_bytes)
        self._compile(self.settings)

    def _compile(self, settings: Settings) -> None:
        self.settings = settings
        self.guard = Guard.of(settings)
        self.rules = Rules.compile(settings.conversation.rules) if settings.conversation.rules else NO_RULES
        self.default_path = settings.upstream.default_path
        self.base_path = base_path(settings.upstream.base_url)
        self.origin = self.upstream.origin.host_field.decode("latin-1")
        self.session_header = settings.upstream.session_header.encode("latin-1")
        self.max_body_bytes = settings.listen.max_body_bytes
        self.buffers.limit = settings.listen.max_buffered_bytes
        self.max_replays = settings.recovery.max_replays
        self.replay_max_bytes = settings.recovery.replay_max_bytes
        self.fill_missing = settings.routing.fill_missing_session and settings.routing.mode != "off"
        self.observing = settings.routing.mode == "observe"
        self.expose = settings.headers.expose
        self.has_timers = bool(settings.stall.idle_timeout_ms or settings.stall.total_timeout_ms)
        self._apis = frozenset(settings.routing.apis) if settings.routing.mode != "off" else frozenset()
        self._providers = frozenset(settings.routing.providers)
        profiles = {settings.probe.profile, *(settings.profile_for(model) for model in settings.models)}
        self._paced = "throughput" in profiles and settings.routing.mode != "off"

    def reconfigure(self, loaded: Loaded) -> None:
        """Obey other settings from the next request on."""
        self.loaded = loaded
        self._compile(loaded.settings)
        self.routes.reconfigure(
            loaded.settings, shared_key=loaded.settings.probe.api_key is not None, now=self.clock.wall_ms()
        )
        self.registry.reconfigure(loaded.settings)
        self.keeper.reconfigure(loaded.settings)
        self.targets.reconfigure(loaded.settings)
        self.prober.reconfigure(loaded.settings)
        self.usage.prices_path = loaded.settings.pricing.path

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task for what has to wait. It must not raise: it would take the daemon along."""
        assert self.tasks is not None
        return self.tasks.create_task(work)

    @property
    def in_flight(self) -> list[Any]:
        """The connections with a request."""
        return [client for client in self.clients if client.relay is not None]

    def routed(self, target: Target) -> bool:
        """Does this target get a conversation's id? By API and provider; ``routing.mode = off`` routes nothing."""
        return target.api in self._apis and target.provider in self._providers

    def paces(self, model: str | None) -> bool:
        """Are this model's routes chosen by speed, so that its answers are timed to their last token?"""
        return self._paced and model is not None and self.settings.profile_for(model) == "throughput"

    def lacks_session(self, fields: list[Field]) -> bool:
        """Must the session field be filled in although nothing else is changed?"""
        return self.fill_missing and not has_session_field(fields)

    def not_probing(self, now: int) -> dict[str, str | None]:
        """Why no probes are sent, by provider; None where they may be."""
        if self.settings.routing.mode == "off" or not self.settings.probe.enabled:
            setting = "routing.mode = off" if self.settings.routing.mode == "off" else "probe.enabled = false"
            return dict.fromkeys(self.settings.routing.providers, setting)
        reasons: dict[str, str | None] = {}
        for provider in self.settings.routing.providers:
            paused = self.routes.paused(provider, None, now)
            reasons[provider] = self.targets.missing(provider) or (paused[1] if paused is not None else None)
        return reasons

    def note(self, note: Note, exchange: Exchange | None = None) -> None:
        """Log a decision of the pool; what it has to say about the state file is for people too."""
        facts = note.facts if exchange is None else {**note.facts, "request": exchange.id}
        self.counting.decisions[note.name] += 1
        if note.name in _TOLD_ELSEWHERE:
            self._tell(note)
        self.events.note(Noted(note.name, self.clock.wall_ms(), facts))

    def _tell(self, note: Note) -> None:
        """What is said of a decision in other places than the event log."""
        facts = note.facts
        if note.name == "state_notice":
            log.warning(str(facts.get("text")), part="state")
        elif note.name == "routing":
            log.info("routing", **{name: facts.get(name) for name in _LEARNED})
        elif facts.get("reason") != "room":
            self.metrics.count(
                "retirements",
                provider=facts.get("provider", ""),
                model=facts.get("model", ""),
                reason=facts.get("reason", ""),
            )

    def bypass(self, provider: str, change: Change) -> None:
        """Say that a provider is bypassed from now on, or no more; no probes are sent meanwhile."""
        if change is Change.BEGUN:
            self.routes.pause(provider, None, None, REASON)
        else:
            self.routes.resume(provider, REASON)
        self.problem(f"session_{provider}", banner(provider) if change is Change.BEGUN else None)
        self.counting.decisions[change.value] += 1
        self.events.emit("bypass" if change is Change.BEGUN else "bypass_over", provider=provider)

    def refused(self, error: ProxyError) -> None:
        """Note an answer of our own, with its cause, where the client's own log would not show it."""
        self.metrics.count("errors", code=error.code)
        if error.status >= 500:
            log.warning("request not relayed", code=error.code, reason=error.message)
        else:
            log.info("request refused", code=error.code, reason=error.message)

    def trouble(self, what: str, exc: BaseException) -> None:
        """Something that should not have happened; traffic goes on."""
        log.error(what, exc_info=exc)

    def problem(self, part: str, text: str | None) -> None:
        """One clear line when a part starts or stops working; ``status`` shows it meanwhile."""
        if text == self.problems.get(part):
            return
        if text is None:
            self.problems.pop(part, None)
            log.info("works again", part=part)
        else:
            self.problems[part] = text
            log.warning(text, part=part)


def upstream_of(settings: Settings, clock: Clock) -> Upstream:
    """The upstream that the settings describe.

    Raises:
        OSError: ``upstream.ca_file`` cannot be read.
    """
    section = settings.upstream
    return Upstream(
        section.base_url,
        clock=clock,
        connect_timeout_ms=section.connect_timeout_ms,
        keepalive_ms=section.keepalive_ms,
        ca_file=Path(section.ca_file) if section.ca_file is not None else None,
        proxy=proxy_of(settings),
        asked=signals.FIELDS | tap.FIELDS,
    )


def proxy_of(settings: Settings) -> str | None:
    """The HTTP proxy to use: none unless the setting names one, or says ``env`` and the environment does."""
    named = settings.upstream.proxy
    if named != "env":
        return named
    import urllib.request  # noqa: PLC0415 - brings a client for HTTP and a parser for mail along

    host = settings.upstream.base_url.partition("://")[2].partition("/")[0]
    if urllib.request.proxy_bypass_environment(host):  # type: ignore[attr-defined]
        return None
    scheme = settings.upstream.base_url.partition("://")[0]
    found = urllib.request.getproxies_environment()
    return found.get(scheme) or found.get("all")
