"""Conversations found, begun and counted: disjoint by scope, each with an id of its own that lasts."""

import json

import pytest

from config.settings import Settings
from pool.model import Shape
from proxy.conversation.body import BodyFacts
from proxy.conversation.ids import read_ids
from proxy.conversation.naturals import digest_of
from proxy.conversation.registry import MODELS_KEPT, Registry
from proxy.conversation.scopes import scope_of

SECRET = bytes(32)
GO = "opencode-go"
SES = "ses_4a1b2c3d4e5fABCDEFGHIJKLMN"
PARENT = "ses_9f8e7d6c5b4aZYXWVUTSRQPONM"
ALICE = scope_of(None, [(b"authorization", b"Bearer alice")], SECRET)
BOB = scope_of(None, [(b"authorization", b"Bearer bob")], SECRET)
TURN = BodyFacts(True, "kimi-k3", True, (), None, True, 3)
TITLE = BodyFacts(True, "small", True, (), None, False, 1)


def registry(held=None, evidence=None, **conversation):
    return Registry(limits(**conversation), SECRET, (held or {}).get, evidence)


def limits(**conversation):
    return Settings.model_validate({"conversation": conversation})


def reading(*, named=None, facts=None, **fields):
    return read_ids([(name.encode(), value.encode()) for name, value in fields.items()], named, facts)


def resolve(known, read, scope=ALICE, facts=TURN, now=0):
    return known.resolve(read, scope, GO, facts, now)


def take_turn(known, read, scope=ALICE, facts=TURN, now=0):
    resolved = resolve(known, read, scope, facts, now)
    known.done(resolved, now, True)
    return resolved.conversation


def test_the_same_id_finds_the_same_conversation():
    """Its turns are counted when they are completed."""
    known = registry()
    read = reading(x_session_id=SES)
    first = resolve(known, read, now=5)
    assert (first.turn, first.side, first.conversation.in_flight) == (True, False, 1)
    again = resolve(known, read, now=7)
    assert again.conversation is first.conversation
    assert first.conversation.in_flight == 2
    known.done(first, 8, True)
    known.done(again, 9, False)
    conversation = first.conversation
    assert (conversation.turns, conversation.in_flight) == (1, 0)
    assert (conversation.first_seen_at, conversation.last_seen_at) == (5, 9)
    known.done(again, 9, True)
    assert (conversation.turns, conversation.in_flight) == (1, 0)


def test_one_session_is_one_conversation_in_whatever_field_it_comes():
    """pi sends other fields for other models of the same session."""
    known = registry()
    one = take_turn(known, reading(x_session_affinity=SES))
    assert take_turn(known, reading(x_session_id=SES)) is one
    assert take_turn(known, reading(x_opencode_session=SES)) is one
    assert one.match == "owner:x-opencode-session"


def test_two_credentials_with_the_same_bytes_are_disjoint():
    """Other labels, other ids; only the first keeps the client's value."""
    known = registry()
    read = reading(x_session_id=SES)
    alice, bob = take_turn(known, read, ALICE), take_turn(known, read, BOB)
    assert alice is not bob
    assert alice.label != bob.label
    assert (alice.natural.value, alice.natural.minted) == (SES, False)
    assert bob.natural.minted
    assert bob.natural.value != SES
    assert bob.shape is Shape.SES


def test_a_key_rotated_under_one_listener_token_keeps_the_conversation():
    """The token is the scope."""
    known = registry()
    scopes = {scope_of("token", [(b"authorization", key)], SECRET) for key in (b"Bearer old", b"Bearer new")}
    assert len({take_turn(known, reading(x_session_id=SES), scope).label for scope in scopes}) == 1


def test_a_name_in_the_path_and_in_our_field_are_one_conversation():
    """With a minted natural id, or the session that the client sent first."""
    known = registry()
    one = take_turn(known, reading(named="work"))
    assert one.natural.minted
    assert take_turn(known, reading(x_ocpool_conversation="work", x_session_id=SES)) is one
    assert one.natural.minted
    other = take_turn(known, reading(named="play", x_session_id=SES))
    assert (other.natural.value, other.shape) == (SES, Shape.SES)


def test_a_label_that_is_sent_back_finds_its_conversation_in_its_scope_only():
    """Now and after a restart, and in another scope it is only a name."""
    known = registry()
    one = take_turn(known, reading(x_session_id=SES))
    echo = reading(x_ocpool_conversation=one.label)
    assert take_turn(known, echo) is one
    assert take_turn(registry(), echo).label == one.label
    assert take_turn(known, echo, BOB).label != one.label


def test_a_restart_changes_neither_labels_nor_minted_ids():
    """They are derived from the secret."""
    reads = [reading(named="work"), reading(x_session_id=SES), reading(session_id="short")]
    before, after = registry(), registry()
    for read in reads:
        one, two = take_turn(before, read), take_turn(after, read)
        assert (one.label, one.natural) == (two.label, two.natural)


def test_a_stored_digest_keeps_a_value_for_its_conversation():
    """After a restart the other scope comes first, and still gets a minted id."""
    label = take_turn(registry(), reading(x_session_id=SES)).label
    known = registry({digest_of(SECRET, SES): label})
    assert take_turn(known, reading(x_session_id=SES), BOB).natural.minted
    assert take_turn(known, reading(x_session_id=SES), ALICE).natural.value == SES


