"""What an answer cost, estimated from its token counts and list prices; an unknown price gives no estimate, never zero.

A file of the user's goes before the built-in list, model by model:

    {"opencode-go": {"kimi-k3": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3,
                                 "tiers": [{"above": 200000, "input": 6, "output": 22.5}]}}}
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from proxy.answers.usage import Usage
from proxy.insight import prices

_MILLION = 1_000_000
_LARGEST_FILE = 4_194_304
_MOST = 100_000.0  # USD per million tokens; anything above is a mistake
_WEEKEND = 5


class BadPrices(ValueError):
    """A file of prices that cannot be used; the message says what is wrong with it."""


class Estimate(NamedTuple):
    """In USD. ``saved``: what the same tokens would have cost more without a cache; below zero where it cost more."""

    cost: float
    saved: float


class Rates(NamedTuple):
    """USD per million tokens; without a price of its own a cache costs what input costs."""

    input: float
    output: float
    cache_read: float
    cache_write: float


class Price(NamedTuple):
    """One model's rates by size of the prompt, cached tokens included: the last tier that is exceeded holds."""

    rates: Rates
    tiers: tuple[tuple[int, Rates], ...] = ()  # by rising size
    peaks: bool = False  # the built-in list's peak hours hold

    def at(self, tokens: int) -> Rates:
        """The rates for a prompt of this size."""
        found = self.rates
        for above, rates in self.tiers:
            if tokens > above:
                found = rates
        return found


class Prices:
    """Prices by provider and model."""

    def __init__(self, table: Mapping[tuple[str, str], Price]) -> None:
        self._table = table

    def estimate(self, provider: str, model: str, usage: Usage, at: int) -> Estimate | None:
        """What an answer at unix ms ``at`` cost; None where its price or the size of its prompt is unknown."""
        price = self._table.get((provider, model))
        if price is None or usage.input is None or usage.uncached is None:
            return None
        rates = price.at(usage.input)
        read, written = usage.cached or 0, usage.written or 0
        factor = prices.PEAK_FACTOR if price.peaks and _is_peak(at) else 1.0
        cost = (
            usage.uncached * rates.input
            + read * rates.cache_read
            + written * rates.cache_write
            + (usage.output or 0) * rates.output
        )
        saved = read * (rates.input - rates.cache_read) - written * (rates.cache_write - rates.input)
        return Estimate(cost * factor / _MILLION, saved * factor / _MILLION)


def built_in() -> dict[tuple[str, str], Price]:
    """The list that comes with ocpool."""
    table: dict[tuple[str, str], Price] = {}
    for provider, rows in prices.BUILT_IN.items():
        for model, above, *numbers in rows:
            rates = _rates(*numbers)
            known = table.get((provider, model))
            table[provider, model] = (
                Price(known.rates, (*known.tiers, (above, rates)), known.peaks)
                if known is not None
                else Price(rates, peaks=provider == "opencode-go" and model.startswith(prices.PEAK_PREFIX))
            )
    return table


def load(path: Path | None) -> Prices:
    """The built-in prices, with those of a file in front. Blocking.

    Raises:
        BadPrices: the file cannot be read or used.
    """
    table = built_in()
    if path is None:
        return Prices(table)
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE)
    except OSError as error:
        raise BadPrices(f"the prices in {path} cannot be read: {error.strerror or error}") from None
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise BadPrices(f"the prices in {path} are no JSON") from None
    try:
        for provider, models in _table(document, "the document").items():
            for model, entry in _table(models, provider).items():
                table[provider, model] = _price(_table(entry, f"{provider} {model}"), f"{provider} {model}")
    except BadPrices as error:
        raise BadPrices(f"the prices in {path} cannot be used: {error}") from None
    return Prices(table)


def _price(entry: dict[str, Any], name: str) -> Price:
    tiers = entry.get("tiers", [])
    if not isinstance(tiers, list):
        raise BadPrices(f"tiers of {name} must be a list")
    made = []
    for raw in tiers:
        tier = _table(raw, f"a tier of {name}")
        above = tier.get("above")
        if type(above) is not int or above < 0:
            raise BadPrices(f"a tier of {name} needs `above`, a number of tokens")
        made.append((above, _entry_rates(tier, name)))
    return Price(_entry_rates(entry, name), tuple(sorted(made, key=lambda tier: tier[0])))


def _entry_rates(entry: dict[str, Any], name: str) -> Rates:
    numbers = [entry.get(key) for key in ("input", "output", "cache_read", "cache_write")]
    for key, number in zip(("input", "output"), numbers, strict=False):
        if number is None:
            raise BadPrices(f"{name} needs `{key}`, in USD per million tokens")
    for number in numbers:
        if number is not None and (type(number) not in {int, float} or not 0 <= number <= _MOST):
            raise BadPrices(f"a price of {name} is not a number of USD per million tokens")
    return _rates(*numbers)


def _rates(input_: Any, output: Any, read: Any, write: Any) -> Rates:
    return Rates(input_, output, input_ if read is None else read, input_ if write is None else write)


def _table(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadPrices(f"{name} must be a table")
    return value


def _is_peak(at: int) -> bool:
    when = datetime.fromtimestamp(at / 1000, UTC)
    return when.weekday() < _WEEKEND and when.hour in prices.PEAK_HOURS
