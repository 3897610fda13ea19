"""Settings from the environment: our own names, and those of pi-opencode-session-pool.

``OCPOOL_<SECTION>__<KEY>`` is ours. The pi extension's 19 variables work as ``PI_OCPOOL_X`` and as ``OCPOOL_X``.
An empty variable is one that is not set, as a compose file's ``${X:-}`` leaves it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from config.keys import KEYS, MODELS, find, nearest, spell
from config.notes import KeyPath, Notes
from config.values import SWITCHES, put, read_value

EXTENSION_KEYS: Mapping[str, str] = {
    "SIZE": "pool.size",
    "TTL_MS": "pool.ttl_ms",
    "MAX_UPSTREAM_MS": "probe.max_upstream_ms",
    "PROBE_TIMEOUT_MS": "probe.timeout_ms",
    "STARTUP_BUDGET_MS": "pool.startup_budget_ms",
    "REQUEST_BUDGET_MS": "pool.request_budget_ms",
    "PROBE_COOLDOWN_MS": "pool.probe_cooldown_ms",
    "REFRESH_INTERVAL_MS": "pool.refresh_interval_ms",
    "REFILL_DELAY_MS": "pool.refill_delay_ms",
    "MIN_PROBE_INTERVAL_MS": "probe.min_interval_ms",
    "LEASE_TTL_MS": "binding.lease_ttl_ms",
    "QUARANTINE_FAILURES": "quarantine.failures",
    "DEGRADE_MS": "quarantine.degrade_ms",
    "QUARANTINE_MS": "quarantine.quarantine_ms",
    "MAX_BINDINGS": "binding.max_count",
    "REQUIRE_GATEWAY_ID": "probe.require_gateway_id",
}
"""The extension's variables that mean one key of ours; "" (the master switch), DEBUG and STATE_PATH are the rest."""

EXTENSION_SWITCHES: Mapping[str, tuple[KeyPath, str, bool]] = {
    "": (("routing", "mode"), "off", False),
    "DEBUG": (("log", "level"), "debug", True),
}
"""Variables that are 0 or 1: the key, and the value that it has when the variable is the last item."""

STATE_PATH = "STATE_PATH"
CLIENT_KEY = "OPENCODE_API_KEY"


class _Claim(NamedTuple):
    """What a variable says of a key: that it is ``value``, or that it is anything else."""

    path: KeyPath
    variable: str
    value: Any
    holds: bool = True


def _path(suffix: str) -> KeyPath:
    """Where the rest of a name behind ``OCPOOL_`` leads; a model's name keeps its case."""
    match suffix.split("__"):
        case ["MODELS", name, field]:
            return MODELS, name, field.lower()
        case parts:
            return tuple(part.lower() for part in parts)


def _known() -> list[str]:
    own = [key.variable for key in KEYS.values()]
    return own + [f"OCPOOL_{suffix}" for suffix in [*EXTENSION_KEYS, "DEBUG", STATE_PATH]]


def _claim(variable: str, text: str, notes: Notes) -> _Claim | None:
    """One variable, read. An unknown ``PI_`` one is only warned of: it may be for a newer version of the extension."""
    base, _, suffix = variable.removeprefix("PI_").partition("_")
    if base != "OCPOOL" or not text.strip():
        return None
    if suffix in EXTENSION_SWITCHES:
        path, value, when = EXTENSION_SWITCHES[suffix]
        switch = SWITCHES.get(text.strip().lower())
        if switch is not None:
            return _Claim(path, variable, value, switch is when)
        notes.problems.append(f"environment {variable} = {text!r}: must be 0 or 1")
        return None
    theirs = EXTENSION_KEYS.get(suffix)
    path = tuple(theirs.split(".")) if theirs else _path(suffix)
    key = find(path)
    if suffix == STATE_PATH:
        notes.warnings.append(
            f"{variable} is ignored: it names the state file of the pi extension, which is never shared;"
            " set state.path or OCPOOL_STATE__PATH to place ocpool's own",
        )
    elif variable.startswith("PI_") and not theirs:
        notes.warnings.append(f"{variable} is ignored: ocpool has no such variable")
    elif key is None:
        near = nearest(variable, _known())
        notes.problems.append(f"environment {variable}: no such setting; the nearest is {near}")
    else:
        return _Claim(path, variable, read_value(key, text))
    return None


def variables(environ: Mapping[str, str], notes: Notes) -> dict[str, Any]:
    """Every ``OCPOOL`` variable of ``environ``; what is unknown or contradicts another is a problem."""
    claims = [claim for name in sorted(environ) if (claim := _claim(name, environ[name], notes))]
    said: dict[KeyPath, _Claim] = {}
    for claim in sorted(claims, key=lambda claim: not claim.holds):
        first = said.setdefault(claim.path, claim) if claim.holds else said.get(claim.path, claim)
        if first.holds and (first.value == claim.value) is not claim.holds:
            both = f"environment {first.variable} and {claim.variable}"
            notes.problems.append(f"{both} differ, and both set {spell(claim.path)}; unset one of them")
    tables: dict[str, Any] = {}
    for claim in said.values():
        notes.came(claim.path, f"environment {claim.variable}")
        put(tables, claim.path, claim.value)
    return tables


def client_key(environ: Mapping[str, str], notes: Notes) -> dict[str, Any]:
    """``OPENCODE_API_KEY`` is every client's variable, so anything that is ocpool's own goes before it."""
    key = environ.get(CLIENT_KEY, "").strip()
    if not key:
        return {}
    notes.came(("probe", "api_key"), f"environment {CLIENT_KEY}")
    return {"probe": {"api_key": key}}
