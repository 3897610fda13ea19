"""The conversations that are known: found, begun, counted, and forgotten in time.

Labels are derived, so to forget a conversation costs its counters and nothing of its identity. All of this is in
memory; what must outlive the process is the pool's.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from config.settings import Settings
from pool.eviction import batch
from pool.model import Natural, Note, Shape, Wish
from proxy.conversation.answer import Answer
from proxy.conversation.body import BodyFacts
from proxy.conversation.evidence import Evidence, Track
from proxy.conversation.ids import NEW, Reading
from proxy.conversation.labels import TELLING_LENGTH, identity, identity_of, is_label, label_of, new_label
from proxy.conversation.naturals import Naturals, digest_of, mint, shape_of
from proxy.conversation.precedence import OURS, PRECEDENCE, Kind, Where
from proxy.conversation.prefixes import Prefixes
from proxy.conversation.recognising import Recognised, Recogniser
from proxy.conversation.side import is_side_call, looks_aside

MODELS_KEPT = 16  # models of one conversation that are remembered
FAILURES_KEPT = 16
CLAIMS_PER_CONVERSATION = 8  # claims on clients' values that are remembered past their conversations

_SESSION_SIGNALS = tuple(name for row in PRECEDENCE if row.where is Where.FIELD and row.rank > 0 for name in row.names)


@dataclass(slots=True)
class Conversation:
    """One conversation of one scope. ``parent`` is a label, for display. ``known`` is False for rank 11.

    ``wish`` is what its last request asked of the pool: most likely, its next one asks the same.
    """

    label: str
    scope: str
    natural: Natural = field(repr=False)
    shape: Shape
    match: str
    first_seen_at: int
    last_seen_at: int
    in_flight: int = 0
    turns: int = 0
    models: dict[str, bool] = field(default_factory=dict)
    parent: str | None = None
    known: bool = True
    wish: Wish | None = field(default=None, repr=False)


class Resolved(NamedTuple):
    """Where a request belongs. ``turn`` is what ``Wish.turn`` wants: neither a side call nor unrecognised.

    ``match`` is the text of ``x-ocpool-match``. ``wants_answer``: the answer's content is asked for by ``answered``;
    False where an id of the client's decides and nothing casts doubt on it, so that nobody needs to read it.
    """

    conversation: Conversation
    side: bool
    turn: bool
    match: str = NEW
    wants_answer: bool = False
    track: Track | None = None


class Registry:
    """Every conversation by its label; of the idle ones at most ``conversation.max_count``, the latest used.

    A conversation with a request in flight is never forgotten, so their number is bounded by the listener's.
    """

    def __init__(
        self,
        settings: Settings,
        secret: bytes,
        holder: Callable[[str], str | None],
        evidence: Evidence | None = None,
    ) -> None:
        self._secret = secret
        self._holder = holder
        self.evidence = evidence
        if evidence is not None:
            evidence.busy = self._is_busy
        self._recogniser = Recogniser(evidence, secret, self._was_known) if evidence is not None else None
        self._failures: list[Note] = []
        self._all: dict[str, Conversation] = {}
        self._idle: OrderedDict[str, Conversation] = OrderedDict()  # the longest idle first
        self._naturals = Naturals(secret, holder, 0)
        self.reconfigure(settings)

    def __len__(self) -> int:
        return len(self._all)

    @property
    def prefixes(self) -> Prefixes | None:
        """What ``body.read`` may skip, because it read it before."""
        return self.evidence.prefixes if self.evidence is not None else None

    def reconfigure(self, settings: Settings) -> None:
        """Take the limits of new settings; what is beyond them goes with the next request."""
        self._max_count = settings.conversation.max_count
        self._idle_ttl_ms = settings.conversation.idle_ttl_ms
        self._naturals.remember = self._max_count * CLAIMS_PER_CONVERSATION
        if self.evidence is not None:
            self.evidence.reconfigure(settings)

    def resolve(self, reading: Reading, scope: str, provider: str, facts: BodyFacts | None, now: int) -> Resolved:
        """Find or begin the request's conversation, with one more in flight. Every call is owed one ``done``."""
        if self._idle:
            self._forget(now)
        found = self._recognised(reading, scope, facts, now)
        if facts is not None and facts.content is not None:
            facts.content.drop()
        if found is None:
            return Resolved(self.unnamed(scope, provider, now), reading.side, False, reading.match)
        label, track = found.label, found.track
        conversation = self._all.get(label)
        if conversation is None:
            conversation = self._begin(label, reading, scope, now)
        conversation.match = found.match
        conversation.last_seen_at = now
        if not conversation.in_flight:
            self._idle.pop(label, None)
        conversation.in_flight += 1
        if track is not None and reading.kind is not Kind.OWNER:
            side = found.side or reading.side
        else:
            side = found.side or is_side_call(conversation.models, facts, reading)
        if not side and facts is not None and facts.model is not None:
            _note_model(conversation.models, facts.model, facts)
        return Resolved(conversation, side, not side, found.match, track is not None, track)

    def answered(self, resolved: Resolved, answer: Answer | None, now: int) -> None:  # noqa: ARG002 - one signature
        """What the upstream answered, whole or in part; None when it was not read. Once, before ``done``."""
        if answer is None or resolved.track is None or self.evidence is None:
            return
        try:
            self.evidence.answered(resolved.track, answer)
        except Exception as exc:  # noqa: BLE001  (an answer that cannot be noted is as good as unread)
            self._failed(exc)

    def done(self, resolved: Resolved, now: int, completed: bool) -> None:
        """The request is over. A turn counts when it was ``completed``."""
        if resolved.track is not None and self.evidence is not None:
            self.evidence.done(resolved.track, now, completed=completed)
        conversation = resolved.conversation
        if conversation.in_flight == 0 or self._all.get(conversation.label) is not conversation:
            return
        conversation.in_flight -= 1
        conversation.last_seen_at = now
        if resolved.turn and completed:
            conversation.turns += 1
        if conversation.in_flight == 0:
            self._idle[conversation.label] = conversation
            if len(self._all) > self._max_count:
                self._forget(now)

    def unnamed(self, scope: str, provider: str, now: int) -> Conversation:
        """For a request that names nothing: the minted id of its scope and provider, under a label of its own.

        Nothing of it is kept. A client that sends the label back from then on has begun a conversation.
        """
        label = new_label(self._secret, scope)
        natural = _unnamed(self._secret, scope, provider)
        return Conversation(label, scope, natural, Shape.UUID, NEW, now, now, known=False)

    def by_label(self, label: str) -> Conversation | None:
        """The conversation with this label, if it is known."""
        return self._all.get(label)

    def parent_label(self, scope: str, value: bytes) -> str | None:
        """The label of the known conversation that the value of a parent field names, in the same scope."""
        text = value.decode("utf-8", "replace").strip(" \t")
        return self._parent(scope, text) if text else None

    def view(self, now: int) -> list[dict[str, object]]:
        """The known conversations, the latest used first, as ``/-/status`` shows them; no client's value in it."""
        latest = sorted(self._all.values(), key=lambda conversation: -conversation.last_seen_at)
        return [
            {
                "label": conversation.label,
                "match": conversation.match,
                "turns": conversation.turns,
                "in_flight": conversation.in_flight,
                "models": list(conversation.models),
                "parent": conversation.parent,
                "natural": "minted" if conversation.natural.minted else "client",
                "age_ms": max(0, now - conversation.first_seen_at),
                "idle_ms": 0 if conversation.in_flight else max(0, now - conversation.last_seen_at),
            }
            for conversation in latest
        ]

    def notes(self) -> list[Note]:
        """What happened since the last call that people should hear of."""
        notes, self._failures = self._failures, []
        if self._recogniser is not None:
            notes += self._recogniser.probation.notes
            self._recogniser.probation.notes = []
        return notes

    def _recognised(self, reading: Reading, scope: str, facts: BodyFacts | None, now: int) -> Recognised | None:
        if reading.signal == OURS and is_label(self._secret, scope, reading.value):
            return Recognised(reading.value, reading.match)
        if self._recogniser is not None:
            try:
                return self._recogniser.recognise(reading, scope, facts, now)
            except Exception as exc:  # noqa: BLE001  (content that cannot be weighed is no evidence)
                self._failed(exc)
        if reading.kind is Kind.NONE:
            return None
        return Recognised(label_of(self._secret, scope, identity_of(reading)), reading.match)

    def _failed(self, exc: Exception) -> None:
        if len(self._failures) < FAILURES_KEPT:
            self._failures.append(Note("evidence_failed", {"reason": type(exc).__name__}))

    def _was_known(self, label: str, reading: Reading) -> bool:
        """Was there a conversation with this label before, in this process or by a stored binding?"""
        if label in self._all:
            return True
        value = reading.session or reading.value
        return bool(value) and self._holder(digest_of(self._secret, value)) == label

    def _is_busy(self, label: str) -> bool:
        conversation = self._all.get(label)
        return conversation is not None and conversation.in_flight > 0

    def _begin(self, label: str, reading: Reading, scope: str, now: int) -> Conversation:
        shape = shape_of(reading.session, reading.value) if reading.value or reading.session else Shape.UUID
        natural = self._naturals.fix(label, reading.session, shape)
        conversation = Conversation(label, scope, natural, shape, reading.match, now, now)
        if reading.parent is not None:
            conversation.parent = self._parent(scope, reading.parent)
        self._all[label] = conversation
        if len(self._all) > self._max_count:
            self._forget(now)
        return conversation

    def _parent(self, scope: str, value: str) -> str | None:
        for signal in _SESSION_SIGNALS:
            label = label_of(self._secret, scope, identity(signal, value))
            if label in self._all:
                return label
            if len(value) >= TELLING_LENGTH:
                break
        return None

    def _forget(self, now: int) -> None:
        """Drop what was idle for too long, and of the rest what is over the bound, a few at a time."""
        idle, known = self._idle, self._all
        most = self._max_count
        if len(known) > most:
            most -= batch(most)
        while idle:
            label, oldest = next(iter(idle.items()))
            if len(known) <= most and now - oldest.last_seen_at < self._idle_ttl_ms:
                break
            del idle[label], known[label]
            if not oldest.natural.minted:
                self._naturals.release(oldest.natural)


@lru_cache(maxsize=256)
def _unnamed(secret: bytes, scope: str, provider: str) -> Natural:
    return mint(secret, f"unnamed\0{scope}\0{provider}", Shape.UUID)


def _note_model(models: dict[str, bool], model: str, facts: BodyFacts) -> None:
    """Remember a turn's model, and whether it could not have been a side call."""
    if not models.get(model):
        models[model] = not looks_aside(facts)
        if len(models) > MODELS_KEPT:
            del models[next(iter(models))]
