"""The cases in which clients that send no id are hard to tell apart, one by one."""

import pytest

from tests.fakes.talk import Talk, assistant, label, result, system, user

HELLO = "Hello! How can I help you today?"
LONG = "The parser reads its input in one pass and keeps the positions of every token that it found on the way. " * 4
ASK = "Please look at the parser and find out why it fails on empty input."
ID = "call_9aF3kQ7xZ2mW"


def test_the_date_in_the_system_prompt_rolls_over():
    """System text is nobody's identity."""
    talk = Talk()
    first = talk.turn([system("Today is 2026-11-30. cwd /a"), user(ASK)], "It splits an empty list.")
    later = [system("Today is 2026-12-01. cwd /b"), user(ASK), assistant("It splits an empty list."), user("Fix it.")]
    assert label(talk.turn(later, "Fixed.")) == label(first)


def parallel(talk, count=4):
    return [talk.turn([user("hi")], HELLO, tools=False) for _ in range(count)]


def test_parallel_hi_at_turn_1():
    """Nobody is joined on an opener."""
    talk = Talk()
    asked = [talk.ask([user("hi")]) for _ in range(4)]
    assert len({label(resolved) for resolved in asked}) == 4
    assert all(resolved.match == "new" for resolved in asked)


def test_parallel_hi_at_turn_2_with_identical_replies():
    """They part, each onto one of the conversations that are alike so far."""
    talk = Talk()
    began = {label(resolved) for resolved in parallel(talk)}
    second = [talk.ask([user("hi"), assistant(HELLO), user(f"task {number}")]) for number in range(4)]
    assert {label(resolved) for resolved in second} == began


def test_parallel_hi_at_turn_3_with_identical_replies():
    """From then on each stays what it is, in any order."""
    talk = Talk()
    parallel(talk)
    begun = [user("hi"), assistant(HELLO)]
    second = {n: label(talk.turn([*begun, user(f"task {n}")], "Done.")) for n in range(4)}
    for n in (2, 0, 3, 1):
        third = talk.turn([*begun, user(f"task {n}"), assistant("Done."), user("more")], "Done.")
        assert label(third) == second[n]
        assert third.match == "answer"


def test_a_turn_that_is_nothing_but_a_tool_result():
    """The call's id is the proof."""
    talk = Talk()
    first = talk.turn([user(ASK)], "", (ID, "read", '{"path": "a.py"}'))
    second = talk.turn([user(ASK), assistant(None, (ID, "read", '{"path":"a.py"}')), result(ID)], "I see.")
    assert (label(second), second.match) == (label(first), "tool-id")


def test_an_answer_that_the_client_rewrote_around_a_random_id():
    """A sanitised id is the same id."""
    talk = Talk()
    first = talk.turn([user(ASK)], "Let me read the file first, then I can say more.", (ID, "read", "{}"))
    rewritten = assistant("[shortened]", (ID.replace("_", "-"), "read", '{"a": 1}'))
    moved = [user("A note that the client puts first."), user(ASK + " Now!"), rewritten, result(ID)]
    second = talk.turn(moved, "I see.")
    assert (label(second), second.match) == (label(first), "tool-id")


@pytest.mark.parametrize("form", ["functions.read_file:{}", "read_file_{}", "call0000{}"])
def test_ids_that_are_counters_prove_nothing(form):
    """Two chats have the same ids; what they say keeps them apart."""
    talk = Talk()
    call = (form.format(0), "read_file", '{"path": "setup.py"}')
    one = talk.turn([user("Explain the build of this project, please.")], "", call)
    two = talk.turn([user("Write the release notes for the new version.")], "", call)
    assert label(one) != label(two)
    back = [user("Explain the build of this project, please."), assistant("", call), result(call[0])]
    assert label(talk.turn(back, "It is built with make.")) == label(one)
    stranger = [user("Translate the manual into French for me, please."), assistant("", call), result(call[0])]
    assert label(talk.turn(stranger, "Voilà.")) not in {label(one), label(two)}


def worked(talk):
    """A conversation of three turns, and its messages."""
    said = [user(ASK)]
    first = talk.turn(said, "It splits an empty list in the second step.")
    said += [assistant("It splits an empty list in the second step."), user("Fix it and add a test for it.")]
    talk.turn(said, "Fixed, with a test for the empty input.")
    said += [assistant("Fixed, with a test for the empty input."), user("Thanks. What else is wrong there?")]
    talk.turn(said, "Nothing that I can see at the moment, all tests pass.")
    said += [assistant("Nothing that I can see at the moment, all tests pass.")]
    return first, said


