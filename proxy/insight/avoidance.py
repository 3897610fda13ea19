"""Are bad routes avoided? Ids that nobody had chosen yet, beside turns on ids that were.

The latency profile does not measure the natural id of a conversation that starts on a spare. But the first probe of a
new id is what a natural id would have met: to the gateway both are ids that it never saw. The measurement by which an
id was chosen says nothing about what choosing is worth, so that chosen ids are judged by their turns alone.
"""

from typing import Any, Final

from proxy.insight.intervals import Interval, fewer

SLOW_MS: Final = 6_000.0  # quarantine.degrade_ms, unless the caller knows better
MUCH_TOKENS: Final = 20_000  # reading so many uncached ones may take long on any route
LEAST: Final = 10  # on each side, to say anything
_REFUSED: Final = frozenset({"timeout", "overloaded"})
_CHOSEN: Final = frozenset({"spare", "repin", "probe"})


class Avoidance:
    """Counts of both kinds, and how many of each were bad."""

    __slots__ = ("_bad", "_seen", "_slow_ms")

    def __init__(self, slow_ms: float = SLOW_MS) -> None:
        self._slow_ms = slow_ms
        self._seen = {"unchosen": 0, "chosen": 0}
        self._bad = {"unchosen": 0, "chosen": 0}

    def probe(self, facts: dict[str, Any]) -> None:
        """A probe; only that of an id that was never seen before counts."""
        kind = str(facts.get("kind"))
        took = facts.get("upstream_ms") or facts.get("wall_ms")
        if facts.get("again") or kind not in {"fast", "slow", "gateway-id-mismatch", *_REFUSED}:
            return
        self._count("unchosen", bad=kind in _REFUSED or (isinstance(took, int | float) and took >= self._slow_ms))

    def request(self, facts: dict[str, Any]) -> None:
        """A request; only a turn on a chosen id counts, unless it had much to read."""
        if str(facts.get("route")) not in _CHOSEN or facts.get("side_call") or not facts.get("stream"):
            return
        tokens = facts.get("tokens")
        read = _count(tokens, "input") - _count(tokens, "cached") if isinstance(tokens, dict) else 0
        took = facts.get("upstream_ms") or facts.get("first_event_ms")
        if facts.get("verdict") == "overload":
            self._count("chosen", bad=True)
        elif isinstance(took, int | float) and read <= MUCH_TOKENS:
            self._count("chosen", bad=took >= self._slow_ms)

    @property
    def avoided(self) -> Interval | None:
        """By how much the share of bad turns on chosen ids is below that of ids that nobody chose."""
        if min(self._seen.values()) < LEAST:
            return None
        return fewer(self._bad["unchosen"], self._seen["unchosen"], self._bad["chosen"], self._seen["chosen"])

    @property
    def effect(self) -> str:
        """``helps``, ``harms``, ``none`` or ``unknown``."""
        found = self.avoided
        if found is None or found.low is None or found.high is None:
            return "unknown"
        if found.holds(0.0):
            return "none"
        return "helps" if found.low > 0 else "harms"

    def says(self) -> str:
        """Both shares, in words."""
        chosen, unchosen = (self._bad[kind] / max(1, self._seen[kind]) for kind in ("chosen", "unchosen"))
        told = f"{chosen:.1%} of turns on chosen ids were slow or refused"
        return f"{told}, and {unchosen:.1%} of ids that nobody had chosen"

    def facts(self) -> dict[str, Any]:
        found = self.avoided
        values: tuple[float | None, ...] = (None, None, None) if found is None else found
        points = [None if value is None else round(100 * value, 1) for value in values]
        shown = dict(zip(("points", "low", "high"), points, strict=True))
        sides = {kind: {"seen": self._seen[kind], "bad": self._bad[kind]} for kind in ("unchosen", "chosen")}
        return {**sides, "fewer": {**shown, "effect": self.effect}}

    def _count(self, kind: str, *, bad: bool) -> None:
        self._seen[kind] += 1
        self._bad[kind] += bad


def _count(tokens: dict[str, Any], kind: str) -> int:
    found = tokens.get(kind)
    return found if isinstance(found, int) else 0
