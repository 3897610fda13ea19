"""What is played: the scenarios, the arrivals of conversations in each, and the policies that are compared."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from proxy.cli.campaign.routed import Routed
from proxy.simulator.baselines import Extension, Off
from proxy.simulator.clients import PI
from proxy.simulator.policies import Policy
from proxy.simulator.rounds import Plugin
from proxy.simulator.scenarios import MINUTE
from proxy.simulator.traces import Conversation, conversations

MODEL: Final = "deepseek-v4.1-flash"
EPOCH_MS: Final = 1_796_000_000_000.0
EVERY_MS: Final = 4 * MINUTE
TEN: Final = 10  # conversations at once, after as many one by one

OFF, EXTENSION, PLUGIN, OCPOOL = "off", "extension", "plugin", "ocpool"
POLICIES: Final[dict[str, Callable[[int], Policy]]] = {
    OFF: lambda _: Off(MODEL),
    EXTENSION: lambda seed: Extension(MODEL, seed),
    PLUGIN: lambda seed: Plugin(MODEL, seed),
    OCPOOL: lambda seed: Routed(MODEL, seed),
}
TITLES: Final = {
    OFF: "ocpool off",
    EXTENSION: "pi-opencode-session-pool",
    PLUGIN: "dsh-plugin-opencode-route",
    OCPOOL: "ocpool",
}

STEADY, BURSTS, TEN_AT_ONCE = "steady", "bursts", "ten at once"


@dataclass(frozen=True, slots=True)
class Day:
    """Arrivals of conversations in a scenario. The first ``warm_up`` of them are no judge of a pool that is empty."""

    scenario: str
    arrivals: str
    count: int
    warm_up: int

    def trace(self, seed: int) -> list[Conversation]:
        """The conversations: the same for every policy."""
        if self.arrivals == BURSTS:
            return conversations(seed, self.count, every_ms=3 * EVERY_MS, burst=3, clients=(PI,))
        made = conversations(seed, self.count, every_ms=EVERY_MS, clients=(PI,))
        if self.arrivals == STEADY:
            return made
        return [*made[:TEN], *(_at(one, made[TEN].start_ms) for one in made[TEN:])]


def _at(conversation: Conversation, start_ms: float) -> Conversation:
    return replace(conversation, start_ms=start_ms)


_TEN_AT_ONCE: Final = frozenset({"sticky", "hops", "limits", "overload", "outage"})  # where one by one is not all
SCENARIOS: Final = (
    "sticky",
    "balanced",
    "flip",
    "flip-back",
    "hops",
    "limits",
    "overload",
    "legacy",
    "outage",
    "faults",
)


def days(scenario: str) -> list[Day]:
    """What is played of a scenario."""
    sticky = scenario == "sticky"
    found = [Day(scenario, STEADY, 200 if sticky else 60, 1)]
    if sticky:
        found.append(Day(scenario, BURSTS, 60, 3))
    if scenario in _TEN_AT_ONCE:
        found.append(Day(scenario, TEN_AT_ONCE, 2 * TEN, TEN))
    return found