def test_a_compaction_that_keeps_the_tail():
    """The kept answers are echoed."""
    talk = Talk()
    first, said = worked(talk)
    compacted = [user("Summary of what was said: a parser was mended."), *said[-2:], user("Go on with the lexer.")]
    after = talk.turn(compacted, "The lexer is fine.")
    assert (label(after), after.match) == (label(first), "answer")
    on = talk.turn([*compacted, assistant("The lexer is fine."), user("And the printer?")], "Fine, too.")
    assert label(on) == label(first)


def test_a_compaction_that_rewrites_all():
    """The summary is an answer of ours; the call for it repeats the history."""
    talk = Talk()
    first, said = worked(talk)
    asked = talk.turn([*said, user("Summarise this conversation for a successor.")], LONG)
    assert label(asked) == label(first)
    after = talk.turn([user(f"This session continues another one.\n\n<summary>\n{LONG}</summary>\nGo on.")], "I go on.")
    assert (label(after), after.match) == (label(first), "summary")


def test_a_compaction_that_keeps_the_opener():
    """Exactly one conversation has it, and it is idle."""
    talk = Talk()
    first, _ = worked(talk)
    after = talk.turn([user(ASK), assistant("(Earlier work was left out here.)"), user("Go on.")], "I go on.")
    assert (label(after), after.match) == (label(first), "opener")


EXAMPLES = [user("Change get_factorial() to use math.factorial"), assistant("I will edit mathweb/flask/app.py.")]


def aider(done, current, files, repo):
    """The order of aider's chunks: examples, a repository map, finished turns, files, the current turn, a reminder."""
    finished = [message for asked, said in done for message in (user(asked), assistant(said))]
    return [
        system("Act as an expert."),
        *EXAMPLES,
        user(f"Here is the repo map, which moves: {repo}"),
        assistant("Ok, I won't try and edit those files without asking first."),
        *finished,
        user(f"I have added these files to the chat: {files}"),
        assistant("Ok, any changes I propose will be to those files."),
        user(f"{current}\n\nReply in the edit format."),
    ]


TURNS = [
    ("Add a flag for verbose output.", "I added --verbose to the command line and passed it on to the logger."),
    ("Now document it in the readme.", "The readme has a paragraph about --verbose below the list of options."),
    ("Write a test for it as well.", "There is a test now that runs the command with --verbose and reads stderr."),
]


def test_the_moving_blocks_of_aider():
    """Finished turns are echoed although all around them moves."""
    talk = Talk()
    labels = []
    for number, (asked, said) in enumerate(TURNS):
        labels.append(label(talk.turn(aider(TURNS[:number], asked, f"v{number}", f"map {number}"), said, tools=False)))
    assert len(set(labels)) == 1


def test_a_second_run_of_aider():
    """What a client puts before every conversation joins no two."""
    talk = Talk()
    one = talk.turn(aider([], TURNS[0][0], "v0", "map"), TURNS[0][1], tools=False)
    two = talk.turn(aider([], "Rename the module to core.", "v0", "map"), "The module is called core now.", tools=False)
    assert label(one) != label(two)
    again = talk.turn(aider(TURNS[:1], TURNS[1][0], "v1", "map"), TURNS[1][1], tools=False)
    assert label(again) == label(one)


CLAUDE = {"x-claude-code-session-id": "0f0e0d0c-aaaa-bbbb-cccc-123456789abc"}


def test_sub_agents_in_a_cohort():
    """A parent that waits for its tool, and four that it started: five conversations."""
    talk = Talk()
    parent = talk.turn([user(ASK)], "", (ID, "task", '{"n": 4}'), headers=CLAUDE)
    agents = [
        talk.ask([user(f"You are agent {n}: read the module {n} of the four.")], headers=CLAUDE) for n in range(4)
    ]
    labels = {label(agent) for agent in agents}
    assert len(labels | {label(parent)}) == 5
    for n, agent in enumerate(agents):
        talk.answer(agent, f"Module {n} is in order, nothing to report.")
    back = [user(ASK), assistant("", (ID, "task", '{"n": 4}')), result(ID)]
    assert label(talk.turn(back, "All in order.", headers=CLAUDE)) == label(parent)


