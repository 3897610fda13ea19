"""``ocpool import``: what pi-opencode-session-pool knows, so that conversations keep their routes and their caches."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from proxy.cli.options import json_option, load_settings, print_json, settings_options

if TYPE_CHECKING:
    from config.settings import Settings
    from pool.clock import Clock
    from pool.model import Binding
    from pool.ports import Contents, Operation
    from pool.stores.extension import Found
    from pool.stores.file import FileStore


class Sorted(NamedTuple):
    """What is to be done with the bindings that were found, and how many were left out and why."""

    operations: "list[Operation]"
    taken: int
    known: int
    old: int
    others: int


@click.command("import")
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--move", is_flag=True, help="Take the spares too, and remove them from FILE under its lock.")
@settings_options
@json_option
def import_(*, file: Path | None, move: bool, config_file: Path | None, overrides: Sequence[str], as_json: bool) -> int:
    """Take over bindings from FILE, the state file of pi-opencode-session-pool.

    By default $PI_OCPOOL_STATE_PATH, else ~/.pi/opencode-session-pool.json. A binding goes to the first caller that
    sends its session id; until then it is kept under a digest. FILE is only changed with --move. A running daemon
    takes the result over by itself.
    """
    from config.paths import state_path
    from pool.clock import Clock
    from pool.stores import extension
    from pool.stores.file import FileStore
    from pool.stores.trouble import Trouble

    settings = load_settings(config_file, overrides).settings
    path = file if file is not None else default_file()
    own = state_path(settings)
    if os.path.realpath(path) == os.path.realpath(own):
        raise click.UsageError(f"{path} is ocpool's own state file.")
    clock = Clock()
    try:
        found = extension.read(path)
        store = FileStore(own)
        result = _bindings(found, settings, store, clock)
        result |= {"file": str(path), "state": str(own), "unreadable": found.skipped}
        result["spares_moved"] = _move(path, settings, store, clock) if move else 0
        result["spares_left"] = 0 if move else len(found.spares)
    except Trouble as trouble:
        raise click.ClickException(f"{trouble}.") from None
    if as_json:
        print_json(result)
    else:
        _show(result, move=move)
    return 0


def default_file() -> Path:
    """Where the extension keeps its state."""
    named = os.environ.get("PI_OCPOOL_STATE_PATH", "").strip()
    return Path(named).expanduser() if named else Path.home() / ".pi" / "opencode-session-pool.json"


def sort(found: "Found", contents: "Contents", settings: "Settings", digests: dict[str, str], now: int) -> Sorted:
    """Which bindings are taken: alive, of a provider of ours, and not here yet. ``digests`` is by session id."""
    from dataclasses import replace

    from pool.ids import id_digest
    from pool.imports import imported_key
    from pool.ports import Bind, Forget

    owned = {binding.routed_id for binding in contents.bindings.values()}
    operations: list[Operation] = []
    taken = known = old = others = 0
    for session, binding in found.bindings:
        if binding.provider not in settings.routing.providers:
            others += 1
        elif not 0 <= now - binding.last_seen_at <= settings.binding.lease_ttl_ms or _struck_out(binding, settings):
            old += 1
        elif binding.routed_id in owned or id_digest(binding.routed_id) in contents.retired:
            known += 1
        else:
            key = imported_key(digests[session], binding.provider, binding.model)
            if key in contents.bindings:  # pi has another id for it by now
                operations.append(Forget(key, contents.bindings[key].routed_id))
            operations.append(Bind(replace(binding, key=key)))
            owned.add(binding.routed_id)
            taken += 1
    return Sorted(operations, taken, known, old, others)


def _struck_out(binding: "Binding", settings: "Settings") -> bool:
    return binding.failures >= settings.quarantine_for(binding.model).failures


def _bindings(found: "Found", settings: "Settings", store: "FileStore", clock: "Clock") -> dict[str, Any]:
    from config.paths import key_path
    from pool.ports import Batch
    from pool.stores.trouble import Trouble
    from proxy.conversation.naturals import digest_of
    from proxy.conversation.scopes import load_secret

    now = clock.wall_ms()
    synced = store.start(now)
    if not synced.applied or synced.contents is None:
        raise Trouble((synced.problem or "the state file cannot be read").rstrip("."))
    configured = settings.state.secret
    path = key_path(settings)
    secret, problem = load_secret(path, None if configured is None else configured.get_secret_value())
    if problem is not None and not path.exists():
        raise Trouble(problem.rstrip("."))
    digests = {session: digest_of(secret, session) for session, _ in found.bindings}
    chosen = sort(found, synced.contents, settings, digests, now)
    if chosen.operations:
        synced = store.commit(Batch(tuple(chosen.operations), settings.binding.lease_ttl_ms), now)
        if not synced.applied:
            raise Trouble((synced.problem or "the state file cannot be written").rstrip("."))
    return {"bindings": chosen.taken, "known": chosen.known, "too_old": chosen.old, "other_providers": chosen.others}


def _move(path: Path, settings: "Settings", store: "FileStore", clock: "Clock") -> int:
    """Take the spares out there, then put them in here: an id may be lost between the two, never be in both."""
    from pool.ports import Batch, Release
    from pool.stores import extension
    from pool.stores.trouble import Trouble

    spares = extension.take_spares(path, clock)
    if not spares:
        return 0
    synced = store.commit(Batch((Release(spares),), settings.binding.lease_ttl_ms), clock.wall_ms())
    if not synced.applied:
        raise Trouble(f"{len(spares)} spares are lost: {synced.problem or 'the state file cannot be written'}")
    return len(spares)


def _show(result: dict[str, Any], *, move: bool) -> None:
    click.echo(f"{result['bindings']} bindings from {result['file']} into {result['state']}.")
    for count, why in (
        (result["known"], "are here already, or were retired here"),
        (result["too_old"], "were idle for longer than binding.lease_ttl_ms, or are struck out"),
        (result["other_providers"], "belong to providers that are not in routing.providers"),
        (result["unreadable"], "entries cannot be read"),
    ):
        if count:
            click.echo(f"Left out: {count} {why}.")
    if move:
        click.echo(f"{result['spares_moved']} spares moved.")
    elif result["spares_left"]:
        click.echo(f"{result['spares_left']} spares stay there, for the extension; --move takes them.")
