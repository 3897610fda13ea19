"""What recognition must hold to as a whole: partitions with and without ids, scopes, bounds, side calls, aborts."""

import json

import pytest

from proxy.conversation.scopes import scope_of
from tests.fakes.talk import SECRET, Talk, assistant, label, result, user

ASK = "Please look at the parser and find out why it fails on empty input."
SAID = "It splits an empty list in the second step, which nobody expected."
HELLO = "Hello! How can I help you today?"
ID = "call_9aF3kQ7xZ2mW"


def title_of(text):
    return [user(f"Generate a title for this conversation:\n\n{text}")]


def played(named):
    """Several conversations at once, each step named by who speaks; returns the partition by label."""
    talk = Talk()
    labels: dict[str, set[str]] = {}

    def step(who, messages, text="", *calls, **how):
        headers = {"x-session-id": f"session-of-{who}-0123456789"} if named else {}
        resolved = talk.turn(messages, text, *calls, headers=headers, **how)
        labels.setdefault(who, set()).add(label(resolved))

    for who in ("anna", "bert", "cora"):
        step(who, [user("hi")], HELLO)
    for who in ("cora", "anna", "bert"):
        begun = [user("hi"), assistant(HELLO), user(f"I am {who}, and I need help with my parser.")]
        step(
            who, begun, f"Of course, {who}; show me the file that it fails on.", (f"call_{who}1234567xyz", "read", "{}")
        )
    for who in ("bert", "cora", "anna"):
        call = (f"call_{who}1234567xyz", "read", "{}")
        said = assistant(f"Of course, {who}; show me the file that it fails on.", call)
        begun = [
            user("hi"),
            assistant(HELLO),
            user(f"I am {who}, and I need help with my parser."),
            said,
            result(call[0]),
        ]
        step(who, begun, f"The fault of {who} is in the second step.")
        step(who, title_of(f"I am {who}, and I need help with my parser."), "A title", tools=False)
    return labels


@pytest.mark.parametrize("named", [True, False], ids=["with ids", "without ids"])
def test_the_same_traces_give_the_same_partition(named):
    """The ids are the truth; without them, what is said must do. (A swap of what is alike so far is none.)"""
    labels = played(named)
    late = {who: set(labels[who]) for who in labels}
    if named:
        assert all(len(found) == 1 for found in late.values())
    assert len(set.union(*late.values())) == 3


def test_two_credentials_with_the_same_bytes_are_disjoint():
    """At every step of a conversation."""
    talk = Talk()
    steps = [[user(ASK)], [user(ASK), assistant(SAID), user("Fix it.")]]
    seen = {scope: {label(talk.turn(step, SAID, scope=scope)) for step in steps} for scope in ("alice", "bob")}
    assert [len(labels) for labels in seen.values()] == [1, 1]
    assert seen["alice"].isdisjoint(seen["bob"])


def test_a_key_that_is_rotated_under_a_listener_token():
    """The scope is the token's: id and content both survive. Without a token the evidence does not cross."""
    old, new = [(b"authorization", b"Bearer old")], [(b"authorization", b"Bearer new")]
    steps = [[user(ASK)], [user(ASK), assistant(SAID), user("Fix it.")]]
    for token, same in (("home", True), (None, False)):
        for headers in ({}, {"x-session-id": "a-session-of-some-length"}):
            talk = Talk()
            scopes = [scope_of(token, fields, SECRET) for fields in (old, new)]
            one, two = (
                label(talk.turn(step, SAID, scope=scope, headers=headers))
                for step, scope in zip(steps, scopes, strict=True)
            )
            assert (one == two) is same


@pytest.mark.parametrize("tools", [True, False])
def test_fifty_parallel_identical_openers(tools):
    """Fifty conversations, fifty natural ids, none shared."""
    talk = Talk()
    asked = [talk.ask([user("Explain what a monad is.")], tools=tools) for _ in range(50)]
    assert len({label(resolved) for resolved in asked}) == 50
    assert len({resolved.conversation.natural.value for resolved in asked}) == 50
    assert all(resolved.turn for resolved in asked)