def test_a_header_that_is_the_same_for_all():
    """Two conversations that take turns under one value show that it names neither."""
    talk = Talk()
    static = {"x-session-id": "my-laptop"}
    alice = [user("Write me a poem about the sea, please."), assistant("The sea is wide."), user("Another one.")]
    bob = [user("What is the capital of Norway, do you know?"), assistant("It is Oslo."), user("And of Peru?")]
    one = talk.turn(alice[:1], "The sea is wide.", headers=static)
    talk.turn(bob[:1], "It is Oslo.", headers=static)
    again = talk.turn(alice, "The sea is deep.", headers=static)
    other = talk.turn(bob, "It is Lima.", headers=static)
    assert label(again) == label(one)
    assert label(other) != label(one)
    assert [note.name for note in talk.registry.notes()] == ["static_id"]
    alice += [assistant("The sea is deep."), user("One more.")]
    bob += [assistant("It is Lima."), user("And of Chad?")]
    assert label(talk.turn(alice, "The sea is old.", headers=static)) == label(one)
    assert label(talk.turn(bob, "N'Djamena.", headers=static)) == label(other)


def test_a_header_that_is_another_with_every_request():
    """The conversation goes on all the same, and after three the field is no longer read."""
    talk = Talk()
    said = [user(ASK)]
    labels, matches = [], []
    for number in range(6):
        turn = talk.turn(said, f"This is answer number {number}.", headers={"x-session-id": f"{number}" * 20})
        said += [assistant(f"This is answer number {number}."), user("Go on.")]
        labels.append(label(turn))
        matches.append(turn.match)
    assert len(set(labels)) == 1
    assert matches == ["owner:x-session-id", "alias", "alias", "alias", "answer", "answer"]
    assert [note.name for note in talk.registry.notes()] == ["rotating_id"]


def test_two_keys_with_the_same_bytes():
    """Evidence never crosses a scope."""
    talk = Talk()
    said = [user(ASK), assistant("It splits an empty list."), user("Fix it.")]
    for messages in (said[:1], said):
        one = talk.turn(messages, "It splits an empty list.", scope="alice")
        two = talk.turn(messages, "It splits an empty list.", scope="bob")
        assert label(one) != label(two)


def test_a_title_call_goes_with_its_conversation_and_leaves_no_trace():
    """While the first turn is under way, and nobody waits for anybody."""
    talk = Talk()
    first = talk.ask([user(ASK)])
    title = talk.turn([user(f"Generate a title for this conversation:\n\n{ASK}")], "Parser fix", tools=False, model="s")
    assert (label(title), title.match, title.side, title.turn) == (label(first), "side", True, False)
    talk.answer(first, "It splits an empty list.")
    second = talk.turn([user(ASK), assistant("It splits an empty list."), user("Fix it.")], "Fixed.")
    assert label(second) == label(first)


def test_a_retry():
    """After a failure the same request is the same conversation; without one it is somebody else's."""
    talk = Talk()
    first = talk.ask([user("hi")])
    talk.fail(first)
    again = talk.turn([user("hi")], HELLO)
    assert (label(again), again.match) == (label(first), "retry")
    assert label(talk.turn([user("hi")], HELLO)) != label(first)


def test_an_edit():
    """A changed turn keeps what comes before it; a changed opener begins anew."""
    talk = Talk()
    first, said = worked(talk)
    edited = [*said[:2], user("Leave it as it is, and write a note instead.")]
    assert label(talk.turn(edited, "Noted.")) == label(first)
    assert label(talk.turn([user("Please look at the lexer instead.")], "I look.")) != label(first)


def test_old_tool_results_are_pruned():
    """Only the id of a result counts."""
    talk = Talk()
    call = (ID, "read", '{"path": "a.py"}')
    said = [user(ASK), assistant("", call), result(ID, "x = 1\n" * 100)]
    first = talk.turn(said[:1], "", call)
    talk.turn(said, "It splits an empty list.")
    pruned = [
        *said[:2],
        result(ID, "[Old tool result content cleared]"),
        assistant("It splits an empty list."),
        user("Go on."),
    ]
    later = talk.turn(pruned, "Fixed.")
    assert (label(later), later.match) == (label(first), "tool-id")


def test_a_new_chat_with_an_old_opener():
    """Nobody is joined on an opener, however long it is idle."""
    talk = Talk()
    first, _ = worked(talk)
    talk.now += 3_600_000
    again = talk.turn([user(ASK)], "It splits an empty list.")
    assert (again.match, label(again) != label(first)) == ("new", True)


def test_a_rewrite_in_a_cohort():
    """Alone in its cohort, idle and waiting for nothing: it is the same conversation."""
    talk = Talk()
    key = {"prompt_cache_key": "project-x"}
    first = talk.turn([user(ASK)], "It splits an empty list.", **key)
    after = talk.turn([user("A wholly new beginning, written by the client.")], "Well.", **key)
    assert (label(after), after.match) == (label(first), "cohort:prompt_cache_key")
