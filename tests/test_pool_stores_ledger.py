"""pool/stores/ledger.py and pool/stores/document.py"""

from copy import deepcopy

from pool.ids import id_digest
from pool.model import Binding, Source, binding_key
from pool.stores.document import Document
from pool.stores.ledger import FileLedger
from pool.stores.schema import write_binding, write_spare
from tests.fakes.pool import GO, HOUR, MODEL, NOW, STOCK, spare

LEASE = 8 * HOUR


def ledger(raw=None, owner="p1"):
    document = Document(raw)
    return document, FileLedger(document, owner, LEASE)


def binding(conversation="c1", routed_id="r1", *, at=NOW, seen=None, source=Source.SPARE, **facts) -> Binding:
    key = binding_key(conversation, GO, MODEL)
    return Binding(key, GO, MODEL, routed_id, source, at, at if seen is None else seen, **facts)


def document_of(*entries, bindings=(), **more):
    return {
        "version": 1,
        "entries": [write_spare(one) for one in entries],
        "bindings": {one.key: write_binding(one, {}) for one in bindings},
    } | more


# -- spares ---------------------------------------------------------------------------------------


def test_reserving_moves_the_spares_verified_last_out_of_the_entries_and_lists_them():
    document, verbs = ledger(document_of(spare("old", verified_at=NOW - HOUR), spare("a"), spare("b")))
    assert [one.id for one in verbs.reserve(STOCK, 2, NOW)] == ["a", "b"]
    contents = document.contents()
    assert [one.id for one in contents.free] == ["old"]
    assert [(one.spare.id, one.owner, one.at) for one in contents.reserved] == [("a", "p1", NOW), ("b", "p1", NOW)]


def test_a_verification_in_the_future_is_worth_least():
    _, verbs = ledger(document_of(spare("future", verified_at=NOW + HOUR), spare("old", verified_at=NOW - HOUR)))
    assert [one.id for one in verbs.reserve(STOCK, 1, NOW)] == ["old"]


def test_only_the_stock_that_was_asked_for_is_reserved():
    document, verbs = ledger(document_of(spare("a", stock=STOCK._replace(scope="me"))))
    assert verbs.reserve(STOCK, 3, NOW) == []
    assert not document.changed


def test_an_entry_that_is_owned_or_retired_is_no_spare_and_goes():
    document, verbs = ledger(
        document_of(
            spare("bound"),
            spare("standby"),
            spare("retired"),
            spare("listed"),
            bindings=[binding(routed_id="bound", standby="standby")],
            retired={id_digest("retired"): NOW},
            reserved=[write_spare(spare("listed")) | {"owner": "p2", "reservedAt": NOW}],
        )
    )
    assert verbs.reserve(STOCK, 9, NOW) == []
    assert document.contents().free == ()
    assert document.changed


def test_releasing_puts_unused_spares_back_once():
    document, verbs = ledger(document_of(bindings=[binding(routed_id="used")], retired={id_digest("gone"): NOW}))
    verbs.release([spare("a"), spare("used"), spare("gone")])
    verbs.release([spare("a")])
    assert [one.id for one in document.contents().free] == ["a"]


def test_a_reserve_is_listed_as_it_is_and_others_listings_stay():
    theirs = write_spare(spare("theirs")) | {"owner": "p2", "reservedAt": NOW}
    document, verbs = ledger(document_of(reserved=[theirs]))
    verbs.hold([spare("a"), spare("b")], NOW)
    verbs.hold([spare("b")], NOW + 1)
    assert [one.spare.id for one in document.contents().reserved] == ["theirs", "b"]


