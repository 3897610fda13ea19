"""Did routing help? Read from the event log, line by line, in bounded memory; so it is known after a restart, too.

Every decision carries its own counterfactual: what the natural id gave or would have given, beside what was chosen. The
table is dsh-plugin-opencode-route's: natural, chosen, gain; kept natural, median gain, dead and rejected naturals.
"""

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any, Final

from proxy.insight.avoidance import SLOW_MS, Avoidance
from proxy.insight.contrast import Days, contrast, effect
from proxy.insight.intervals import Interval, interval
from proxy.insight.samples import Sample

KEPT, SWITCHED, SKIPPED = "keep-natural", "pin", "skip-pin"
DECISIONS: Final = {KEPT: "kept_natural", SWITCHED: "switched", SKIPPED: "skipped"}
NATURALS: Final = ("ok", "rejected", "dead", "unmeasured")
ROWS: Final = 200  # of the table, the latest
_ROW: Final = ("at", "conversation", "model", "profile", "source", "natural", "gain", "estimated", "observed")
_BELIEF: Final = ("at", "provider", "model", "regime", "confidence", "because")
MODELS: Final = 64
BALANCED: Final = "the gateway balances every request, so that no id is better than another"
_VERBS: Final = {"helps": "Routing helped", "harms": "Routing did harm", "none": "No effect beyond chance"}
_SIDES: Final = ("natural_tps", "chosen_tps", "natural_ms", "chosen_ms")


