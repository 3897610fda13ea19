"""What an answer is estimated to cost; what is not known is not zero."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.answers.usage import Usage
from proxy.insight import prices
from proxy.insight.pricing import BadPrices, Price, Prices, Rates, built_in, load

AT = int(datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp() * 1000)  # a Monday, no peak hour
GO = "opencode-go"


def price(model: str, usage: Usage, *, provider: str = GO, at: int = AT):
    return load(None).estimate(provider, model, usage, at)


def approx(cost: float, saved: float):
    return pytest.approx((cost, saved), abs=1e-9)


def test_tokens_cost_what_the_list_says():
    table = Prices({("p", "m"): Price(Rates(2.5, 10.0, 2.5, 2.5))})
    assert table.estimate("p", "m", Usage(100_000, None, None, 50_000), AT) == approx(0.75, 0.0)


def test_cached_tokens_cost_less_and_the_difference_is_saved():
    assert price("kimi-k3", Usage(1_000_000, 600_000, 0, 100_000)) == approx(1.2 + 0.18 + 1.5, 600_000 * 2.7 / 1e6)


def test_writing_a_cache_may_cost_more_than_it_saves():
    assert price("qwen3.8-max", Usage(1_000_000, 0, 1_000_000, 0)) == approx(2.5, -0.5)


def test_without_a_price_of_its_own_a_cache_costs_what_input_costs():
    table = Prices({("p", "m"): Price(Rates(1.0, 1.0, 1.0, 1.0))})
    assert table.estimate("p", "m", Usage(10, 5, 5, 0), AT) == approx(10 / 1e6, 0.0)
    assert price("glm-5.3", Usage(1_000_000, 0, 1_000_000, 0)) == approx(1.4, 0.0)


@pytest.mark.parametrize(("tokens", "rate"), [(200_000, 2.0), (200_001, 4.0), (10**7, 4.0)])
def test_a_large_prompt_has_the_rates_of_its_tier(tokens, rate):
    assert price("grok-4.7", Usage(tokens, 0, 0, 0)) == approx(tokens * rate / 1e6, 0.0)


@pytest.mark.parametrize(
    ("when", "factor"),
    [
        ((2026, 11, 30, 0), 1),
        ((2026, 11, 30, 1), 2),
        ((2026, 11, 30, 4), 1),
        ((2026, 11, 30, 9), 2),
        ((2026, 11, 29, 9), 1),
    ],
)
def test_deepseek_costs_twice_as_much_in_peak_hours_of_working_days(when, factor):
    at = int(datetime(*when, 30, tzinfo=UTC).timestamp() * 1000)
    assert price("deepseek-v4.1-flash", Usage(1_000_000, 0, 0, 0), at=at) == approx(0.15 * factor, 0.0)
    assert price("deepseek-v4.1-flash", Usage(1_000_000, 0, 0, 0), provider="opencode", at=at) == approx(0.30, 0.0)


def test_providers_have_prices_of_their_own():
    assert price("deepseek-v4-pro", Usage(1_000_000), provider="opencode") == approx(1.74, 0.0)


@pytest.mark.parametrize(
    ("model", "usage"), [("nobody-knows", Usage(1, 1, 1, 1)), ("kimi-k3", Usage(None, None, None, 5)), ("", Usage(1))]
)
def test_what_is_not_known_has_no_estimate(model, usage):
    assert price(model, usage) is None


def test_nothing_used_costs_nothing():
    assert price("kimi-k3", Usage(0, 0, 0, 0)) == approx(0.0, 0.0)


def test_the_built_in_list_is_whole():
    table = built_in()
    rows = [row for listed in prices.BUILT_IN.values() for row in listed]
    assert len(table) == len({(provider, row[0]) for provider, listed in prices.BUILT_IN.items() for row in listed})
    assert sum(1 + len(found.tiers) for found in table.values()) == len(rows)
    for found in table.values():
        for rates in (found.rates, *(tier for _, tier in found.tiers)):
            assert 0 <= rates.cache_read <= rates.input <= rates.output or rates.input == 0


def test_a_file_goes_before_the_list_model_by_model(tmp_path: Path):
    path = tmp_path / "prices.json"
    tiers = [{"above": 200, "input": 3, "output": 3}, {"above": 100, "input": 2, "output": 2}]
    path.write_text(
        json.dumps({GO: {"kimi-k3": {"input": 1, "output": 1, "tiers": tiers}, "mine": {"input": 7, "output": 0}}})
    )
    table = load(path)
    assert table.estimate(GO, "kimi-k3", Usage(100), AT) == approx(100 / 1e6, 0)
    assert table.estimate(GO, "kimi-k3", Usage(101), AT) == approx(202 / 1e6, 0)
    assert table.estimate(GO, "kimi-k3", Usage(1000), AT) == approx(3000 / 1e6, 0)
    assert table.estimate(GO, "mine", Usage(1), AT) == approx(7 / 1e6, 0)
    assert table.estimate(GO, "glm-5.3", Usage(1), AT) == approx(1.4 / 1e6, 0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "no JSON"),
        ("[]", "must be a table"),
        ('{"p": 1}', "p must be a table"),
        ('{"p": {"m": 1}}', "p m must be a table"),
        ('{"p": {"m": {"output": 1}}}', "needs `input`"),
        ('{"p": {"m": {"input": 1}}}', "needs `output`"),
        ('{"p": {"m": {"input": -1, "output": 1}}}', "not a number"),
        ('{"p": {"m": {"input": true, "output": 1}}}', "not a number"),
        ('{"p": {"m": {"input": 1, "output": 1, "cache_read": "0"}}}', "not a number"),
        ('{"p": {"m": {"input": 1, "output": 1, "tiers": {}}}}', "must be a list"),
        ('{"p": {"m": {"input": 1, "output": 1, "tiers": [{"input": 1, "output": 1}]}}}', "needs `above`"),
    ],
)
def test_a_bad_file_is_refused_with_what_is_wrong(tmp_path: Path, text, says):
    path = tmp_path / "prices.json"
    path.write_text(text)
    with pytest.raises(BadPrices, match=says):
        load(path)


def test_a_missing_file_is_refused(tmp_path: Path):
    with pytest.raises(BadPrices, match="cannot be read"):
        load(tmp_path / "none.json")


counts = st.integers(0, 10**7)


@given(st.sampled_from(sorted(built_in())), counts, counts, counts, counts)
def test_a_cache_never_makes_the_uncached_price_wrong(key, uncached, cached, written, output):
    """Cost and saving add up to what the same tokens cost without a cache."""
    usage = Usage(uncached + cached + written, cached, written, output)
    got = load(None).estimate(*key, usage, AT)
    plain = load(None).estimate(*key, Usage(usage.input, 0, 0, output), AT)
    assert got is not None
    assert plain is not None
    assert got.cost + got.saved == pytest.approx(plain.cost)
