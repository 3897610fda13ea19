"""Which conversations wait for a round of candidates in the background (the throughput profile)."""

from typing import Final

from pool.model import Wish
from pool.parts import Order, Parts

KEPT: Final = 256
OLDEST_MS: Final = 600_000  # of an order that nobody could carry out


def order(parts: Parts, wish: Wish, now: int) -> None:
    """Have a round, unless one is ordered already or an id was found."""
    key = wish.key
    lane = parts.lanes.of(key)
    if key in parts.orders or lane.found is not None or not parts.policies[wish.judged].spares:
        return
    parts.orders[key] = Order(wish, now)
    while len(parts.orders) > KEPT:
        del parts.orders[next(iter(parts.orders))]