def test_four_sub_agents_without_ids_of_their_own():
    """Five conversations under one session; the parent keeps its label after they have finished."""
    talk = Talk()
    session = {"x-claude-code-session-id": "0f0e0d0c-aaaa-bbbb-cccc-123456789abc"}
    parent = talk.turn([user(ASK)], "", (ID, "task", "{}"), headers=session)
    agents = []
    for n in range(4):
        agents.append(talk.ask([user(f"You are agent {n}: read module {n}.")], headers=session))
    for n, agent in enumerate(agents):
        talk.answer(agent, f"I read module {n} and found nothing in it.", (f"call_agent{n}56789abc", "read", "{}"))
    for n, agent in enumerate(agents):
        call = (f"call_agent{n}56789abc", "read", "{}")
        said = assistant(f"I read module {n} and found nothing in it.", call)
        again = talk.turn(
            [user(f"You are agent {n}: read module {n}."), said, result(call[0])], "Over.", headers=session
        )
        assert label(again) == label(agent)
    back = talk.turn([user(ASK), assistant("", (ID, "task", "{}")), result(ID)], "All is well.", headers=session)
    assert label(back) == label(parent)
    assert len({label(parent), *map(label, agents)}) == 5


@pytest.mark.parametrize("headers", [{}, {"x-opencode-session": "ses_4a1b2c3d4e5fABCDEFGHIJKLMN"}])
@pytest.mark.parametrize("first", ["title", "turn"])
def test_a_title_that_is_asked_for_with_the_first_turn(headers, first):
    """One route, whoever comes first; the lineage is the real turn's alone."""
    talk = Talk()
    asked = {}
    for what in (first, "turn" if first == "title" else "title"):
        messages = title_of(ASK) if what == "title" else [user(ASK)]
        asked[what] = talk.ask(
            messages, tools=what == "turn", model="kimi-k3" if what == "turn" else "s", headers=headers
        )
    assert label(asked["title"]) == label(asked["turn"])
    talk.answer(asked["title"], "Parser fix")
    talk.answer(asked["turn"], SAID)
    second = talk.turn([user(ASK), assistant(SAID), user("Fix it.")], "Fixed.", headers=headers)
    assert label(second) == label(asked["turn"])
    line = talk.evidence.current("alice", label(second))
    if not headers:
        assert line.length == 3


def test_counted_ids_in_two_chats():
    """The same calls with the same ids, side by side: no merge."""
    talk = Talk()
    call = ("functions.read:0", "read", '{"path": "setup.py"}')
    openers = {"one": "Explain the build of this project.", "two": "Write release notes for the version."}
    first = {who: label(talk.turn([user(opener)], "", call)) for who, opener in openers.items()}
    for who, opener in openers.items():
        messages = [user(opener), assistant("", call), result(call[0])]
        assert label(talk.turn(messages, f"Done with {who}.")) == first[who]


@pytest.mark.parametrize("part", ["", "It splits an em", SAID])
@pytest.mark.parametrize("headers", [{}, {"x-stainless-retry-count": "1"}])
def test_an_abort_and_its_retry(part, headers):
    """Whatever had passed, with the SDK's own mark and without."""
    talk = Talk()
    first = talk.ask([user(ASK)])
    talk.answer(first, part, complete=False)
    again = talk.turn([user(ASK)], SAID, headers=headers)
    assert (label(again), again.match) == (label(first), "retry")


@pytest.mark.parametrize("kept", ["It splits an em", "It splits", "It splits an em\n\n[interrupted]"])
def test_a_turn_after_an_abort(kept):
    """The client kept about as much of the answer as it saw."""
    talk = Talk()
    first = talk.ask([user(ASK)])
    talk.answer(first, "It splits an em", complete=False)
    again = talk.turn([user(ASK), assistant(kept), user("Stop, look at the lexer instead.")], SAID)
    assert label(again) == label(first)


def test_a_request_without_any_id_never_leaves_without_one():
    """Even where nothing can be read."""
    talk = Talk()
    for data in (b"", b"{}", b"no json", b'{"messages": []}', json.dumps({"messages": [user("hi")]}).encode()):
        assert talk.raw(data).conversation.natural.value


