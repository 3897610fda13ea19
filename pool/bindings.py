"""Which conversation owns which id, as this process knows it.

The table mirrors the store (``pool/adoption.py``) and is ahead of it by what waits in the outbox. A natural id
that is a client's own value is held as ``digest:<hex>``; the value itself comes back with the next request.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from config.settings import Settings
from pool.eviction import batch
from pool.ids import DIGEST_PREFIX, id_digest
from pool.model import Binding, Natural, Source
from pool.outbox import Outbox

RETIRED_KEPT: Final = 4096
TOUCH_MS: Final = 5_000  # what is measured of a binding is written at most this often
_NATURAL: Final = Source.NATURAL


def stored_id(natural: Natural) -> str:
    """How a natural id is held and written: a client's own value only as its digest."""
    return natural.value if natural.minted else DIGEST_PREFIX + natural.digest


def wire_id(binding: Binding, natural: Natural | None = None) -> str | None:
    """The id a binding's requests go out on; None while a client's value has not come back yet."""
    if binding.value is None and natural is not None and binding.routed_id == DIGEST_PREFIX + natural.digest:
        binding.value = natural.value
    return binding.value


def is_natural(binding: Binding) -> bool:
    return binding.source is _NATURAL


class Bindings:
    """The table, the ids retired for good, and what the store is still to be told."""

    __slots__ = (
        "_brief",
        "_by_key",
        "_durable",
        "_had_route",
        "_holders",
        "_keys_of",
        "_lease_ttl_ms",
        "_most_brief",
        "_persist",
        "_settings",
        "get",
        "known",
        "outbox",
        "retired",
    )

    def __init__(self, settings: Settings) -> None:
        self._by_key: dict[str, Binding] = {}
        self.get: Callable[[str], Binding | None] = self._by_key.get  # by its key
        self._keys_of: dict[str, dict[str, None]] = {}  # by conversation
        self._holders: dict[str, dict[str, None]] = {}  # by a client's value, as it is stored
        self._brief: OrderedDict[str, None] = OrderedDict()  # natural ones of one turn, the first bound first
        self._durable: dict[str, None] = {}  # those that count, and are written if bindings are
        self._had_route: dict[str, None] = {}  # keys whose routed id was dropped: the next is a repin
        self.known: set[str] = set()  # keys that the store has
        self.retired: dict[str, int] = {}  # digest -> when
        self.outbox = Outbox()
        self.reconfigure(settings)

    def reconfigure(self, settings: Settings) -> None:
        self._settings = settings
        self._lease_ttl_ms = settings.binding.lease_ttl_ms
        self._persist = settings.binding.persist
        self._most_brief = settings.conversation.max_count

    # -- reading ----------------------------------------------------------------------------------
    def __iter__(self) -> Iterator[Binding]:
        return iter(tuple(self._by_key.values()))

    def __len__(self) -> int:
        return len(self._by_key)

    def of(self, conversation: str) -> list[Binding]:
        """All bindings of a conversation, whatever the provider and model."""
        return [self._by_key[key] for key in self._keys_of.get(conversation, ())]

    def durable(self) -> list[Binding]:
        """Those that count against ``binding.max_count``."""
        return [self._by_key[key] for key in self._durable]

    def is_durable(self, key: str) -> bool:
        return key in self._durable

    def is_alive(self, binding: Binding, now: int) -> bool:
        """Idle no longer than the lease, and not struck out."""
        if now - binding.last_seen_at > self._lease_ttl_ms:
            return False
        if not binding.failures or is_natural(binding):
            return True
        return binding.failures < self._settings.quarantine_for(binding.model).failures

    def had_route(self, key: str) -> bool:
        return key in self._had_route

    def is_retired(self, routed_id: str) -> bool:
        return bool(self.retired) and id_digest(routed_id) in self.retired

    def holder(self, digest: str) -> str | None:
        """The conversation whose binding is a client's value with this digest."""
        held = self._holders.get(DIGEST_PREFIX + digest)
        return next(iter(held)).partition("::")[0] if held else None

    # -- deciding ---------------------------------------------------------------------------------
    def put(self, binding: Binding, now: int) -> list[Binding]:
        """Bind a conversation that has no binding; returns those that count and had to make room.

        Who began on a natural id and did not come back is forgotten without a word: it would begin on that id again.
        """
        self._add(binding)
        if binding.source is not _NATURAL:
            return self.keep(binding, now)
        brief = self._brief
        brief[binding.key] = None
        if len(brief) > self._most_brief:
            for key in list(islice(brief, 1 + batch(self._most_brief))):
                self._drop(key)
        return []

    def keep(self, binding: Binding, now: int) -> list[Binding]:
        """From now on it counts, and is written: a routed one, or a natural one's second turn."""
        if binding.key in self._durable:
            return []
        self._durable[binding.key] = None
        self._brief.pop(binding.key, None)
        if self._persist:
            binding.told_at = now
            self.outbox.bind(binding.key, now)
        return self._make_room(binding.key, now)

    def touch(self, binding: Binding, now: int, *, pressing: bool = False) -> None:
        """Its measurements changed; told every ``TOUCH_MS`` at most, unless that is a decision others should know."""
        if 0 <= now - binding.told_at < TOUCH_MS and not pressing:
            return
        if self._persist and binding.key in self._durable:
            binding.told_at = now
            self.outbox.touch(binding.key, now)

    def retire(self, binding: Binding, now: int) -> None:
        """Its routed id is never to be used again, by anyone."""
        self.ban(binding.routed_id, now)
        _remember(self._had_route, binding.key)
        self._drop(binding.key)
        if self._persist:
            self.outbox.retire(binding.key, binding.routed_id, now)

    def forget(self, binding: Binding, now: int) -> None:
        """Drop a binding whose id stays usable for its conversation: a natural one."""
        written = self._drop(binding.key)
        if written and self._persist:
            self.outbox.forget(binding.key, binding.routed_id, now)

    def end(self, binding: Binding, now: int) -> None:
        """Retire or forget, as its id demands."""
        (self.forget if is_natural(binding) else self.retire)(binding, now)

    def repin(self, binding: Binding, now: int) -> None:
        """By command: a routed id is retired, a natural one is left as soon as a spare is ready."""
        if binding.standby is not None:
            self.ban(binding.standby, now)
            binding.standby = None
        _remember(self._had_route, binding.key)
        if is_natural(binding):
            binding.marked = True
            self.touch(binding, now, pressing=True)
        else:
            self.retire(binding, now)

    def prune(self, now: int) -> list[Binding]:
        """Drop what has been idle for too long."""
        dead = [binding for binding in self if not self.is_alive(binding, now)]
        for binding in dead:
            self.end(binding, now)
        horizon = now - self._lease_ttl_ms
        self.retired = {digest: at for digest, at in self.retired.items() if at >= horizon}
        return dead

    def ban(self, routed_id: str, now: int) -> None:
        """Remember an id as retired."""
        self.retired[id_digest(routed_id)] = now
        while len(self.retired) > RETIRED_KEPT:
            del self.retired[next(iter(self.retired))]

    def settle_clock(self, now: int) -> None:
        """After the clock stepped back: what was seen in the future was seen now."""
        for binding in self:
            if binding.last_seen_at > now:
                binding.last_seen_at = now
                self.touch(binding, now, pressing=True)

    # -- adopting ---------------------------------------------------------------------------------
    def mirror(self, binding: Binding) -> None:
        """Take a binding over from the store."""
        self._add(binding)
        self._durable[binding.key] = None
        self._brief.pop(binding.key, None)

    def lose(self, key: str) -> Binding | None:
        """Drop a binding that the store does not have any more."""
        binding = self._by_key.get(key)
        if binding is not None:
            if not is_natural(binding):
                _remember(self._had_route, key)
            self._drop(key)
        return binding

    def learn_retired(self, digests: Iterable[tuple[str, int]]) -> list[Binding]:
        """Ids that others retired; drops and returns the bindings that still had one."""
        new = [(digest, at) for digest, at in digests if digest not in self.retired]
        self.retired.update(new)
        names = {digest for digest, _ in new}
        hit = [b for b in self if id_digest(b.routed_id) in names] if names else []
        for binding in hit:
            self.lose(binding.key)
        for binding in self if names else ():
            if binding.standby is not None and id_digest(binding.standby) in names:
                binding.standby = None
        return hit

    def _add(self, binding: Binding) -> None:
        key, routed_id = binding.key, binding.routed_id
        if key in self._by_key:
            self._let_go(self._by_key[key])
        self._by_key[key] = binding
        self._keys_of.setdefault(key.partition("::")[0], {})[key] = None
        if routed_id.startswith(DIGEST_PREFIX):
            self._holders.setdefault(routed_id, {})[key] = None
        else:
            binding.value = routed_id

    def _drop(self, key: str) -> bool:
        self._let_go(self._by_key.pop(key))
        conversation = key.partition("::")[0]
        keys = self._keys_of[conversation]
        del keys[key]
        if not keys:
            del self._keys_of[conversation]
        self._brief.pop(key, None)
        if key not in self._durable:
            return False
        del self._durable[key]
        return True

    def _let_go(self, binding: Binding) -> None:
        """It holds a client's value no more."""
        held = self._holders.get(binding.routed_id)
        if held is not None:
            held.pop(binding.key, None)
            if not held:
                del self._holders[binding.routed_id]

    def _make_room(self, newest: str, now: int) -> list[Binding]:
        """Evict what has been idle longest of those that count."""
        most = self._settings.binding.max_count
        if len(self._durable) <= most:
            return []
        evicted = _oldest(self.durable(), newest, most)
        for binding in evicted:
            self.end(binding, now)
        return evicted


def _oldest(bindings: list[Binding], newest: str, keep: int) -> list[Binding]:
    by_age = sorted((b for b in bindings if b.key != newest), key=lambda b: b.last_seen_at)
    return by_age[: max(0, len(bindings) - keep)]


def _remember(keys: dict[str, None], key: str) -> None:
    keys.pop(key, None)
    keys[key] = None
    while len(keys) > RETIRED_KEPT:
        del keys[next(iter(keys))]
