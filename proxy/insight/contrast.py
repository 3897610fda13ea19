"""Days with routing beside days without: is the median conversation faster, and is it more than chance?

A strict comparison, as dsh-plugin-opencode-route describes it: ``routing.mode`` ``observe`` (or ``off``) for a day, and
``route`` for a day. Each conversation counts once, with the median of its turns, so that a long one does not decide
alone.
"""

from typing import Any, Final

from proxy.insight.intervals import Interval, interval, median, ratio
from proxy.insight.samples import Sample

CONVERSATIONS: Final = 2_000  # of one kind of day; later ones take the place of those longest without a turn
TURNS: Final = 64  # kept of one conversation
LEAST_TOKENS: Final = 16  # fewer say nothing about speed
LEAST: Final = 5  # conversations on each side, to say anything


class _Conversation:
    """The turns of one conversation: speeds, where a turn's own line told them, and waits."""

    __slots__ = ("rates", "told", "waits")

    def __init__(self) -> None:
        self.rates = Sample(TURNS)  # by the request's line
        self.told = Sample(TURNS)  # by the turn's line, which knows better
        self.waits = Sample(TURNS)

    @property
    def tps(self) -> float | None:
        values = self.told.values or self.rates.values
        return median(values) if values else None


class Days:
    """The conversations of one kind of day."""

    __slots__ = ("_conversations",)

    def __init__(self) -> None:
        self._conversations: dict[str, _Conversation] = {}

    def request(self, name: str, facts: dict[str, Any]) -> None:
        """A request's line."""
        conversation = self._of(name)
        first, total, tokens = (facts.get(key) for key in ("first_event_ms", "total_ms", "tokens"))
        if not isinstance(first, int | float):
            return
        conversation.waits.add(float(first))
        output = tokens.get("output") if isinstance(tokens, dict) else None
        if isinstance(output, int) and output >= LEAST_TOKENS and isinstance(total, int | float) and total > first:
            conversation.rates.add((output - 1) / (total - first) * 1000)

    def turn(self, name: str, facts: dict[str, Any]) -> None:
        """A turn's own line, with its speed."""
        tps = facts.get("tps")
        if isinstance(tps, int | float) and not facts.get("estimated"):
            self._of(name).told.add(float(tps))

    def speeds(self) -> list[float]:
        """The median tokens per second of each conversation."""
        return [tps for one in self._conversations.values() if (tps := one.tps) is not None]

    def waits(self) -> list[float]:
        """The median time to the first event of each conversation, in ms."""
        return [median(one.waits.values) for one in self._conversations.values() if one.waits.values]

    def facts(self) -> dict[str, Any]:
        return {
            "conversations": len(self._conversations),
            "tps": _shown(interval(self.speeds())),
            "first_event_ms": _shown(interval(self.waits())),
        }

    def _of(self, name: str) -> _Conversation:
        found = self._conversations.pop(name, None) or _Conversation()
        self._conversations[name] = found
        if len(self._conversations) > CONVERSATIONS:
            del self._conversations[next(iter(self._conversations))]
        return found


def contrast(without: Days, within: Days) -> dict[str, Any]:
    """Both kinds of day, and how many times as fast the median conversation is with routing; above 1 it helps."""
    faster = ratio(within.speeds(), without.speeds())
    sooner = ratio(without.waits(), within.waits())
    return {
        "without": without.facts(),
        "with": within.facts(),
        "faster": _shown(faster) | {"effect": effect(faster)},
        "sooner": _shown(sooner) | {"effect": effect(sooner)},
    }


def effect(found: Interval | None) -> str:
    """``helps``, ``harms``, ``none``, or ``unknown`` where there is too little to say."""
    if found is None or found.low is None or found.high is None:
        return "unknown"
    if found.holds(1.0):
        return "none"
    return "helps" if found.low > 1.0 else "harms"


def _shown(found: Interval | None) -> dict[str, Any]:
    if found is None:
        return {"median": None, "low": None, "high": None}
    return {name: None if value is None else round(value, 3) for name, value in zip(_NAMES, found, strict=True)}


_NAMES: Final = ("median", "low", "high")
