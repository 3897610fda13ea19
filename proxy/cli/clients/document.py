"""``docs/clients.md``, made from the table: ``python -m proxy.cli.clients.document --write docs/clients.md``."""

import sys
from collections.abc import Iterator
from pathlib import Path

from proxy.cli.clients import CLIENTS, Client, Place
from proxy.cli.clients.entry import READ_ON

_HEAD = """# Clients

<!-- This file is generated from proxy/cli/clients by `make docs`. -->

How each client is pointed at ocpool. `ocpool setup CLIENT` prints the same with your daemon's address, and its token
where it wants one; `ocpool setup` lists the clients. Leave your OpenCode key in the client: ocpool passes it on and
stores it nowhere.

What a client sends to name a conversation decides whether each of its conversations gets a route of its own:
[conversations.md](conversations.md) has the rules. Clients that send nothing are served all the same.
"""


def document() -> str:
    """The whole document."""
    parts = [_HEAD, "\n".join(_overview())]
    parts += ["\n".join(_section(client)) for client in CLIENTS.values()]
    return "\n".join(parts)


def _overview() -> Iterator[str]:
    yield "## What was run"
    yield ""
    yield (
        "`scripts/check-clients` installs a client, gives it the snippet below with a test daemon's address, and sends "
        "one request through `ocpool serve` to `ocpool simulate`. The others are from the clients' documentation or "
        f"source, read on {READ_ON}, and were not run."
    )
    yield ""
    yield "| client | `ocpool setup` | evidence |"
    yield "|---|---|---|"
    for client in CLIENTS.values():
        yield f"| {client.title} | `{client.name}` | {client.evidence} |"
    yield ""


def _section(client: Client) -> Iterator[str]:
    place = Place()
    yield f"## {client.title}"
    yield ""
    for snippet in client.snippets:
        yield f"In {snippet.file}:"
        yield ""
        yield f"```{snippet.form}"
        yield place.fill(snippet.text).rstrip("\n")
        yield "```"
        yield ""
    yield f"- Names its conversations by: {client.sends}"
    yield f"- {client.limits}"
    yield f"- Evidence: {client.evidence}."
    yield ""


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        Path(sys.argv[2]).write_text(document(), encoding="utf-8")
    else:
        print(document(), end="")
