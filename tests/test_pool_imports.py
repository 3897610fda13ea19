"""An imported binding goes to the first scope that sends its session id, and to nobody else."""

from config.settings import Settings
from pool.bindings import Bindings
from pool.imports import imported_key
from pool.inventory import Inventory
from pool.model import Binding, Natural, Shape, Source, Wish
from pool.routes import Routes

NOW = 1_796_060_000_000
GO, MODEL, DIGEST = "opencode-go", "m", "0123456789abcdef"
ROUTED = "7d1a90c4-1111-4222-8333-444455556666"
OURS = Natural("01a1b54b-7000-7000-8000-000000000001", False, DIGEST)


def routes(*, last_seen_at: int = NOW - 1000) -> Routes:
    bindings = Bindings(Settings())
    key = imported_key(DIGEST, GO, MODEL)
    bindings.mirror(Binding(key, GO, MODEL, ROUTED, Source.SPARE, NOW - 5000, last_seen_at))
    return Routes(Settings(), Inventory(), bindings)


def wish(natural: Natural = OURS, *, label: str = "a" * 16, scope: str = "one", model: str = MODEL) -> Wish:
    return Wish(label, scope, GO, model, Shape.UUID, natural)


def test_the_first_that_sends_the_id_has_its_route():
    pool = routes()
    start = pool.start(wish(), NOW)
    assert (start.routed_id, start.source, start.bound) == (ROUTED, Source.SPARE, True)
    assert [note.name for note in pool.notes()] == ["inherit"]
    [binding] = list(pool.parts.bindings)
    assert (binding.key, binding.scope) == (f"{'a' * 16}::{GO}::{MODEL}", "one")


def test_the_next_turn_finds_it_as_its_own():
    pool = routes()
    pool.start(wish(), NOW)
    assert pool.start(wish(), NOW + 1000).routed_id == ROUTED


def test_another_scope_that_sends_it_later_does_not():
    """Its natural id is minted then, because the value is somebody's."""
    pool = routes()
    pool.start(wish(), NOW)
    minted = Natural("5c5c5c5c-0000-4000-8000-000000000000", True, "f" * 16)
    assert pool.start(wish(minted, label="b" * 16, scope="two"), NOW + 1).routed_id == minted.value


def test_another_model_of_the_conversation_does_not():
    assert routes().start(wish(model="other"), NOW).routed_id == OURS.value


def test_one_that_was_idle_for_too_long_is_retired():
    pool = routes(last_seen_at=NOW - 28_800_001)
    assert pool.start(wish(), NOW).routed_id == OURS.value
    assert pool.parts.bindings.is_retired(ROUTED)


def test_the_store_is_told_both_halves():
    pool = routes()
    pool.start(wish(), NOW)
    pending = pool.parts.bindings.outbox.pending
    assert set(pending) == {imported_key(DIGEST, GO, MODEL), f"{'a' * 16}::{GO}::{MODEL}"}
