"""``ocpool explain``: which conversation a request would belong to, and by which rule. Nothing is sent or changed."""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proxy.cli.options import json_option, load_settings, print_json, settings_options

if TYPE_CHECKING:
    from config.settings import Settings
    from proxy.conversation.evidence import Evidence
    from proxy.conversation.explaining import Explanation


@click.command()
@click.argument("request", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="A header field; may be repeated.")
@click.option("--path", "target", default="/v1/chat/completions", show_default=True, help="The path it is sent to.")
@click.option("--token", metavar="NAME", help="The listener token it comes with, by its name in listen.tokens.")
@settings_options
@json_option
def explain(
    *,
    request: Path,
    headers: Sequence[str],
    target: str,
    token: str | None,
    config_file: Path | None,
    overrides: Sequence[str],
    as_json: bool,
) -> int:
    """Say which conversation REQUEST would belong to, step by step.

    REQUEST is a file with the body of a request, or with {"headers": {...}, "path": "...", "body": {...}}. What is
    known of conversations comes from the archive, which is a few seconds old; the beginnings of answers and openers,
    by which summaries and titles are recognised, and what is under way are in the daemon's memory only. The caller's
    credential decides the scope: give it as a header.
    """
    settings = load_settings(config_file, overrides).settings
    path, fields, body = _request(request, headers, target)
    found = _explained(settings, path, fields, body, token)
    if as_json:
        steps = [{"rule": rule, "found": said, "conversation": label} for rule, said, label in found.steps]
        print_json({"conversation": found.conversation, "match": found.match, "side": found.side, "steps": steps})
        return 0
    for rule, said, label in found.steps:
        click.echo(f"{rule:9} {label or '':16} {said}")
    click.echo(f"match     {found.match}{' (a side call)' if found.side else ''}")
    click.echo(f"belongs   {found.conversation or 'to a new conversation'}")
    return 0


def _request(file: Path, headers: Sequence[str], target: str) -> tuple[str, list[tuple[bytes, bytes]], bytes]:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise click.ClickException(f"{file} cannot be read: {error.strerror or error}") from None
    document: Any = None
    with suppress(ValueError):  # what is no JSON is a body, too
        document = json.loads(data)
    sent: dict[str, str] = {}
    if isinstance(document, dict) and isinstance(document.get("body"), dict):
        data = json.dumps(document["body"]).encode()
        target = str(document.get("path", target))
        named = document.get("headers", {})
        sent = {str(name): str(value) for name, value in named.items()} if isinstance(named, dict) else {}
    pairs = [*sent.items(), *((name, value.strip()) for name, _, value in (line.partition(":") for line in headers))]
    return target, [(name.strip().encode(), value.encode()) for name, value in pairs], data


def _explained(
    settings: "Settings", path: str, fields: list[tuple[bytes, bytes]], data: bytes, token: str | None
) -> "Explanation":
    from pool.clock import Clock
    from proxy.conversation import body, ids
    from proxy.conversation.explaining import explain as explained
    from proxy.conversation.rules import Rules
    from proxy.conversation.scopes import scope_of
    from proxy.gateway import paths as targets

    now = Clock().wall_ms()
    secret = _secret(settings)
    target = targets.resolve(path.encode(), settings.upstream.default_path)
    encoded = any(name.lower() == b"content-encoding" for name, _ in fields)
    facts = body.read([data], len(data), encoded)
    rules = Rules.compile(settings.conversation.rules)
    reading = ids.read_ids(fields, target.named, facts, rules, target.upstream.decode("latin-1"))
    scope = scope_of(token, fields, secret)
    return explained(_evidence(settings, secret, now), secret, reading, scope=scope, facts=facts, now=now)


def _secret(settings: "Settings") -> bytes:
    from config.paths import key_path
    from proxy.conversation.scopes import load_secret

    configured = settings.state.secret.get_secret_value() if settings.state.secret is not None else None
    if configured is None and not key_path(settings).exists():
        raise click.ClickException(f"{key_path(settings)} is not there: no daemon has run with these settings.")
    secret, warning = load_secret(key_path(settings), configured)
    if warning is not None:
        raise click.ClickException(warning)
    return secret


def _evidence(settings: "Settings", secret: bytes, now: int) -> "Evidence":
    from config.paths import archive_path
    from proxy.conversation.archive import Archive, ArchiveError
    from proxy.conversation.evidence import Evidence
    from proxy.conversation.packing import unpack

    evidence = Evidence(settings, secret)
    if archive_path(settings).exists():
        archive = Archive(archive_path(settings))
        try:
            for row in archive.load(now - evidence.ttl_ms, evidence.most):
                evidence.adopt(unpack(row, "tool_calls"))
        except (ArchiveError, ValueError) as error:
            raise click.ClickException(str(error)) from None
        finally:
            archive.close()
    return evidence
