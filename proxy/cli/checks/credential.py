"""The key that commands and probes can use: is there one, is it kept well, does the gateway take it?"""

from collections.abc import Mapping

from proxy.cli.checks.finding import Finding, remark
from proxy.cli.checks.network import Reached
from proxy.cli.checks.settings import private
from proxy.cli.keys import Key, opencode_file, pi_file


def key(found: Key | None) -> list[Finding]:
    """Where it is."""
    if found is None:
        return [
            remark(
                "No key is configured or stored here: probes use the one last seen in live traffic, commands none.",
                "Set OPENCODE_API_KEY or probe.api_key if probes are to work from the start.",
            )
        ]
    return [] if found.shared else [remark(f"Commands use the key from {found.origin}; the daemon does not read it.")]


def kept(environ: Mapping[str, str]) -> list[Finding]:
    """The files of clients that hold keys."""
    return [*private(pi_file(environ), "pi's key file"), *private(opencode_file(environ), "OpenCode's key file")]


def taken(found: Key | None, reached: Reached) -> list[Finding]:
    """Did the gateway take it? A list of models may be had without one, so only a refusal says something."""
    if found is None or reached.status not in {401, 403}:
        return []
    return [
        Finding(
            f"The gateway refuses the key from {found.origin} with {reached.status}.",
            "Make a new key, or sign in again with the client that stored it.",
        )
    ]
