"""Gateways as an estimator sees them: an id in, an endpoint and a speed out."""

from __future__ import annotations

import random
from dataclasses import dataclass

from pool.estimator import Change, Estimator
from pool.model import ModelKey
from tests.fakes.pool import GO, MODEL

KEY = ModelKey(GO, MODEL)


@dataclass(frozen=True)
class Gateway:
    """``shares``: endpoints and how much of the traffic each has; ``slow``: which of them are slow, and how often."""

    shares: dict[str, int]
    slow: dict[str, float]
    keeps: bool
    hop: float = 0.0
    named: bool = True

    @classmethod
    def sticky(cls, hop=0.0, named=True) -> Gateway:
        return cls({"native-1": 1, "native-2": 1, "relay": 2}, {"relay": 1.0}, True, hop, named)

    @classmethod
    def balanced(cls, named=True) -> Gateway:
        workers = [f"worker-{number}" for number in range(4)]
        return cls(dict.fromkeys(workers, 1), dict.fromkeys(workers, 0.42), False, 0.0, named)

    @classmethod
    def single(cls, named=True) -> Gateway:
        return cls({"only": 1}, {}, True, 0.0, named)

    def __str__(self) -> str:
        kind = "one" if len(self.shares) == 1 else "sticky" if self.keeps else "balanced"
        return f"{kind}, hop {self.hop}, {'named' if self.named else 'unnamed'}"


class Traffic:
    """Five conversations at a time, each of a dozen turns in the mean; the draws are its own."""

    EVERY_MS = 8_000

    def __init__(self, seed: int, live: int = 5, turns: float = 12.0) -> None:
        self.draw = random.Random(seed)
        self._live, self._turns = live, turns
        self._ids: list[str] = []
        self._homes: dict[tuple[int, str], str] = {}

    def next_id(self) -> str:
        if len(self._ids) < self._live:
            self._ids.append(f"id-{self.draw.random()}")
        one = self.draw.choice(self._ids)
        if self.draw.random() < 1 / self._turns:
            self._ids.remove(one)
        return one

    def served(self, gateway: Gateway, routed_id: str) -> str:
        """Which endpoint serves it."""
        names, weights = list(gateway.shares), list(gateway.shares.values())
        drawn = self.draw.choices(names, weights)[0]
        if not gateway.keeps or self.draw.random() < gateway.hop:
            return drawn
        return self._homes.setdefault((id(gateway), routed_id), drawn)


def watch(estimator: Estimator, traffic: Traffic, phases: list[tuple[Gateway, int]]) -> list[tuple[int, Change]]:
    """Let an estimator watch so many requests of each gateway; what changed, and at which request."""
    changes, count = [], 0
    for gateway, requests in phases:
        for _ in range(requests):
            count += 1
            routed_id = traffic.next_id()
            endpoint = traffic.served(gateway, routed_id)
            slow = traffic.draw.random() < gateway.slow.get(endpoint, 0.0)
            now = count * Traffic.EVERY_MS
            change = estimator.observe(KEY, routed_id, now, endpoint if gateway.named else None, slow=slow)
            if change is not None:
                changes.append((count, change))
    return changes