def test_a_live_fork_is_a_conversation_of_its_own():
    """And both keep their labels from then on."""
    talk = Talk()
    begun = [user(ASK), assistant(SAID)]
    talk.turn([user(ASK)], SAID)
    one = talk.ask([*begun, user("Fix it in place.")])
    two = talk.ask([*begun, user("Rewrite it from the ground.")])
    assert label(one) != label(two)
    talk.answer(one, "I fixed it in place, with a test.")
    talk.answer(two, "I wrote the whole parser anew.")
    for said, text, was in ((begun, "Fix it in place.", one), (begun, "Rewrite it from the ground.", two)):
        answer = "I fixed it in place, with a test." if was is one else "I wrote the whole parser anew."
        assert label(talk.turn([*said, user(text), assistant(answer), user("Go on.")], "Well.")) == label(was)


def test_a_fork_of_a_resting_conversation_inherits_it_until_both_live():
    """The original keeps its label; the copy gets one of its own when both go on."""
    talk = Talk()
    begun = [user(ASK), assistant(SAID)]
    talk.turn([user(ASK)], SAID)
    first = talk.turn([*begun, user("Fix it in place.")], "I fixed it in place, with a test.")
    copy = talk.turn([*begun, user("Rewrite it from the ground.")], "I wrote the whole parser anew.")
    assert label(copy) == label(first)
    fixed = [*begun, user("Fix it in place."), assistant("I fixed it in place, with a test."), user("Go on.")]
    back = talk.turn(fixed, "I go on with it.")
    anew = [*begun, user("Rewrite it from the ground."), assistant("I wrote the whole parser anew."), user("And now?")]
    later = talk.turn(anew, "Now the lexer.")
    assert label(back) == label(first)
    assert label(later) != label(first)


def test_an_answer_that_nobody_read_is_no_loss():
    """What was asked tells enough, where it is telling and nobody else asked the same."""
    talk = Talk()
    first = talk.ask([user(ASK)])
    talk.registry.answered(first, None, talk.now)
    talk.registry.done(first, talk.now, True)
    assert label(talk.turn([user(ASK), assistant(SAID), user("Fix it.")], "Fixed.")) == label(first)


def test_a_clients_id_costs_no_reading():
    """An answer is asked for where it may tell something, and only there."""
    talk = Talk()
    session = {"x-session-id": "a-session-of-some-length"}
    assert talk.turn([user(ASK)], SAID, headers=session).wants_answer  # a new id may be another name of what is known
    second = talk.turn([user(ASK), assistant(SAID), user("Fix it.")], "Fixed.", headers=session)
    third = [user(ASK), assistant(SAID), user("Fix it."), assistant("Fixed."), user("Thanks.")]
    assert not talk.turn(third, "Well.", headers=session).wants_answer
    assert not second.wants_answer or len(second.track.line.label) == 16
    assert not talk.turn([user(ASK)], SAID, headers={"x-ocpool-conversation": "mine"}).wants_answer
    assert talk.turn([user("Something else that nobody asked yet.")], SAID).wants_answer


def test_a_fork_with_an_id_of_its_own_inherits_a_resting_conversation():
    """Never one that is under way."""
    talk = Talk()
    begun = [user(ASK), assistant(SAID), user("Fix it.")]
    old = {"x-session-id": "the-session-of-the-original"}
    first = talk.turn(begun[:1], SAID, headers=old)
    fork = talk.turn(
        [*begun[:2], user("Rewrite it.")], "Rewritten.", headers={"x-session-id": "the-session-of-the-fork-1"}
    )
    assert (label(fork), fork.match) == (label(first), "alias")
    under_way = talk.ask(begun, headers=old)
    other = talk.ask([*begun[:2], user("Drop it.")], headers={"x-session-id": "the-session-of-the-fork-2"})
    assert label(under_way) == label(first)
    assert label(other) != label(first)


def test_a_compaction_does_not_make_an_id_static():
    """Two unrelated openers look like one; the third must have nothing to do with the second."""
    talk = Talk()
    session = {"x-session-id": "a-session-of-some-length"}
    answers = [f"Summary {n}: the parser was mended, and then the lexer, in {n} steps. " * 4 for n in range(5)]
    labels = set()
    opener = ASK
    for answer in answers:
        begun = [user(opener)]
        labels.add(label(talk.turn(begun, "I am at work on it, one step after the other.", headers=session)))
        begun += [assistant("I am at work on it, one step after the other."), user("Summarise all that was said.")]
        labels.add(label(talk.turn(begun, answer, headers=session)))
        opener = f"This session goes on from an earlier one:\n{answer}"
    assert len(labels) == 1
    assert not talk.registry.notes()
