"""How each client is pointed at ocpool: one table, from which ``ocpool setup`` and ``docs/clients.md`` are made."""

from proxy.cli.clients.agents import AGENTS
from proxy.cli.clients.apps import APPS
from proxy.cli.clients.entry import Client, Place, Snippet
from proxy.cli.clients.libraries import LIBRARIES

CLIENTS: dict[str, Client] = {client.name: client for client in (*AGENTS, *APPS, *LIBRARIES)}

__all__ = ["CLIENTS", "Client", "Place", "Snippet"]