def test_an_unchanged_listing_is_left_alone_until_it_needs_a_new_stamp():
    document, verbs = ledger()
    verbs.hold([spare("a")], NOW)
    document.changed = False
    verbs.hold([spare("a")], NOW + HOUR // 4)
    assert not document.changed
    verbs.hold([spare("a")], NOW + HOUR)
    assert document.contents().reserved[0].at == NOW + HOUR


# -- bindings -------------------------------------------------------------------------------------


def test_a_binding_is_put_where_there_is_none_and_its_id_is_free_no_more():
    document, verbs = ledger(document_of(spare("r1"), spare("s1"), spare("x")))
    assert verbs.bind_if_absent(binding(standby="s1"), NOW).routed_id == "r1"
    assert [one.id for one in document.contents().free] == ["x"]
    assert verbs.lookup(binding().key).routed_id == "r1"


def test_of_two_bindings_the_earlier_stays_and_the_other_is_retired():
    document, verbs = ledger(document_of(bindings=[binding(routed_id="theirs", at=NOW)]))
    assert verbs.bind_if_absent(binding(routed_id="later", at=NOW + 1), NOW).routed_id == "theirs"
    assert verbs.bind_if_absent(binding(routed_id="earlier", at=NOW - 1), NOW).routed_id == "earlier"
    retired = document.contents().retired
    assert set(retired) == {id_digest("later"), id_digest("theirs")}
    assert verbs.lookup(binding().key).routed_id == "earlier"


def test_at_the_same_instant_the_smaller_id_stays():
    _, verbs = ledger(document_of(bindings=[binding(routed_id="b")]))
    assert verbs.bind_if_absent(binding(routed_id="c"), NOW).routed_id == "b"
    assert verbs.bind_if_absent(binding(routed_id="a"), NOW).routed_id == "a"


def test_a_natural_id_that_loses_is_not_retired():
    document, verbs = ledger(document_of(bindings=[binding(routed_id="r1")]))
    verbs.bind_if_absent(binding(routed_id="digest:x", at=NOW + 1, source=Source.NATURAL), NOW)
    assert document.contents().retired == {}


def test_a_binding_that_has_been_idle_too_long_does_not_stand_in_the_way():
    _, verbs = ledger(document_of(bindings=[binding(routed_id="old", at=NOW - 9 * HOUR)]))
    assert verbs.bind_if_absent(binding(routed_id="new"), NOW).routed_id == "new"
    _, verbs = ledger(document_of(bindings=[binding(routed_id="future", at=NOW - 1, seen=NOW + HOUR)]))
    assert verbs.bind_if_absent(binding(routed_id="new"), NOW).routed_id == "new"


def test_a_retired_id_is_bound_by_nobody():
    _, verbs = ledger(document_of(retired={id_digest("r1"): NOW}))
    assert verbs.bind_if_absent(binding(), NOW) is None
    _, verbs = ledger(document_of(bindings=[binding(routed_id="gone")], retired={id_digest("gone"): NOW}))
    assert verbs.bind_if_absent(binding(routed_id="new", at=NOW + 1), NOW).routed_id == "new"


def test_a_touch_updates_the_binding_with_that_id_only():
    document, verbs = ledger(document_of(bindings=[binding()]))
    assert verbs.touch(binding(seen=NOW + 5, turns=4))
    assert (verbs.lookup(binding().key).last_seen_at, verbs.lookup(binding().key).turns) == (NOW + 5, 4)
    assert not verbs.touch(binding(routed_id="other"))
    assert not verbs.touch(binding("c2"))
    assert set(document.contents().bindings) == {binding().key}


def test_what_another_process_saw_later_or_decided_stays_and_a_stamp_of_a_wrong_clock_does_not():
    theirs = binding(at=NOW - 9, seen=NOW + 500, turns=5, marked=True, standby="s1")
    _, verbs = ledger(document_of(bindings=[theirs]))
    verbs.touch(binding(seen=NOW, turns=2, failures=1))
    there = verbs.lookup(binding().key)
    assert (there.bound_at, there.last_seen_at, there.turns, there.failures) == (NOW - 9, NOW + 500, 5, 1)
    assert (there.marked, there.standby) == (True, "s1")
    verbs.bind_if_absent(binding(seen=NOW - HOUR), NOW)
    assert verbs.lookup(binding().key).last_seen_at == NOW - HOUR


def test_retiring_deletes_the_binding_with_that_id_and_remembers_it_either_way():
    document, verbs = ledger(document_of(spare("r2"), bindings=[binding()]))
    assert not verbs.retire_if(binding().key, "r2", NOW)
    assert verbs.retire_if(binding().key, "r1", NOW)
    contents = document.contents()
    assert (contents.free, dict(contents.bindings)) == ((), {})
    assert contents.retired == {id_digest("r1"): NOW, id_digest("r2"): NOW}


def test_forgetting_remembers_nothing():
    document, verbs = ledger(document_of(bindings=[binding()]))
    assert not verbs.forget_if(binding().key, "other")
    assert verbs.forget_if(binding().key, "r1")
    assert document.contents().retired == {}


def test_what_a_process_knows_to_be_retired_comes_back_and_takes_effect():
    document, verbs = ledger(document_of(spare("r2"), bindings=[binding()]))
    verbs.restore_retired({id_digest("r1"): NOW, id_digest("r2"): NOW})
    contents = document.contents()
    assert (contents.free, dict(contents.bindings)) == ((), {})
    document.changed = False
    verbs.restore_retired({id_digest("r1"): NOW})
    assert not document.changed


# -- probes ---------------------------------------------------------------------------------------


def test_probes_are_granted_up_to_the_cap_of_a_rolling_hour():
    _, verbs = ledger()
    assert verbs.grant_probes(GO, 3, 5, NOW) == 3
    assert verbs.grant_probes(GO, 3, 5, NOW + 1) == 2
    assert verbs.grant_probes(GO, 1, 5, NOW + 2) == 0
    assert verbs.grant_probes("opencode", 1, 5, NOW) == 1
    assert verbs.grant_probes(GO, 9, 5, NOW + HOUR) == 3


def test_probes_that_were_never_written_are_given_back():
    document, verbs = ledger()
    verbs.grant_probes(GO, 2, 5, NOW)
    verbs.return_probes(GO, 1, NOW)
    verbs.return_probes(GO, 5, NOW + 1)
    assert document.contents().probes == {GO: (NOW,)}
    verbs.return_probes(GO, 5, NOW)
    assert document.contents().probes == {}


def test_a_cap_that_was_lowered_grants_nothing_negative():
    _, verbs = ledger(document_of(probes={GO: [NOW] * 9}))
    assert verbs.grant_probes(GO, 1, 5, NOW) == 0


# -- old and foreign things -------------------------------------------------------------------------


def test_pruning_drops_idle_bindings_crashed_reserves_and_old_stamps():
    old = NOW - 9 * HOUR
    document, verbs = ledger(
        document_of(
            spare("stale", verified_at=old),
            bindings=[binding(), binding("c2", "r2", at=old), binding("c3", "r3", seen=NOW + HOUR)],
            reserved=[
                write_spare(spare("crashed")) | {"owner": "p9", "reservedAt": old},
                write_spare(spare("kept")) | {"owner": "p2", "reservedAt": NOW},
            ],
            retired={"a" * 16: old, "b" * 16: NOW},
            probes={GO: [NOW - HOUR, NOW], "opencode": [NOW - 2 * HOUR]},
        )
    )
    assert verbs.prune(LEASE, 256, NOW) == 2
    contents = document.contents()
    assert set(contents.bindings) == {binding().key}
    assert [one.spare.id for one in contents.reserved] == ["kept"]
    assert set(contents.retired) == {"b" * 16}
    assert contents.probes == {GO: (NOW,)}
    assert [one.id for one in contents.free] == ["stale"]


def test_pruning_keeps_the_bindings_seen_last_under_the_cap():
    document, verbs = ledger(document_of(bindings=[binding(f"c{n}", f"r{n}", at=NOW - n) for n in range(5)]))
    assert verbs.prune(LEASE, 2, NOW) == 3
    assert {one.routed_id for one in document.contents().bindings.values()} == {"r0", "r1"}


def test_entries_are_bounded():
    document, verbs = ledger(document_of(*[spare(f"s{n}", verified_at=NOW - n) for n in range(600)]))
    document.raw["entries"].append({"what": "is this"})
    verbs.prune(LEASE, 256, NOW)
    assert len(document.contents().free) == 512


def test_pruning_a_tidy_document_changes_nothing():
    document, verbs = ledger(document_of(spare("a"), bindings=[binding()]))
    before = deepcopy(document.raw)
    assert verbs.prune(LEASE, 256, NOW) == 0
    assert document.raw == before
    assert not document.changed


def test_unknown_keys_stay_at_every_level():
    raw = document_of(spare("a"), bindings=[binding()], theirs={"deep": [1]})
    raw["entries"][0]["note"] = "mine"
    raw["bindings"][binding().key]["note"] = "mine too"
    raw["entries"].append("odd")
    raw["bindings"]["odd"] = 7
    document, verbs = ledger(raw)
    verbs.touch(binding(seen=NOW + 1))
    verbs.release([spare("b")])
    verbs.prune(LEASE, 256, NOW)
    assert document.raw["theirs"] == {"deep": [1]}
    assert document.raw["entries"][0]["note"] == "mine"
    assert "odd" in document.raw["entries"]
    assert document.raw["bindings"][binding().key]["note"] == "mine too"
    assert document.raw["bindings"]["odd"] == 7


def test_optional_keys_of_the_wrong_shape_are_replaced_when_needed_and_never_raise():
    raw = document_of(reserved="x", retired=[], probes={GO: "many"}, lineage=5)
    document, verbs = ledger(raw)
    assert document.lineage == ""
    assert document.contents().reserved == ()
    verbs.grant_probes(GO, 1, 5, NOW)
    verbs.retire_if("k", "r", NOW)
    verbs.hold([spare("a")], NOW)
    assert verbs.prune(LEASE, 256, NOW) == 0
    document.found()
    assert len(document.lineage) == 16
    first = document.lineage
    document.found()
    assert document.lineage == first
