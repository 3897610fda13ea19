"""``ocpool probe``: real probes with their timings; ``--seed`` puts the fast ids into the pool."""

import os
from collections.abc import Sequence
from pathlib import Path

import click

from pool.ids import new_id
from pool.model import ProbeKind, ProbeResult, Shape, Spare, Stock
from pool.ports import Batch, Release, Store
from proxy.cli import probing
from proxy.cli.options import json_option, load_settings, print_json, settings_options
from proxy.cli.probing import Bench, probing_options

_ANSWERED = frozenset({ProbeKind.FAST, ProbeKind.SLOW, ProbeKind.MISMATCH})


@click.command()
@click.option("--count", type=click.IntRange(1, 16), default=2, show_default=True, help="How many ids to try.")
@click.option("--seed", is_flag=True, help="Put the ids that were fast into the pool, as spares.")
@probing_options
@settings_options
@json_option
def probe(
    *,
    count: int,
    seed: bool,
    model: str,
    provider: str,
    upstream: str | None,
    api_key_env: str | None,
    config_file: Path | None,
    overrides: Sequence[str],
    as_json: bool,
) -> int:
    """Send COUNT requests on fresh ids and show how fast each was.

    They are real and billed: a few tokens each, 96 where probe.profile is throughput. They count against
    pool.max_probes_per_hour. Exit code 1 when none was answered, or when --seed added nothing.
    """
    loaded = load_settings(config_file, probing.chosen(overrides, upstream))
    settings = loaded.settings
    place = probing.bench(loaded, model, provider, api_key_env)
    with probing.counted(place, wanted=upstream is None, create=seed) as store:
        ids = [new_id(Shape.UUID) for _ in range(count)]
        results, stopped = probing.run(place, ids, store=store, quiet=as_json)
        added = _seed(place, store, results) if seed and store is not None else None
    if as_json:
        print_json(
            {
                "provider": provider,
                "model": model,
                "upstream": settings.upstream.base_url,
                "key": place.key.origin,
                "results": [probing.as_facts(result) for result in results],
                "stopped": stopped,
                "seeded": added,
            }
        )
    else:
        _show(place, results, stopped, added)
    if seed:
        return 0 if added else 1
    return 0 if any(result.kind in _ANSWERED for result in results) else 1


def _seed(place: Bench, store: Store, results: Sequence[ProbeResult]) -> int:
    """Put the fast ids among the free spares.

    Raises:
        click.ClickException: the state file cannot be written.
    """
    now = place.clock.wall_ms()
    stock = Stock(place.target.provider, place.target.model, _scope(place), Shape.UUID)
    spares = tuple(
        Spare(result.id, stock, _latency(result), now, now, result.tps)
        for result in results
        if result.kind is ProbeKind.FAST
    )
    if not spares:
        return 0
    synced = store.commit(Batch((Release(spares),)), now)
    if not synced.applied:
        raise click.ClickException(synced.problem or "the state file cannot be written")
    return len(spares)


def _latency(result: ProbeResult) -> float:
    if result.ttfb_ms is not None:
        return result.ttfb_ms
    return result.wall_ms if result.upstream_ms is None else result.upstream_ms


def _scope(place: Bench) -> str:
    """Spares of the configured key serve anyone; others the caller who sends the same key."""
    if place.key.shared:
        return ""
    from config.paths import key_path
    from proxy.conversation.scopes import load_secret, scope_of

    configured = place.settings.state.secret
    secret, problem = load_secret(
        key_path(place.settings, os.environ), None if configured is None else configured.get_secret_value()
    )
    if problem is not None:
        click.echo(f"ocpool: {problem}", err=True)
    return scope_of(None, list(place.target.credential), secret)


def _show(place: Bench, results: Sequence[ProbeResult], stopped: str | None, added: int | None) -> None:
    target = place.target
    probing.show(
        f"{target.provider} {target.model} at {place.settings.upstream.base_url}, key from {place.key.origin}",
        probing.table(results),
    )
    if stopped is not None:
        probing.show(f"Stopped early: {stopped}.")
    if added is not None:
        probing.show(f"{added} of {len(results)} put into the pool.")
