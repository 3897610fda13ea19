"""``ocpool doctor``: the checks, one after the other, and what they found."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from proxy.cli.options import json_option, print_json, settings_options

if TYPE_CHECKING:
    from config.load import Loaded
    from proxy.cli.checks.finding import Finding
    from proxy.runtime import Running

Check = Callable[[], "list[Finding]"]


class Looked(NamedTuple):
    """One thing that was looked at, and what was found."""

    what: str
    found: "list[Finding]"


@click.command()
@click.option("--offline", is_flag=True, help="Do not contact the gateway.")
@settings_options
@json_option
def doctor(*, offline: bool, config_file: Path | None, overrides: Sequence[str], as_json: bool) -> int:
    """Look for what is wrong with this installation, with a remedy for each finding.

    Changes nothing and costs nothing; it asks the gateway for its list of models, once. Exit code 1 on a finding.
    """
    looked = list(examine(config_file, overrides, offline=offline))
    findings = [(one.what, finding) for one in looked for finding in one.found]
    if as_json:
        print_json(
            {
                "looked_at": [one.what for one in looked],
                "findings": [_facts(what, finding) for what, finding in findings if not finding.note],
                "notes": [_facts(what, finding) for what, finding in findings if finding.note],
            }
        )
    else:
        _show(looked)
    return 1 if any(not finding.note for _, finding in findings) else 0


def examine(config_file: Path | None, overrides: Sequence[str], *, offline: bool) -> Iterator[Looked]:
    """Everything, in the order in which one thing depends on another."""
    from config.load import SettingsError, load
    from config.paths import config_file as usual_file
    from proxy.cli.checks import environment, settings, unit

    try:
        loaded = load(config_file, list(overrides))
    except SettingsError as error:
        yield Looked("settings", settings.refused(error.problems))
        loaded = None
    if loaded is not None:
        yield from _installation(loaded)
        if not offline:
            yield from _gateway(loaded)
    yield _look("proxies", lambda: environment.proxies(os.environ))
    yield _look("packages", lambda: [*environment.collisions(), *environment.strangers()])
    listen = loaded.settings.listen if loaded is not None else None
    yield _look("service", lambda: unit.service(Path.home(), usual_file().parent.parent, unit.user_name(), listen))


def _installation(loaded: "Loaded") -> Iterator[Looked]:
    from config.paths import config_file, key_path, state_path, usage_path
    from proxy.cli.checks import credential, files, settings
    from proxy.cli.checks import daemon as daemons
    from proxy.runtime import find

    tree, path = loaded.settings, state_path(loaded.settings)
    counts = usage_path(tree)
    running = find(path.parent)
    file = loaded.file or config_file()
    yield _look("settings", lambda: [*settings.warned(loaded.warnings), *settings.private(file, "The settings file")])
    yield _look("loop", lambda: settings.loop(tree))
    yield _look("folders", lambda: files.folder(path.parent))
    yield _look("state", lambda: [*files.state(path), *settings.private(path, "The state file")])
    yield _look("secret", lambda: [*files.secret(key_path(tree)), *settings.private(key_path(tree), "The secret file")])
    yield _look("usage", lambda: [*files.usage(counts), *settings.private(counts, "The usage file")])
    yield _look("lock", lambda: files.lock(path))
    yield _look("sharing", lambda: files.shared(path, os.environ, Path.home()))
    yield _look("port", lambda: daemons.port(tree, running))
    yield _look("daemon", lambda: [*daemons.versions(running), *_complaints(loaded, running)])
    yield _look("key files", lambda: credential.kept(os.environ))


def _complaints(loaded: "Loaded", running: "Sequence[Running]") -> "list[Finding]":
    from proxy.cli import daemon
    from proxy.cli.checks.daemon import complaints

    token = loaded.settings.listen.token
    found = []
    for one in running:
        try:
            seen = daemon.Daemon(one.address, None if token is None else token.get_secret_value()).get("/-/status")
        except daemon.NoDaemon:
            continue  # the check of versions says so
        found += complaints(seen)
    return found


def _gateway(loaded: "Loaded") -> Iterator[Looked]:
    from pool.clock import Clock
    from proxy.cli.checks import credential, network
    from proxy.cli.checks.finding import Finding
    from proxy.cli.keys import find_key
    from proxy.daemon import proxy_of
    from proxy.gateway.paths import OPENCODE_GO

    tree, clock = loaded.settings, Clock()
    key = find_key(tree, None, OPENCODE_GO, os.environ, clock.wall_ms())
    yield _look("credential", lambda: credential.key(key))
    reached = network.reach(tree, proxy_of(tree), () if key is None else key.credential)
    if isinstance(reached, Finding):
        yield Looked("network", [reached])
        yield _look("clock", lambda: network.clock(None, clock.wall_ms()))
        return
    yield _look("gateway", lambda: [*network.answered(reached), *credential.taken(key, reached)])
    yield _look("clock", lambda: network.clock(reached, clock.wall_ms()))


def _look(what: str, check: Check) -> Looked:
    """Run one check. One that breaks is a finding of its own: the rest is worth knowing all the same."""
    from proxy.cli.checks.finding import Finding

    try:
        return Looked(what, check())
    except Exception as error:  # noqa: BLE001  (whatever it is, the others go on)
        return Looked(what, [Finding(f"This could not be checked: {type(error).__name__}: {error}.", "Report it.")])


def _facts(what: str, finding: "Finding") -> dict[str, Any]:
    return {"check": what, "problem": finding.problem, "remedy": finding.remedy}


def _show(looked: Sequence[Looked]) -> None:
    from proxy.cli.tables import printable

    for one in looked:
        if not one.found:
            click.echo(f"ok    {one.what}")
        for finding in one.found:
            click.echo(f"{'note ' if finding.note else 'WRONG'} {one.what}: {printable(finding.problem)}")
            if finding.remedy:
                click.echo(f"      -> {printable(finding.remedy)}")
