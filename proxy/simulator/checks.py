"""What is checked before an endpoint is chosen, in the gateway's order.

Cloudflare's gate, credential, session, model, protocol. A legacy account's model is checked before its credential and
its session last, since the session is the inference service's concern.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from proxy.simulator import reading, refusals
from proxy.simulator.knobs import Knobs
from proxy.simulator.models import COMPLETIONS, GOOGLE, MESSAGES, PROTOCOLS, RESPONSES, is_free, resolve
from proxy.simulator.paths import Route
from proxy.simulator.refusals import Refusal

GENERIC_USER_AGENTS: Final = ("python-urllib", "python-requests", "libwww-perl", "go-http-client", "java/")

_PROTOCOLS: Final = frozenset((COMPLETIONS, RESPONSES, MESSAGES, GOOGLE))


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as far as it was read before an endpoint is chosen."""

    route: Route
    fields: reading.Fields
    facts: reading.Facts
    key: str | None
    session: str | None


def edge(fields: reading.Fields, knobs: Knobs) -> Refusal | None:
    """Cloudflare's: a User-Agent that is missing or a library's own name."""
    agent = (reading.value(fields, "user-agent") or "").lower()
    generic = not agent or agent.startswith(GENERIC_USER_AGENTS)
    return refusals.edge_refused() if knobs.user_agent_gate and generic else None


def authorised(asked: Asked, knobs: Knobs) -> Refusal | None:
    """The credential. ``sk-blocked...`` is a blocked workspace, ``sk-invalid...`` never works."""
    key = asked.key
    if key is None:
        return refusals.unauthorized("Missing API key.")
    if key == "public":
        free = asked.facts.model is not None and is_free(asked.facts.model)
        return None if free else refusals.unauthorized("Missing API key.")
    if key.startswith("sk-blocked"):
        return refusals.unauthorized("Request blocked by upstream provider")
    if knobs.keys is not None:
        return None if key in knobs.keys else refusals.unauthorized("Invalid API key.")
    oauth = key.startswith("st_") and asked.route.tree == "inference"
    named = reading.value(asked.fields, "x-opencode-org-id") is not None
    shaped = key.startswith(("sk-", "oc_sk_")) or (oauth and named)
    if not shaped or key.startswith("sk-invalid"):
        return refusals.unauthorized("Invalid API key.")
    return None


def routable(asked: Asked, knobs: Knobs) -> Refusal | None:  # noqa: ARG001  (one shape for all checks)
    """The session: asked for on Go, and for free models anywhere."""
    wanted = asked.route.provider == "opencode-go" or is_free(asked.facts.model or "")
    return refusals.no_session() if wanted and asked.session is None else None


def known_model(asked: Asked, knobs: Knobs) -> Refusal | None:  # noqa: ARG001
    """A model that this tree has; free ones are for OpenCode's own client. Models of minor APIs are not listed."""
    model = asked.facts.model
    if model is not None and asked.route.api not in _PROTOCOLS:
        return None
    if model is None or resolve(model) not in PROTOCOLS[asked.route.provider]:
        return refusals.unknown_model(model or "undefined")
    agent = reading.value(asked.fields, "user-agent") or ""
    if is_free(model) and not agent.startswith("opencode/"):
        return refusals.free_tier()
    return None


def right_protocol(asked: Asked, knobs: Knobs) -> Refusal | None:  # noqa: ARG001
    """A model speaks one protocol."""
    spoken = PROTOCOLS[asked.route.provider].get(resolve(asked.facts.model or ""))
    asks = asked.route.api
    if spoken is not None and asks in _PROTOCOLS and asks != spoken:
        return refusals.wrong_protocol()
    return None


def readable(asked: Asked, knobs: Knobs) -> Refusal | None:  # noqa: ARG001
    """The endpoint's own check, last of all."""
    return None if asked.facts.valid else refusals.invalid_request("Request body is not valid JSON")


Check = Callable[[Asked, Knobs], Refusal | None]
_MIGRATED: Final[tuple[Check, ...]] = (authorised, routable, known_model, right_protocol, readable)
_LEGACY: Final[tuple[Check, ...]] = (known_model, authorised, routable, right_protocol, readable)


def refusal_of(asked: Asked, knobs: Knobs, *, legacy: bool) -> Refusal | None:
    """The first check that fails."""
    for check in _LEGACY if legacy else _MIGRATED:
        refusal = check(asked, knobs)
        if refusal is not None:
            return refusal
    return None