class Effectiveness:
    """What the events of a window say. ``since`` (unix ms): only what happened from then on counts.

    Feed it the log from its beginning: which mode was in force at ``since`` is told before. ``slow_ms``: from which
    latency on a route is bad (``quarantine.degrade_ms``).
    """

    def __init__(self, since: int | None = None, slow_ms: float = SLOW_MS) -> None:
        self._since = since
        self._mode = "route"
        self._first: int | None = None
        self._last: int | None = None
        self._events = 0
        self._decisions: Counter[str] = Counter()
        self._sources: Counter[str] = Counter()
        self._naturals: Counter[str] = Counter()
        self._rescued: Counter[str] = Counter()  # switched from a natural id that was dead or rejected
        self._gains = {"latency": Sample(), "throughput": Sample()}
        self._probes: Counter[str] = Counter()
        self._evicted = 0
        self._avoidance = Avoidance(slow_ms)
        self._routing: dict[tuple[str, str], dict[str, Any]] = {}  # by provider and model, what was believed last
        self._rows: deque[dict[str, Any]] = deque(maxlen=ROWS)
        self._without, self._within = Days(), Days()

    def feed(self, events: Iterable[dict[str, Any]]) -> "Effectiveness":
        """Take in events, oldest first."""
        for event in events:
            name = event.get("event")
            if not isinstance(name, str):
                continue
            if name in {"started", "reloaded"} and isinstance(event.get("mode"), str):
                self._mode = event["mode"]
            at = event.get("at")
            if not isinstance(at, int) or (self._since is not None and at < self._since):
                continue
            self._first = at if self._first is None else self._first
            self._last = at
            self._events += 1
            self._take(name, event)
        return self

    def _take(self, name: str, event: dict[str, Any]) -> None:
        if name in DECISIONS:
            self._decide(name, event)
        elif name in {"request", "turn"}:
            self._turn(name, event)
        elif name == "routing":
            self._believe(event)
        elif name == "probe":
            self._avoidance.probe(event)
            self._probes["sent"] += 1
            tokens = event.get("tokens")
            self._probes["tokens"] += tokens if isinstance(tokens, int) else 0
        elif name in {"probe-reject", "probe-dead"}:
            self._probes["rejected" if name == "probe-reject" else "dead"] += 1
        elif name == "probe-round":
            self._probes["rounds"] += 1
        elif name == "evict":
            self._evicted += 1

    def _decide(self, name: str, event: dict[str, Any]) -> None:
        natural = event.get("natural")
        natural = natural if natural in NATURALS else "unmeasured"
        self._decisions[DECISIONS[name]] += 1
        self._naturals[natural] += 1
        source = event.get("source")
        if isinstance(source, str):
            self._sources[source[:32]] += 1
        if name == SWITCHED:
            if natural in {"dead", "rejected"}:
                self._rescued[natural] += 1
            gain, sample = event.get("gain"), self._gains.get(str(event.get("profile")))
            if isinstance(gain, int | float) and gain > 0 and sample is not None:
                sample.add(float(gain))
        row = {"decision": name} | {fact: event.get(fact) for fact in (*_ROW, *_SIDES)}
        self._rows.append(row)

    def _believe(self, event: dict[str, Any]) -> None:
        key = (str(event.get("provider"))[:64], str(event.get("model"))[:64])
        self._routing.pop(key, None)
        self._routing[key] = {fact: event.get(fact) for fact in _BELIEF}
        if len(self._routing) > MODELS:
            del self._routing[next(iter(self._routing))]

    def _turn(self, name: str, event: dict[str, Any]) -> None:
        label = event.get("conversation")
        if not isinstance(label, str) or event.get("side_call") or event.get("bypassed"):
            return
        if name == "request" and self._mode == "route":
            self._avoidance.request(event)
        days = self._within if self._mode == "route" else self._without
        key = f"{label}::{event.get('model')}"
        if name == "turn":
            days.turn(key, event)
        elif event.get("status") == 200 and event.get("ended") == "complete":
            days.request(key, event)

    def facts(self) -> dict[str, Any]:
        """Everything, as JSON."""
        gains = {profile: _gain(sample) for profile, sample in self._gains.items()}
        overall = self._overall()
        return {
            "since": self._since,
            "from": self._first,
            "to": self._last,
            "events": self._events,
            "effect": overall[0],
            "says": overall[1],
            "decisions": {
                "total": self._decisions.total(),
                **{name: self._decisions[name] for name in DECISIONS.values()},
                "sources": dict(self._sources),
            },
            "natural": {name: self._naturals[name] for name in NATURALS},
            "rescued": {name: self._rescued[name] for name in ("rejected", "dead")},
            "gain": gains,
            "probes": {name: self._probes[name] for name in ("sent", "tokens", "rejected", "dead", "rounds")},
            "evicted": self._evicted,
            "routes": self._avoidance.facts(),
            "routing": list(self._routing.values()),
            "days": contrast(self._without, self._within),
            "rows": list(self._rows),
        }

    def _overall(self) -> tuple[str, str]:
        """The effect in a word, and in a sentence that claims no more than the data do."""
        gains = [gain for sample in self._gains.values() for gain in sample.values]
        found = interval(gains)
        word = effect(found)
        if found is not None and word != "unknown":
            return word, f"{_VERBS[word]}: switched conversations were {_bounds(found)}.{self._now_balanced()}"
        word = self._avoidance.effect
        if word != "unknown":
            return word, f"{_VERBS[word]}: {self._avoidance.says()}.{self._now_balanced()}"
        if self._balanced:
            return "none", f"No effect: {BALANCED}."
        switched = self._decisions["switched"]
        if not self._decisions.total():
            return "unknown", "No decision was made in this window."
        if not switched:
            return "none", "No effect: no conversation was switched; each stayed on its natural id."
        rescued = self._rescued.total()
        more = f" {rescued} of them had a natural id that was too slow or refused." if rescued else ""
        told = f"{len(gains)} of {switched} switched conversations have both sides measured"
        return "unknown", f"{told}, and too few ids and turns were seen: too little to say.{more}"

    @property
    def _balanced(self) -> bool:
        return bool(self._routing) and all(belief["regime"] == "balanced" for belief in self._routing.values())

    def _now_balanced(self) -> str:
        return f" By now {BALANCED}." if self._balanced else ""


def _bounds(found: Interval) -> str:
    told = f"{found.estimate:.2f} times as fast in the median"
    return told if found.low is None or found.high is None else f"{told} ({found.low:.2f} to {found.high:.2f})"


def _gain(sample: Sample) -> dict[str, Any]:
    found: Interval | None = interval(sample.values)
    shown: dict[str, Any] = {"measured": sample.count, "median": None, "low": None, "high": None}
    if found is not None:
        bounds = {"median": found.estimate, "low": found.low, "high": found.high}
        shown |= {name: None if value is None else round(value, 3) for name, value in bounds.items()}
    return shown | {"effect": effect(found)}
