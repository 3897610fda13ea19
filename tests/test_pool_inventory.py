"""pool/inventory.py"""

import pytest

from pool.inventory import Inventory, is_fresh, stocks_of
from pool.model import Shape
from tests.fakes.pool import HOUR, MINUTE, NOW, STOCK, spare, wish

TTL = 30 * MINUTE


@pytest.mark.parametrize(("age", "fresh"), [(0, True), (TTL, True), (TTL + 1, False), (-1, False), (-HOUR, False)])
def test_a_spare_is_fresh_for_the_ttl_and_an_instant_in_the_future_is_stale(age, fresh):
    assert is_fresh(spare(verified_at=NOW - age), NOW, TTL) is fresh


def test_take_gives_the_fastest_fresh_spare_and_never_the_same_twice():
    inventory = Inventory()
    for name, ms in (("a", 1500.0), ("b", 700.0), ("c", 900.0)):
        inventory.admit(spare(name, upstream_ms=ms))
    taken = [inventory.take([STOCK], NOW, TTL) for _ in range(4)]
    assert [one and one.id for one in taken] == ["b", "c", "a", None]


def test_take_leaves_stale_spares_where_they_are():
    inventory = Inventory()
    inventory.admit(spare("old", verified_at=NOW - HOUR))
    assert inventory.take([STOCK], NOW, TTL) is None
    assert [one.id for one in inventory.stale(STOCK, NOW, TTL)] == ["old"]


def test_an_id_that_has_left_is_never_let_in_again():
    inventory = Inventory()
    one = spare("a")
    inventory.admit(one)
    inventory.take([STOCK], NOW, TTL)
    assert not inventory.admit(one)
    assert inventory.count(STOCK) == 0


def test_an_id_is_in_the_reserve_once():
    inventory = Inventory()
    assert inventory.admit(spare("a"))
    assert not inventory.admit(spare("a"))


def test_own_scope_is_served_before_what_serves_anyone_and_others_never():
    inventory = Inventory()
    inventory.admit(spare("anyone", upstream_ms=100.0))
    inventory.admit(spare("mine", stock=STOCK._replace(scope="me")))
    inventory.admit(spare("theirs", stock=STOCK._replace(scope="them")))
    stocks = stocks_of(wish(scope="me"))
    assert [inventory.take(stocks, NOW, TTL).id for _ in range(2)] == ["mine", "anyone"]
    assert inventory.take(stocks, NOW, TTL) is None


def test_a_wish_is_served_in_its_own_shape_only():
    inventory = Inventory()
    inventory.admit(spare(stock=STOCK._replace(shape=Shape.SES)))
    assert inventory.take(stocks_of(wish(shape=Shape.UUID)), NOW, TTL) is None
    assert inventory.take(stocks_of(wish(shape=Shape.SES)), NOW, TTL) is not None


def test_a_stale_spare_that_is_verified_is_fresh_and_one_that_left_stays_away():
    inventory = Inventory()
    old = spare("old", verified_at=NOW - HOUR)
    inventory.admit(old)
    assert inventory.verified(old, 640.0, NOW)
    assert inventory.take([STOCK], NOW, TTL).upstream_ms == 640.0
    assert not inventory.verified(old, 640.0, NOW)


def test_a_stale_spare_can_be_taken_for_verification_and_put_back():
    inventory = Inventory()
    for name, age in (("older", 2 * HOUR), ("old", HOUR)):
        inventory.admit(spare(name, verified_at=NOW - age))
    one = inventory.take_stale([STOCK], NOW, TTL)
    assert one.id == "old"
    assert inventory.count(STOCK) == 1
    assert inventory.admit(one)
    assert inventory.take_stale([STOCK._replace(model="other")], NOW, TTL) is None


def test_after_a_disturbance_everything_is_stale_and_so_is_what_was_verified_before():
    inventory = Inventory()
    inventory.admit(spare("a"))
    assert inventory.disturb(NOW + 1) == 1
    inventory.admit(spare("b", verified_at=NOW))
    inventory.admit(spare("c", verified_at=NOW + 2))
    assert inventory.fresh(STOCK, NOW + 2, TTL) == 1


def test_retired_digests_purge_spares():
    from pool.ids import id_digest

    inventory = Inventory()
    inventory.admit(spare("a"))
    inventory.admit(spare("b"))
    assert inventory.purge([id_digest("a"), "0" * 16]) == 1
    assert [one.id for one in inventory.all()] == ["b"]
    assert inventory.purge([]) == 0


def test_draining_gives_everything_once():
    inventory = Inventory()
    inventory.admit(spare("a"))
    assert [one.id for one in inventory.drain()] == ["a"]
    assert inventory.drain() == ()
    assert inventory.stocks() == []
    assert not inventory.drop(spare("a"))


def test_the_memory_of_spent_ids_is_bounded():
    inventory = Inventory()
    for number in range(9000):
        inventory.spend(str(number))
    assert len(inventory._spent) == 8192


def test_every_change_moves_the_version():
    inventory = Inventory()
    versions = [inventory.version]
    inventory.admit(spare("a"))
    versions.append(inventory.version)
    inventory.take([STOCK], NOW, TTL)
    versions.append(inventory.version)
    assert versions == sorted(set(versions))