def test_every_conversation_has_an_id_of_its_own():
    """Whatever came in: never two with one natural id, never one without."""
    known = registry()
    reads = [
        reading(x_session_id=SES),
        reading(x_session_id=SES, named="work"),
        reading(x_claude_code_session_id=SES, x_claude_code_agent_id="a"),
        reading(x_claude_code_session_id=SES, x_claude_code_agent_id="b"),
        reading(named=SES),
        reading(x_task_id="1"),
        reading(x_roo_task_id="1"),
    ]
    conversations = [take_turn(known, read, scope) for read in reads for scope in (ALICE, BOB)]
    values = [conversation.natural.value for conversation in conversations]
    assert len(set(values)) == len(values) == len({conversation.label for conversation in conversations})
    assert all(values)


def test_what_names_nothing_goes_on_the_minted_id_of_its_scope_and_provider():
    """No state is kept, it is no turn, and its label is its own."""
    known = registry()
    one, two = resolve(known, reading()), resolve(known, reading())
    assert (one.turn, one.side, one.conversation.known, one.conversation.match) == (False, False, False, "new")
    assert one.conversation.natural == two.conversation.natural
    assert one.conversation.natural.minted
    assert one.conversation.label != two.conversation.label
    assert known.unnamed(BOB, GO, 0).natural != one.conversation.natural
    assert known.unnamed(ALICE, "opencode", 0).natural != one.conversation.natural
    assert registry().unnamed(ALICE, GO, 0).natural == one.conversation.natural
    known.done(one, 1, True)
    assert (len(known), one.conversation.turns) == (0, 0)


def test_a_client_that_sends_back_the_label_of_such_a_request_has_begun_a_conversation():
    """With an id of its own, which nobody shares."""
    known = registry()
    one, two = resolve(known, reading()).conversation, resolve(known, reading()).conversation
    first, second = (take_turn(known, reading(x_ocpool_conversation=each.label)) for each in (one, two))
    assert (first.label, second.label) == (one.label, two.label)
    assert len({first.natural.value, second.natural.value, one.natural.value}) == 3


def test_a_title_is_no_turn_and_leaves_no_model():
    """It shares the conversation, before, beside and after the first turn."""
    known = registry()
    read = reading(x_session_affinity=SES)
    turn, title = resolve(known, read), resolve(known, read, facts=TITLE)
    assert (title.side, title.turn) == (True, False)
    assert title.conversation is turn.conversation
    known.done(title, 1, True)
    known.done(turn, 2, True)
    assert turn.conversation.turns == 1
    assert list(turn.conversation.models) == ["kimi-k3"]


def test_a_title_marked_by_its_client_belongs_to_the_session_that_it_names():
    """Kilo calls it title-ses_..., and may send it first."""
    known = registry()
    title = resolve(known, reading(x_session_id=f"title-{SES}"), facts=TITLE)
    turn = resolve(known, reading(x_session_id=SES))
    assert title.side
    assert title.conversation is turn.conversation
    assert turn.conversation.natural.value == SES


def test_the_models_of_a_conversation_are_bounded():
    """A client that changes them at every turn fills nothing."""
    known = registry()
    for number in range(100):
        conversation = take_turn(known, reading(named="w"), facts=TURN._replace(model=f"m-{number}"))
    assert len(conversation.models) == MODELS_KEPT
    assert "m-99" in conversation.models


def test_a_parent_is_found_by_its_clients_value_in_its_own_scope():
    """To map the field on the way up, and to show the link."""
    known = registry()
    parent = take_turn(known, reading(x_session_affinity=PARENT))
    short = take_turn(known, reading(session_id="p-1"))
    child = take_turn(known, reading(x_session_affinity=SES, x_parent_session_id=PARENT))
    assert child.parent == parent.label == known.parent_label(ALICE, PARENT.encode())
    assert known.parent_label(ALICE, b" p-1 ") == short.label
    for scope, value in [(BOB, PARENT.encode()), (ALICE, b""), (ALICE, b"unknown"), (ALICE, b"\xff" * 40)]:
        assert known.parent_label(scope, value) is None


def test_a_sub_agent_of_claude_code_links_to_its_session():
    """The pair is its own conversation, the session its parent."""
    known = registry()
    main = take_turn(known, reading(x_claude_code_session_id=SES))
    agent = take_turn(known, reading(x_claude_code_session_id=SES, x_claude_code_agent_id="a"))
    assert agent is not main
    assert agent.parent == main.label


def test_the_view_shows_no_clients_value():
    """Labels, the rule that matched, turns, ages, models."""
    known = registry()
    secret = "conversation-of-the-client-0001"
    take_turn(known, reading(x_session_id=secret, x_parent_session_id=PARENT), now=1000)
    running = resolve(known, reading(named=secret), now=3000)
    shown = known.view(5000)
    assert secret not in json.dumps(shown)
    assert PARENT not in json.dumps(shown)
    assert shown[0] == {
        "label": running.conversation.label,
        "match": "owner:/s/<name>/",
        "turns": 0,
        "in_flight": 1,
        "models": ["kimi-k3"],
        "parent": None,
        "natural": "minted",
        "age_ms": 2000,
        "idle_ms": 0,
    }
    assert (shown[1]["natural"], shown[1]["turns"], shown[1]["idle_ms"]) == ("client", 1, 4000)
    assert secret not in repr(running.conversation) + repr(known.by_label(shown[1]["label"]))


@pytest.mark.parametrize("now", [-5, 0, 10**15])
def test_a_clock_that_jumps_breaks_nothing(now):
    """Back, or years ahead."""
    known = registry()
    read = reading(named="w")
    label = take_turn(known, read, now=1000).label
    assert take_turn(known, read, now=now).label == label
    assert all(entry["age_ms"] >= 0 for entry in known.view(0))
