"""Side calls: a title, a summary, tags. They travel on their conversation's id and are no turn of it."""

from collections.abc import Mapping

from proxy.conversation.body import BodyFacts
from proxy.conversation.ids import Reading

SIDE_MESSAGES = 2


def looks_aside(facts: BodyFacts) -> bool:
    """Could this be a side call: no tools, and at most two messages that are no system's?"""
    return facts.parsed and not facts.tools and facts.non_system <= SIDE_MESSAGES


def is_side_call(models: Mapping[str, bool], facts: BodyFacts | None, reading: Reading) -> bool:
    """Is this request a side call of a conversation?

    ``models`` are those it took turns on, each with whether one of its turns could not have been a side call. On a
    model that is the conversation's own, only the client's mark makes a side call. A model on which nothing but
    lookalikes came, beside another with real turns, is not its own: a title may be asked for before the first turn.
    """
    if reading.side:
        return True
    if facts is None or facts.model is None or not models:
        return False
    model = facts.model
    if model in models and (models[model] or not any(models.values())):
        return False
    return looks_aside(facts)
