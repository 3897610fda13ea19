"""``ocpool setup CLIENT``: the configuration for a client, with this daemon's address in it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proxy.cli.options import daemon_options, json_option, load_settings, print_json

if TYPE_CHECKING:
    from config.settings import Settings
    from proxy.cli.clients import Client, Place


@click.command()
@click.argument("client", required=False)
@daemon_options
@json_option
def setup(
    client: str | None, config_file: Path | None, overrides: Sequence[str], url: str | None, as_json: bool
) -> int:
    """Show how CLIENT is configured; without one, list the clients.

    The address is that of --url, else of the daemon that runs here, else the one that the settings say. A token that
    the listener wants is in it.
    """
    from proxy.cli.clients import CLIENTS

    if client is None:
        _list(as_json=as_json)
        return 0
    found = CLIENTS.get(client.lower())
    if found is None:
        raise click.UsageError(f"{client!r} is no client that is known here. {_nearest(client, CLIENTS)}")
    place, origin = place_of(load_settings(config_file, overrides).settings, url)
    if as_json:
        print_json(_facts(found, place, origin))
    else:
        _show(found, place, origin)
    return 0


def place_of(settings: "Settings", url: str | None) -> "tuple[Place, str]":
    """Where clients reach the daemon, and how that is known."""
    from config.paths import state_path
    from proxy.cli.clients import Place
    from proxy.runtime import find

    listen = settings.listen
    tokens = [token for token in (listen.token, *listen.tokens.values()) if token is not None]
    token = tokens[0].get_secret_value() if tokens else None
    if url is not None:
        return Place(url if "://" in url else f"http://{url}", token), "--url"
    running = find(state_path(settings).parent)
    if running:
        return Place(_reachable(running[0].address), token), "the daemon that runs here"
    host = f"[{listen.host}]" if ":" in listen.host else listen.host
    return Place(_reachable(f"http://{host}:{listen.port}"), token), "the settings; no daemon runs here"


def _reachable(address: str) -> str:
    """An address that means every interface is no address to send to."""
    return address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def _nearest(name: str, known: "dict[str, Client]") -> str:
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), known, n=1)
    return f"Did you mean {near[0]}?" if near else "`ocpool setup` lists those that are."


def _list(*, as_json: bool) -> None:
    from proxy.cli.clients import CLIENTS
    from proxy.cli.tables import console, fact, show_table

    rows = [{"name": one.name, "client": one.title, "evidence": one.evidence} for one in CLIENTS.values()]
    if as_json:
        print_json(rows)
        return
    show_table(
        console(),
        "ocpool setup CLIENT",
        rows,
        (("name", fact("name")), ("client", fact("client")), ("evidence", fact("evidence"))),
    )


def _facts(client: "Client", place: "Place", origin: str) -> dict[str, Any]:
    return {
        "client": client.name,
        "title": client.title,
        "address": place.root,
        "address_from": origin,
        "snippets": [
            {"file": snippet.file, "form": snippet.form, "text": place.fill(snippet.text)}
            for snippet in client.snippets
        ],
        "sends": client.sends,
        "limits": client.limits,
        "evidence": client.evidence,
    }


def _show(client: "Client", place: "Place", origin: str) -> None:
    """The snippets on stdout, to be copied or piped; what there is to know about them on stderr."""
    for snippet in client.snippets:
        click.echo(f"# {snippet.file}", err=True)
        click.echo(place.fill(snippet.text).rstrip("\n"))
        click.echo(err=True)
    click.echo(f"# Address: {place.address}, from {origin}.", err=True)
    click.echo(f"# Names its conversations by: {client.sends}", err=True)
    click.echo(f"# {client.limits}", err=True)
    click.echo(f"# Evidence: {client.evidence}.", err=True)
