"""Days in the gateway's life, each declared once, as data."""

from dataclasses import dataclass, replace
from typing import Final, Literal

from proxy.simulator.endpoints import BUSY, CROWDED, NATIVE_1, NATIVE_2, RELAY, WORKERS, Endpoint
from proxy.simulator.limits import Window

MINUTE: Final = 60_000.0
HOUR: Final = 60 * MINUTE


@dataclass(frozen=True, slots=True)
class Phase:
    """How requests are routed from one time on.

    Attributes:
        endpoints: Who may serve, with weights.
        sticky: A session and model always come to the same endpoint; else each request is balanced.
        hop: The share of requests of a sticky session that go elsewhere.
        from_ms: Since the world's beginning.
    """

    endpoints: tuple[tuple[Endpoint, float], ...]
    sticky: bool = True
    hop: float = 0.0
    from_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Scenario:
    """One day.

    Attributes:
        says: One line for the user.
        phases: In order of time; the first starts at 0.
        mode: How the account is served, see `proxy.simulator.knobs.Knobs.mode`.
        windows: Limits and outages.
        faulty: The share of replies that break.
    """

    name: str
    says: str
    phases: tuple[Phase, ...]
    mode: Literal["migrated", "legacy"] = "migrated"
    windows: tuple[Window, ...] = ()
    faulty: float = 0.0

    def phase(self, at_ms: float) -> Phase:
        """The phase at a time since the world's beginning."""
        return [phase for phase in self.phases if phase.from_ms <= max(at_ms, 0.0)][-1]


_HALF_BAD: Final = Phase(((NATIVE_1, 1.0), (NATIVE_2, 1.0), (RELAY, 2.0)))
_ALL_GOOD: Final = Phase(((NATIVE_1, 1.0), (NATIVE_2, 1.0)))
_BALANCED: Final = Phase(tuple((worker, 1.0) for worker in WORKERS), sticky=False)
FLIP_MS: Final = 2 * HOUR  # when the gateway changes its way of routing

SCENARIOS: Final[dict[str, Scenario]] = {
    scenario.name: scenario
    for scenario in (
        Scenario("sticky", "an id stays on its shard, and half of the ids are on a crawling relay", (_HALF_BAD,)),
        Scenario(
            "balanced",
            "every request is balanced over the workers; an id says nothing",
            (_BALANCED,),
        ),
        Scenario(
            "hops",
            "an id has a home, but one request in five may go elsewhere, where its prompt cache is not",
            (Phase(((NATIVE_1, 2.0), (NATIVE_2, 2.0), (RELAY, 1.0)), hop=0.2),),
        ),
        Scenario(
            "flip",
            "sticky for two hours, then every request is balanced",
            (_HALF_BAD, replace(_BALANCED, from_ms=FLIP_MS)),
        ),
        Scenario(
            "flip-back",
            "every request is balanced for two hours, then ids stay on their shards and half of them crawl",
            (_BALANCED, replace(_HALF_BAD, from_ms=FLIP_MS)),
        ),
        Scenario(
            "limits",
            "the account runs into its limits again and again; every id is refused alike",
            (_ALL_GOOD,),
            windows=(
                Window("GoUsageLimitError", 5 * MINUTE, 10 * MINUTE, HOUR, "opencode-go", retry_after="rest"),
                Window("rate_limit_exceeded", 20 * MINUTE, 10 * MINUTE, HOUR, model="deepseek-v4.1-flash"),
                Window("RateLimitError", 35 * MINUTE, MINUTE, HOUR, retry_after=60),
                Window("GoUsageLimitError:weekly", 40 * MINUTE, 5 * MINUTE, HOUR, "opencode-go", retry_after=146_553),
            ),
        ),
        Scenario(
            "overload",
            "some endpoints refuse most requests as overloaded, and once an hour the whole gateway does",
            (Phase(((NATIVE_1, 1.0), (NATIVE_2, 1.0), (CROWDED, 1.0), (BUSY, 1.0))),),
            windows=(Window("overloaded", 40 * MINUTE, 3 * MINUTE, HOUR, retry_after=5),),
        ),
        Scenario(
            "legacy",
            "an account on the older path: no timing headers, prefixed errors, a cost event at the end",
            (_HALF_BAD,),
            mode="legacy",
        ),
        Scenario(
            "outage",
            "sticky, and for ten minutes of every hour the whole gateway is away",
            (_HALF_BAD,),
            windows=(Window("unavailable", 30 * MINUTE, 10 * MINUTE, HOUR),),
        ),
        Scenario("faults", "half of the replies break, in every way a reply can", (_ALL_GOOD,), faulty=0.5),
    )
}


def scenario_named(name: str) -> Scenario:
    """The scenario of that name.

    Raises:
        ValueError: There is none; the message names those there are.
    """
    try:
        return SCENARIOS[name]
    except KeyError:
        raise ValueError(f"no scenario {name!r}; there are {', '.join(SCENARIOS)}") from None
