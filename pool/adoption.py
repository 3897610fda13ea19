"""Memory takes over what the store says: what others bound, moved, measured and retired.

What memory decided since the store was read waits in the outbox and is left alone here; the next write settles
it. Snapshots are never merged: a binding is taken over, updated in what was measured, or dropped.
"""

from typing import Final

from pool.bindings import Bindings, is_natural
from pool.inventory import Inventory
from pool.model import Binding, ModelKey, Note
from pool.parts import note
from pool.ports import Contents

FUTURE_MS: Final = 60_000


def adopt(bindings: Bindings, inventory: Inventory, contents: Contents, now: int, *, anew: bool) -> list[Note]:
    """Bring memory in line. ``anew``: the store was made anew, so what it lacks was not dropped by anyone."""
    notes = [_note("retired_elsewhere", binding) for binding in bindings.learn_retired(contents.retired.items())]
    inventory.purge(contents.retired)
    waiting = bindings.outbox.pending
    for key, theirs in contents.bindings.items():
        if key in waiting:
            continue
        if bindings.is_retired(theirs.routed_id):  # it came back, from a copy say
            bindings.outbox.retire(key, theirs.routed_id, now)
        else:
            notes += _adopt_one(bindings, theirs, now)
    missing = set() if anew else bindings.known - contents.bindings.keys()
    for key in missing - waiting.keys():
        # Another one, that was never to be written, may have taken its place here.
        lost = bindings.lose(key) if bindings.is_durable(key) else None
        if lost is not None:
            notes.append(_note("dropped_elsewhere", lost))
    bindings.known = contents.bindings.keys() | (missing & waiting.keys())
    return notes


def _adopt_one(bindings: Bindings, theirs: Binding, now: int) -> list[Note]:
    ours = bindings.get(theirs.key)
    if ours is not None and ours.routed_id == theirs.routed_id:
        _update(ours, theirs)
        bindings.mirror(ours)
        return []
    if now - theirs.last_seen_at < -FUTURE_MS or not bindings.is_alive(theirs, now):
        return []
    if ours is None:
        bindings.mirror(theirs)
        return []
    if not is_natural(ours):
        bindings.ban(ours.routed_id, now)
    bindings.lose(ours.key)
    bindings.mirror(theirs)
    return [_note("adopt", theirs)]


def _update(ours: Binding, theirs: Binding) -> None:
    """The later measurement counts, a mark and a standby stay."""
    if theirs.last_seen_at > ours.last_seen_at:
        ours.last_seen_at = theirs.last_seen_at
        ours.upstream_ms, ours.verified_at = theirs.upstream_ms, theirs.verified_at
        ours.failures, ours.endpoint = theirs.failures, theirs.endpoint
    ours.turns = max(ours.turns, theirs.turns)
    ours.bound_at = min(ours.bound_at, theirs.bound_at)
    ours.marked = ours.marked or theirs.marked
    ours.standby = ours.standby or theirs.standby
    ours.corrected = ours.corrected or theirs.corrected
    ours.locked = ours.locked or theirs.locked


def _note(name: str, binding: Binding) -> Note:
    label = binding.key.partition("::")[0]
    return note(name, label, ModelKey(binding.provider, binding.model), binding.routed_id)
