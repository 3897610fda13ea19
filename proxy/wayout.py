"""The way out, should the gateway's contract about the session field change while nobody looks.

A refusal that names the session field of a request that we rewrote is replayed once with the client's own fields. If
those are accepted twice in a row, it is our rewriting that is refused: from then on the provider's requests leave as
their clients made them, and every half an hour one is rewritten again to find out whether that works. In memory only.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pool.model import Source, Start, Wish

AGAIN_MS: Final = 1_800_000
ROW: Final = 2  # accepted in a row with the client's own fields

REASON: Final = "bypass"  # why no probes are sent meanwhile: they carry the field that is refused


class Sent(StrEnum):
    """With which session fields an attempt left."""

    REWRITTEN = "rewritten"
    REPLAYED = "replayed"  # the client's own, after a refusal that named ours
    OWN = "own"  # the client's own from the start, because the provider is bypassed


class Change(StrEnum):
    """What an outcome changed: the name of its event."""

    BEGUN = "bypass"
    OVER = "bypass_over"


@dataclass(slots=True)
class _Provider:
    row: int = 0
    proven_at: int = 0  # when the client's own fields were last accepted where ours were not
    bypassed_at: int | None = None
    again_at: int = 0


class WayOut:
    """Which providers are bypassed. Instants are unix ms.

    ``watched``: those that have taken a client's own fields where ours were refused, or refused both.
    """

    __slots__ = ("watched",)

    def __init__(self) -> None:
        self.watched: dict[str, _Provider] = {}

    def bypasses(self, provider: str, now: int) -> bool:
        """Does this request leave with the client's own fields? One in half an hour does not, to try again."""
        known = self.watched.get(provider)
        if known is None or known.bypassed_at is None:
            return False
        if 0 <= known.again_at - now <= AGAIN_MS:
            return True
        known.again_at = now + AGAIN_MS
        return False

    def settled(self, provider: str, sent: Sent, status: int | None, sent_at: int, now: int) -> Change | None:
        """What the answer to an attempt says; ``status`` is the gateway's, None when it gave none.

        ``sent_at`` is when the attempt left: an answer to one that is older than the proof against it proves nothing.
        """
        known = self.watched.get(provider)
        if status is None or sent is Sent.OWN or (known is None and sent is Sent.REWRITTEN):
            return None
        if known is None:
            known = self.watched[provider] = _Provider()
        accepted = 200 <= status < 300
        if sent is Sent.REPLAYED:
            return self._replayed(known, accepted, now)
        if not accepted or sent_at <= known.proven_at:
            return None
        del self.watched[provider]
        return None if known.bypassed_at is None else Change.OVER

    def _replayed(self, known: _Provider, accepted: bool, now: int) -> Change | None:
        if not accepted:
            if known.bypassed_at is None:
                known.row = 0  # it is not our field alone that is refused
            return None
        known.row += 1
        known.proven_at = now
        if known.bypassed_at is not None or known.row < ROW:
            return None
        known.bypassed_at, known.again_at = now, now + AGAIN_MS
        return Change.BEGUN

    def view(self) -> dict[str, dict[str, int]]:
        """The providers that are bypassed, since when, and when one is tried again."""
        return {
            provider: {"since": known.bypassed_at, "again_at": known.again_at}
            for provider, known in self.watched.items()
            if known.bypassed_at is not None
        }


def unrouted(wish: Wish, now: int) -> Start:
    """The start of a request that leaves as its client made it: no id of the pool is on it, none is judged by it."""
    return Start(wish, wish.natural.value, Source.NONE, now, bound=False, first_turn=False)


def banner(provider: str) -> str:
    """What the status says while a provider is bypassed."""
    return (
        f"The gateway refuses the session field that ocpool sends for {provider} and takes the clients' own, so "
        "requests pass unchanged; it is tried again every 30 minutes. Look for a newer ocpool."
    )
