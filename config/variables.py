"""Settings from the environment: our own names, and those of pi-opencode-session-pool.

``OCPOOL_<SECTION>__<KEY>`` is ours. The pi extension's 19 variables work as ``PI_OCPOOL_X`` and as ``OCPOOL_X``.
An empty variable is one that is not set, as a compose file's ``${X:-}`` leaves it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from config.entries import Entry, Found, Path
from config.keys import KEYS, MODELS, find, nearest, spell
from config.values import SWITCHES, read_text

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

EXTENSION_SWITCHES: Mapping[str, tuple[Path, str, bool]] = {
    "": (("routing", "mode"), "off", False),
    "DEBUG": (("log", "level"), "debug", True),
}
"""Variables that are 0 or 1: the key, and the value that it has when the variable is the last item."""

STATE_PATH = "STATE_PATH"


@dataclass(frozen=True, slots=True)
class _Claim:
    """What a variable says of a key: that it is ``value``, or (``but``) that it is anything else."""

    variable: str
    value: Any
    but: bool = False

    def disputes(self, other: "_Claim") -> bool:
        if self.but and other.but:
            return False
        return (self.value == other.value) is (self.but or other.but)


@dataclass(slots=True)
class _Reading:
    found: Found = field(default_factory=Found)
    claims: dict[Path, list[_Claim]] = field(default_factory=dict)

    def claim(self, path: Path, claim: _Claim) -> None:
        self.claims.setdefault(path, []).append(claim)

    def own(self, variable: str, text: str) -> None:
        """``OCPOOL_<SECTION>__<KEY>``; a model's name keeps its case."""
        section, *middle, last = variable.removeprefix("OCPOOL_").split("__")
        section, last = section.lower(), last.lower()
        if section == MODELS and any(middle):
            path: Path = (section, "__".join(middle), last)
        else:
            path = (section, "__".join([*(part.lower() for part in middle), last]))
        key = find(path)
        if key is None:
            self.unknown(variable)
        else:
            self.claim(path, _Claim(variable, read_text(key, text)))

    def extension(self, variable: str, suffix: str, text: str) -> None:
        """One of the 19 variables of the pi extension."""
        if suffix == STATE_PATH:
            self.found.warnings.append(
                f"{variable} is ignored: it names the state file of the pi extension, which is never shared;"
                " set state.path or OCPOOL_STATE__PATH to place ocpool's own",
            )
        elif suffix in EXTENSION_SWITCHES:
            path, value, when = EXTENSION_SWITCHES[suffix]
            switch = SWITCHES.get(text.strip().lower())
            if switch is None:
                self.found.problems.append(f"environment {variable} = {text!r}: must be 0 or 1")
            else:
                self.claim(path, _Claim(variable, value, but=switch is not when))
        else:
            key = KEYS[EXTENSION_KEYS[suffix]]
            self.claim((key.section, key.field), _Claim(variable, read_text(key, text)))

    def unknown(self, variable: str) -> None:
        self.found.problems.append(
            f"environment {variable}: no such setting; the nearest is {nearest(variable, _known())}",
        )

    def settle(self) -> Found:
        """Entries from the claims that agree, refusals for those that do not."""
        for path, claims in self.claims.items():
            first = claims[0]
            for other in claims[1:]:
                if first.disputes(other):
                    self.found.problems.append(
                        f"environment {first.variable} and {other.variable} differ, and both set {spell(path)};"
                        " unset one of them",
                    )
            said = next((claim for claim in claims if not claim.but), None)
            if said is not None:
                self.found.entries.append(Entry(path, said.value, f"environment {said.variable}"))
        return self.found


def _known() -> list[str]:
    own = [key.variable for key in KEYS.values()]
    return own + [f"OCPOOL_{suffix}" for suffix in [*EXTENSION_KEYS, "DEBUG", STATE_PATH]]


def _is_extension(suffix: str) -> bool:
    return suffix in EXTENSION_KEYS or suffix in EXTENSION_SWITCHES or suffix == STATE_PATH


def from_environment(environ: Mapping[str, str]) -> Found:
    """Every ``OCPOOL`` variable, read; what is unknown or contradicts another is a problem.

    An unknown ``PI_OCPOOL_`` variable is only warned of: it may be for a newer version of the extension.
    """
    reading = _Reading()
    for variable in sorted(environ):
        base, _, suffix = variable.removeprefix("PI_").partition("_")
        text = environ[variable]
        if base != "OCPOOL" or not text.strip():
            continue
        ours = variable.startswith("OCPOOL")
        if _is_extension(suffix):
            reading.extension(variable, suffix, text)
        elif not ours:
            reading.found.warnings.append(f"{variable} is ignored: ocpool has no such variable")
        elif "__" in suffix:
            reading.own(variable, text)
        else:
            reading.unknown(variable)
    return reading.settle()
