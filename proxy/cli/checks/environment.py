"""What else on this machine decides whether clients reach the daemon: proxies and packages."""

from collections.abc import Iterable, Mapping
from importlib import metadata, util
from pathlib import Path
from typing import Final

from proxy.cli.checks.finding import Finding

PACKAGES: Final = ("config", "pool", "proxy")
LOCAL: Final = ("localhost", "127.0.0.1")
_PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")


def proxies(environ: Mapping[str, str]) -> list[Finding]:
    """Variables that would send a client's traffic for localhost to a proxy."""
    named = next((name for name in _PROXIES if environ.get(name, "").strip()), None)
    if named is None:
        return []
    spared = {part.strip().lower() for name in ("no_proxy", "NO_PROXY") for part in environ.get(name, "").split(",")}
    missing = [host for host in LOCAL if host not in spared and "*" not in spared]
    if not missing:
        return []
    return [
        Finding(
            f"{named} is set and NO_PROXY does not name {' and '.join(missing)}: clients may send what is for ocpool "
            "to that proxy, with your key.",
            "export NO_PROXY=localhost,127.0.0.1,::1 (and no_proxy) where clients start.",
        )
    ]


def collisions(places: Mapping[str, Iterable[str]] | None = None) -> list[Finding]:
    """Other packages with the names of ours: whichever is first on the path wins, and both break."""
    owners = metadata.packages_distributions() if places is None else places
    found = []
    for name in PACKAGES:
        others = sorted({owner for owner in owners.get(name, ()) if owner.lower() != "ocpool"})
        if others:
            found.append(
                Finding(
                    f"The package {name} is also installed by {', '.join(others)}.",
                    "Install ocpool into an environment of its own: uv tool install, or pipx.",
                )
            )
    return found


def strangers(roots: Mapping[str, str | None] | None = None) -> list[Finding]:
    """Packages of ours that were loaded from somewhere else: a folder of that name where Python looks first."""
    files = {name: getattr(util.find_spec(name), "origin", None) for name in PACKAGES} if roots is None else roots
    folders = {name: Path(file).parent.parent for name, file in files.items() if file is not None}
    home = folders.get("proxy")
    return [
        Finding(
            f"The package {name} is found in {folders.get(name, 'no file')}, not beside ocpool's own in {home}.",
            "Start ocpool from another folder, or clear PYTHONPATH.",
        )
        for name in PACKAGES
        if folders.get(name) != home
    ]
