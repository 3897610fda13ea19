"""What ``probe`` and ``diagnose`` share: real probes, one after the other, few, and shown while they run."""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from config.settings import Settings
from pool.clock import Clock
from pool.model import ProbeKind, ProbeResult
from pool.ports import Store
from proxy.cli.keys import Key, find_key
from proxy.gateway.paths import OPENCODE, OPENCODE_GO, base_path
from proxy.insight.redact import digest
from proxy.targets import ENDINGS, ProbeTarget, chat_path

if TYPE_CHECKING:
    from rich.table import Table

    from config.load import Loaded

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

DEFAULT_MODEL = "deepseek-v4.1-flash"

# After one of these the next probe would find the same, or annoy somebody.
_STOPPING = frozenset({ProbeKind.LIMIT, ProbeKind.UNAUTHORIZED, ProbeKind.REJECTED, ProbeKind.TRANSPORT})

_PIPED_WIDTH = 160  # where no terminal says how wide it is

_MEANING = {
    ProbeKind.FAST: "fast",
    ProbeKind.SLOW: "slow",
    ProbeKind.TIMEOUT: "no answer in time",
    ProbeKind.MISMATCH: "rejected: its id does not start with gw-",
    ProbeKind.OVERLOADED: "overloaded",
    ProbeKind.LIMIT: "a limit of the account or key",
    ProbeKind.UNAUTHORIZED: "the key was refused",
    ProbeKind.REJECTED: "the request was refused",
    ProbeKind.TRANSPORT: "no usable answer",
}


@dataclass(frozen=True, slots=True)
class Bench:
    """What is probed, with whose key."""

    settings: Settings
    target: ProbeTarget
    key: Key
    clock: Clock


def probing_options(command: Decorated) -> Decorated:
    """``--model``, ``--provider``, ``--upstream`` and ``--api-key-env``."""
    command = click.option(
        "--api-key-env",
        "api_key_env",
        metavar="NAME",
        help="Environment variable with the key, in place of probe.api_key, OPENCODE_API_KEY, pi's and OpenCode's.",
    )(command)
    command = click.option(
        "--upstream", metavar="URL", help="Where to probe (upstream.base_url), such as a simulated gateway."
    )(command)
    command = click.option(
        "--provider",
        type=click.Choice([OPENCODE_GO, OPENCODE]),
        default=OPENCODE_GO,
        show_default=True,
        help="Which plan's paths.",
    )(command)
    return click.option("--model", metavar="M", default=DEFAULT_MODEL, show_default=True, help="Which model.")(command)


def chosen(overrides: Sequence[str], upstream: str | None) -> list[str]:
    """The ``--set`` values, with ``--upstream`` as one of them."""
    return [*overrides, *([f"upstream.base_url={upstream}"] if upstream is not None else [])]


def bench(
    loaded: "Loaded", model: str, provider: str, api_key_env: str | None, environ: Mapping[str, str] = os.environ
) -> Bench:
    """Find the key and the path.

    Raises:
        click.ClickException: there is no key anywhere.
    """
    clock = Clock()
    settings = loaded.settings
    origin = loaded.origins.get("probe.api_key", "probe.api_key")
    key = find_key(settings, api_key_env, provider, environ, clock.wall_ms(), origin=origin)
    if key is None:
        raise click.ClickException(
            "no key: set OPENCODE_API_KEY or probe.api_key, or name a variable with --api-key-env. "
            "Neither pi nor OpenCode has one stored that could be used."
        )
    path = chat_path(settings, provider)
    if key.oauth:
        tree = b"/inference/go/openai/v1" if provider == OPENCODE_GO else b"/inference/openai/v1"
        path = base_path(settings.upstream.base_url).encode() + tree + ENDINGS["completions"]
    return Bench(settings, ProbeTarget(provider, model, "completions", path, "", key.credential), key, clock)


@contextmanager
def counted(place: Bench, *, wanted: bool, create: bool = False) -> Iterator[Store | None]:
    """The state file, where probes are counted for every process: if there is one, or ``create`` makes one.

    ``wanted`` is False for another upstream than the configured one: its probes are no business of the gateway's.
    """
    from config.paths import state_path

    path = state_path(place.settings)
    if not create and not (wanted and path.exists()):
        yield None
        return
    from pool.stores.file import FileStore

    store: Store = FileStore(path)
    try:
        store.start(place.clock.wall_ms())
        yield store
    finally:
        store.close()


def run(place: Bench, ids: Sequence[str], *, store: Store | None, quiet: bool) -> tuple[list[ProbeResult], str | None]:
    """Probe the ids in turn; the results, and why it stopped early, if it did.

    ``store`` grants each probe out of ``pool.max_probes_per_hour``; without one nothing is counted.
    """
    return asyncio.run(_run(place, ids, store, quiet=quiet))


