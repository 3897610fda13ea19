"""What may be chosen about a gateway beyond its scenario."""

from dataclasses import dataclass, field
from typing import Literal, Protocol

from proxy.simulator.faults import Behaviour
from proxy.simulator.reading import ACCEPTED_SESSION_FIELDS


class Clock(Protocol):
    """Time as the gateway needs it; the caller brings it, so that both sides of a demo share one."""

    def mono_ms(self) -> float:
        """Milliseconds that only grow."""

    def wall_ms(self) -> int:
        """Unix time in milliseconds."""

    def seconds(self, ms: float) -> float:
        """Real seconds that ``ms`` take."""


@dataclass(frozen=True, slots=True)
class Knobs:
    """Attributes.

    mode: ``migrated`` shows all of the inference service's headers; ``legacy`` shows content-type and
        cache-control alone, prefixes errors and adds a cost event. None: as the scenario says.
    session_fields: Fields a session is read from, first match wins; the real order is unknown.
    keys: The credentials that work; None: any of a known shape (``sk-``, ``oc_sk_``, ``st_``).
    user_agent_gate: Cloudflare's refusal of missing and generic User-Agents.
    silence_ms: After how long without a head Cloudflare answers 524.
    keepalive_ms: How often a thinking endpoint sends a comment.
    stall_ms: How long a stalled stream stalls.
    keep_bodies: Keep each request's bytes in its record.
    every: How each request is served unless a script says otherwise.
    """

    mode: Literal["migrated", "legacy"] | None = None
    session_fields: tuple[str, ...] = ACCEPTED_SESSION_FIELDS
    keys: frozenset[str] | None = None
    user_agent_gate: bool = True
    silence_ms: float = 120_000.0
    keepalive_ms: float = 5_000.0
    stall_ms: float = 40_000.0
    keep_bodies: bool = False
    every: Behaviour = field(default_factory=Behaviour)
