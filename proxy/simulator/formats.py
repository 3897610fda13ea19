"""Which format a path's replies have."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from proxy.simulator import dialects, replies
from proxy.simulator.models import COMPLETIONS, GOOGLE, MESSAGES, RESPONSES
from proxy.simulator.world import Plan

STREAMED: Final = frozenset((COMPLETIONS, RESPONSES, MESSAGES, GOOGLE))
PING_COST: Final = b'event: ping\ndata: {"type":"ping","cost":"0"}'
GOOGLE_COST: Final = b'data: {"type":"ping","cost":"0"}'


def whole(api: str, plan: Plan, model: str, tools: Sequence[str], created: int) -> dict[str, Any]:
    """The body of a reply that is not streamed."""
    if api == COMPLETIONS:
        return replies.chat_json(plan, model, tools, created)
    if api == RESPONSES:
        return dialects.response_json(plan, model, created)
    if api == MESSAGES:
        return dialects.message_json(plan, model)
    if api == GOOGLE:
        return dialects.google_json(plan, model)
    return dialects.minor_json(plan, model, api)


def events(api: str, plan: Plan, model: str, tools: Sequence[str], created: int) -> Iterable[tuple[float, bytes]]:
    """The events of a streamed reply; ``api`` is one of `STREAMED`."""
    if api == COMPLETIONS:
        return replies.chat_events(plan, model, tools, created)
    if api == RESPONSES:
        return dialects.response_events(plan, model, created)
    if api == MESSAGES:
        return dialects.message_events(plan, model)
    return dialects.google_events(plan, model)


def cost_event(api: str) -> bytes:
    """What the older path says after the end of a stream that is no chat; a chat's is part of its style."""
    return GOOGLE_COST if api == GOOGLE else PING_COST
