"""The daemon's life: bind, read the state, accept, drain, stop. ``run`` returns the process's exit code.

Sockets are bound before anything else is touched, so that a second instance on the port exits at once and leaves the
first one's files alone. Under systemd they may be passed to us; then they outlive us, and nobody is refused while one
daemon follows another.
"""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import proxy
from config import paths
from config.load import Loaded, SettingsError
from config.reload import Watch, carried, diff
from pool.clock import Clock
from proxy import runtime
from proxy.build import build
from proxy.daemon import Daemon
from proxy.edge import Edge
from proxy.insight.redact import Redactor, secrets_in
from proxy.logs import log
from proxy.notify import READY, STOPPING, notify, reloading
from proxy.process import hurry_the_loop, load_the_rest, loop_trouble, started
from proxy.sockets import NotListeningError, listening, raise_file_limit, url_of
from proxy.upkeep import Upkeep

if TYPE_CHECKING:
    from proxy.pages import Control

LoadControl = Callable[[], "Control"]  # called when a page is first asked for
OK, FAILED, BAD_SETTINGS, PORT_TAKEN = 0, 1, 2, 3

_BACKLOG = 1024
_CONFIG_TICK_S = 2.0
_ABORT_GRACE_S = 1.0
_ACCEPT_TRIES = 16
_ACCEPT_TURNS = 4  # of the event loop, within which a connection that was accepted is announced to its protocol
_ARRIVAL_S = 0.2  # a connection that was accepted has its request here by then
_WARM_AFTER_S = 0.5


def run(loaded: Loaded, *, control: LoadControl, reload: Callable[[], Loaded] | None = None) -> int:
    """Serve until a signal says stop."""
    settings = loaded.settings
    hurry_the_loop()
    redactor = Redactor(secrets_in(settings))
    log.configure(
        level=settings.log.level,
        form=settings.log.format,
        path=Path(settings.log.path) if settings.log.path is not None else None,
        redactor=redactor,
    )
    try:
        sockets = listening(settings.listen)
    except NotListeningError as exc:
        log.ready()
        log.error(str(exc))
        log.close()
        return {NotListeningError.TAKEN: PORT_TAKEN, NotListeningError.OPEN: BAD_SETTINGS}.get(exc.why, FAILED)
    raise_file_limit()
    try:
        with asyncio.Runner(loop_factory=loop_factory(settings.listen.loop)) as runner:
            return runner.run(Service(loaded, sockets, control, reload, redactor=redactor).run())
    finally:
        log.close()


def loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's, or None for asyncio's own."""
    if name != "uvloop" or sys.platform == "win32":
        return None
    import uvloop  # noqa: PLC0415  (only where it is used)

    return uvloop.new_event_loop


class Service:
    """One run of the daemon. ``embedded``: in a process of somebody else's, whose signals and stdout stay theirs."""

    def __init__(
        self,
        loaded: Loaded,
        sockets: list[socket.socket],
        control: LoadControl,
        reload: Callable[[], Loaded] | None,
        *,
        clock: Clock | None = None,
        embedded: bool = False,
        redactor: Redactor | None = None,
    ) -> None:
        self._redactor = redactor or Redactor(secrets_in(loaded.settings))
        self._embedded = embedded
        self._loaded = loaded
        self._sockets = sockets
        self._control = control
        self._reload = reload
        self._clock = clock or Clock()
        self._watch = Watch(loaded.file or paths.config_file())
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()  # asked to stop twice
        self._quiet = asyncio.Event()  # of the edge: nothing is being relayed any more
        self._drained = False
        self._servers: list[asyncio.Server] = []
        self._runtime_file: Path | None = None
        self.daemon: Daemon | None = None
        self.accepting = asyncio.Event()

    async def run(self) -> int:
        """Start, serve, drain, stop."""
        try:
            daemon = self.daemon = build(self._loaded, self._clock, self._redactor)
        except OSError as exc:
            log.error(f"upstream.ca_file cannot be used: {exc.strerror or exc}. Name a PEM file of certificates.")
            return BAD_SETTINGS
        for warning in self._loaded.warnings:
            log.warning(warning)
        upkeep = Upkeep(daemon)
        daemon.search = upkeep.search
        await upkeep.open()
        edge = Edge(daemon, self._control)
        upkeep.clients = edge.expire
        self._quiet = edge.quiet
        with self._signals():
            async with asyncio.TaskGroup() as group:
                daemon.tasks = group
                tasks = upkeep.start(group)
                if self._reload is not None:
                    tasks.append(group.create_task(self._follow_config(daemon), name="ocpool_config"))
                await self._accept(daemon, edge)
                tasks.append(group.create_task(upkeep.recall(), name="ocpool_recall"))
                if not self._embedded:
                    tasks.append(group.create_task(self._warm(), name="ocpool_warm"))
                await self._stop.wait()
                await self._drain(daemon, edge)
                for task in tasks:
                    task.cancel()
            self._drained = True
            runtime.withdraw(self._runtime_file)
            await upkeep.close()
            daemon.upstream.close()
            daemon.events.emit("stopped", uptime_ms=round(self._clock.wall_ms() - daemon.started_at))
            daemon.events.close()
            daemon.usage.close()
            log.close()
        return OK

    async def _accept(self, daemon: Daemon, edge: Edge) -> None:
        loop = asyncio.get_running_loop()
        if not self._embedded:
            loop.set_exception_handler(lambda loop, context: loop_trouble(daemon, loop, context))
        for sock in self._sockets:
            # asyncio tries to accept as often as the backlog is long, with a traceback each when no file is left.
            self._servers.append(await loop.create_server(edge, sock=sock, backlog=_ACCEPT_TRIES))
            sock.listen(_BACKLOG)
        daemon.address = url_of(self._sockets[0], reachable=True)
        daemon.ready = True
        if not self._embedded:
            self._announce(daemon)
        mode = str(daemon.settings.routing.mode)
        daemon.events.emit("started", version=proxy.__version__, address=daemon.address, mode=mode)
        self.accepting.set()

    def _announce(self, daemon: Daemon) -> None:
        """Say where we are: a file for commands, a line on stdout for whoever started us."""
        try:
            running = runtime.Running(daemon.address, os.getpid(), proxy.__version__, daemon.started_at)
            self._runtime_file = runtime.announce(paths.state_path(daemon.settings).parent, running)
        except OSError as exc:
            daemon.problem("runtime", f"The runtime file cannot be written ({exc.strerror}); commands need --url.")
        with contextlib.suppress(OSError, ValueError):
            print(f"ocpool {proxy.__version__} listens on {url_of(self._sockets[0])}", flush=True)  # noqa: T201
        notify(READY, f"STATUS=ocpool {proxy.__version__} listens on {url_of(self._sockets[0])}")

    async def _warm(self) -> None:
        """Load what may be needed later, so that an upgrade in place never mixes versions."""
        await asyncio.sleep(_WARM_AFTER_S)
        log.ready()
        try:
            await asyncio.get_running_loop().run_in_executor(None, load_the_rest)
        except Exception as exc:  # noqa: BLE001  (no file or thread is left, say; they are loaded when they are needed)
            log.warning("what may be needed later could not be loaded yet", reason=type(exc).__name__)
        started()

    async def _drain(self, daemon: Daemon, edge: Edge) -> None:
        """Accept nothing more, let what runs finish within ``listen.drain_ms``, then abort it."""
        daemon.ready = False
        for server in self._servers:
            server.close()
        if not self._embedded:
            notify(STOPPING)
        for _ in range(_ACCEPT_TURNS):
            await asyncio.sleep(0)
        if len(edge.clients) > len(daemon.in_flight):
            await _within(self._hurry, _ARRIVAL_S)  # we accepted it, so nobody else will serve what it is about to send
        daemon.stopping = True
        for client in tuple(edge.clients):
            if client.relay is None:
                client.close()
        if daemon.in_flight and not self._hurry.is_set():
            await _within(edge.quiet, self._clock.seconds(daemon.settings.listen.drain_ms))
        daemon.aborting = True
        left = daemon.in_flight
        if left:
            log.warning("aborting what did not finish within listen.drain_ms", requests=len(left))
        edge.quiet.clear()
        for client in left:
            client.abort()
        if left:
            await _within(edge.quiet, _ABORT_GRACE_S)
        edge.close()

    def stop(self) -> None:
        """Begin to stop; a second call waits for nobody any more, but what was decided is still saved."""
        if self._stop.is_set():
            self._hurry.set()
            self._quiet.set()
        self._stop.set()

    @contextlib.contextmanager
    def _signals(self) -> Any:
        loop = asyncio.get_running_loop()
        wanted: dict[int, Callable[[], None]] = {signal.SIGINT: self.stop, signal.SIGTERM: self.stop}
        if hasattr(signal, "SIGHUP") and self._reload is not None:
            wanted[signal.SIGHUP] = self._hang_up
        if self._embedded:
            wanted.clear()
        installed = []
        for number, action in wanted.items():
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, action)
                installed.append(number)
        try:
            yield
        finally:
            for number in installed:
                loop.remove_signal_handler(number)
                if self._drained:  # nothing is left to be told: a late one must not turn a clean end into a kill
                    signal.signal(number, signal.SIG_IGN)

    async def _follow_config(self, daemon: Daemon) -> None:
        """Reload when the settings file changes."""
        while not daemon.stopping:
            await asyncio.sleep(_CONFIG_TICK_S)
            try:
                if self._watch.changed():
                    self._apply_reload()
            except Exception as exc:  # noqa: BLE001  (the settings in force stay)
                daemon.trouble("settings_not_followed", exc)

    def _hang_up(self) -> None:
        """SIGHUP: read the settings again; the watch has seen the file then, too."""
        self._watch.changed()
        self._apply_reload()

    def _apply_reload(self) -> None:
        """Take what can be taken of the settings as they are now; a bad file changes nothing and says so."""
        daemon = self.daemon
        if daemon is None or self._reload is None:
            return
        notify(reloading(self._clock.mono_ms()))
        try:
            self._take(daemon, self._reload())
        except SettingsError as exc:
            for problem in exc.problems:
                log.error("settings not reloaded", problem=problem)
            daemon.events.emit("reload_refused", problems=len(exc.problems))
        finally:
            notify(READY)

    def _take(self, daemon: Daemon, loaded: Loaded) -> None:
        change = diff(daemon.settings, loaded.settings)
        for secret in secrets_in(loaded.settings):
            daemon.redactor.learn(secret)
        daemon.reconfigure(loaded._replace(settings=carried(daemon.settings, loaded.settings)))
        log.configure(level=loaded.settings.log.level)
        if change.applied:
            log.info("settings reloaded", changed=", ".join(change.applied))
        if change.needs_restart:
            log.warning("these settings change at the next start", keys=", ".join(change.needs_restart))
        mode = str(daemon.settings.routing.mode)
        daemon.events.emit(
            "reloaded", applied=list(change.applied), needs_restart=list(change.needs_restart), mode=mode
        )


async def _within(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, but no longer than that."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
