"""What may be set and is probably not meant: said at the start, never refused."""

from urllib.parse import urlsplit

from config.sections.listen import is_loopback
from config.sections.probe import ProbeSection
from config.sections.quarantine import QuarantineSection
from config.settings import Settings


def _of_limits(name: str, limits: QuarantineSection) -> list[str]:
    if limits.degrade_ms < limits.quarantine_ms:
        return []
    pair = f"{name}degrade_ms ({limits.degrade_ms}) is not below {name}quarantine_ms ({limits.quarantine_ms})"
    return [f"{pair}, so the first slow turn retires its id"]


def _of_probes(name: str, probe: ProbeSection) -> list[str]:
    if probe.max_upstream_ms <= probe.timeout_ms:
        return []
    pair = f"{name}max_upstream_ms ({probe.max_upstream_ms}) is above {name}timeout_ms ({probe.timeout_ms})"
    return [f"{pair}, so every probe that is answered counts as fast"]


def _of_exposure(settings: Settings) -> list[str]:
    doubts = []
    listen, url = settings.listen, urlsplit(settings.upstream.base_url)
    if not is_loopback(listen.host) and not (listen.token or listen.tokens):
        doubts.append(
            f"listen.host {listen.host} is open to other machines, and listen.insecure asks them for no token"
        )
    if url.scheme == "http" and not is_loopback(url.hostname or ""):
        doubts.append("upstream.base_url is http, so keys and prompts travel in clear")
    return doubts


def doubts(settings: Settings) -> list[str]:
    """One line for each thing that is odd."""
    found = _of_exposure(settings)
    found += _of_limits("quarantine.", settings.quarantine) + _of_probes("probe.", settings.probe)
    for model in settings.models:
        found += _of_limits(f'models."{model}".', settings.quarantine_for(model))
        found += _of_probes(f'models."{model}".', settings.probe_for(model))
    return found
