"""Bindings that were taken over from pi-opencode-session-pool and wait for their conversation to come by.

Its file names conversations by pi's session ids; here they are kept under a digest of that id, because no client's id
is written to disk, and go to the first scope that sends the id (``ocpool import``).
"""

from dataclasses import replace
from typing import Final

from pool.model import Binding, Wish, binding_key
from pool.parts import Parts

PREFIX: Final = "imported-"


def imported_key(digest: str, provider: str, model: str) -> str:
    """Where a binding waits; ``digest`` is that of the client's id, as in ``Natural.digest``."""
    return binding_key(f"{PREFIX}{digest}", provider, model)


def inherit(parts: Parts, wish: Wish, now: int) -> Binding | None:
    """The imported binding of a conversation that has none of its own yet; from now on it is the conversation's.

    For a conversation that its client named: a minted id was never imported.
    """
    found = parts.bindings.get(imported_key(wish.natural.digest, wish.provider, wish.model))
    if found is None:
        return None
    if not parts.bindings.is_alive(found, now):
        parts.bindings.end(found, now)
        return None
    parts.bindings.forget(found, now)  # the id stays usable: it only changes its key
    binding = replace(found, key=wish.key, scope=wish.scope, last_seen_at=now)
    for evicted in parts.bindings.put(binding, now):
        parts.notes.append(
            parts.note("evict", wish, evicted.routed_id, reason="room", of=evicted.key.partition("::")[0])
        )
    parts.notes.append(parts.note("inherit", wish, binding.routed_id))
    return binding