async def _run(
    place: Bench, ids: Sequence[str], store: Store | None, *, quiet: bool
) -> tuple[list[ProbeResult], str | None]:
    from proxy.daemon import upstream_of
    from proxy.prober import Prober

    try:
        upstream = upstream_of(place.settings, place.clock)
    except OSError as error:
        raise click.ClickException(f"upstream.ca_file cannot be read: {error.strerror or error}") from None
    prober = Prober(upstream, place.clock, place.settings)
    section = place.settings.probe_for(place.target.model)
    results: list[ProbeResult] = []
    try:
        with _progress(len(ids), quiet=quiet) as advance:
            for number, session in enumerate(ids):
                if number:
                    await place.clock.sleep(section.min_interval_ms)
                granted_at = place.clock.wall_ms()
                if store is not None and not _granted(store, place, granted_at):
                    return results, "pool.max_probes_per_hour is reached"
                result = await prober.probe(place.target, session, section.timeout_ms)
                if store is not None and not result.written:
                    store.return_probes(place.target.provider, 1, granted_at)
                results.append(result)
                advance()
                if result.kind in _STOPPING:
                    return results, None if number + 1 == len(ids) else _MEANING[result.kind]
        return results, None
    finally:
        upstream.close()
        await asyncio.sleep(0)


def _granted(store: Store, place: Bench, now: int) -> int:
    return store.grant_probes(place.target.provider, 1, place.settings.pool.max_probes_per_hour, now)


def _progress(total: int, *, quiet: bool) -> AbstractContextManager[Callable[[], None]]:
    """A bar on the terminal's stderr; nothing where nobody watches."""
    if quiet or not sys.stderr.isatty():
        return nullcontext(lambda: None)
    return _Bar(total)


class _Bar:
    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._bar = Progress(console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("probing", total=total)

    def __enter__(self) -> Callable[[], None]:
        self._bar.start()
        return lambda: self._bar.advance(self._task)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


def as_facts(result: ProbeResult) -> dict[str, object]:
    """A result for ``--json``; the id as its digest."""
    return {
        "session": digest(result.id),
        "found": result.kind.value,
        "upstreamMs": result.upstream_ms,
        "wallMs": round(result.wall_ms, 1),
        "status": result.status,
        "endpoint": result.endpoint,
        "bodyId": result.body_id,
        "tokens": result.tokens,
        "retryAfterMs": result.retry_after_ms,
        **(_pace(result) if is_paced(result) else {}),
    }


def is_paced(result: ProbeResult) -> bool:
    """Was its speed measured (throughput profile)?"""
    return result.ttfb_ms is not None or result.reason is not None


def _pace(result: ProbeResult) -> dict[str, object]:
    return {
        "reason": result.reason,
        "tps": None if result.tps is None else round(result.tps, 1),
        "estimated": result.estimated,
        "ttfbMs": None if result.ttfb_ms is None else round(result.ttfb_ms, 1),
        "totalMs": None if result.total_ms is None else round(result.total_ms, 1),
        "completionTokens": result.completion_tokens,
    }


def table(results: Sequence[ProbeResult]) -> "Table":
    """The results for people."""
    from rich.markup import escape
    from rich.table import Table

    paced = any(is_paced(result) for result in results)
    rows = Table(box=None, pad_edge=False, header_style="bold")
    figures = ("upstream ms", "wall ms", *(("first token ms", "tok/s") if paced else ()))
    for name in ("session", *figures, "status", "endpoint", "answer id", "tokens", "found"):
        rows.add_column(name, justify="right" if name in {*figures, "tokens"} else "left")
    for result in results:
        speed = f"{_whole(result.tps)}{'~' if result.estimated and result.tps is not None else ''}"
        rows.add_row(
            digest(result.id),
            _whole(result.upstream_ms),
            _whole(result.wall_ms),
            *((_whole(result.ttfb_ms), speed) if paced else ()),
            "-" if result.status is None else str(result.status),
            escape(result.endpoint or "-"),
            escape((result.body_id or "-")[:24]),
            str(result.tokens or "-"),
            _found(result),
        )
    return rows


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def _found(result: ProbeResult) -> str:
    rejected = result.kind is ProbeKind.SLOW and result.reason is not None
    return f"rejected: {result.reason}" if rejected else _MEANING[result.kind]


def show(*parts: object) -> None:
    """Print on stdout, without colours where it is no terminal."""
    from rich.console import Console

    console = Console(soft_wrap=True, highlight=False, width=None if sys.stdout.isatty() else _PIPED_WIDTH)
    for part in parts:
        console.print(part)
