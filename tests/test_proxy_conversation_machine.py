"""Live conversations with one opener, interleaved in any order: forks, aborts, edits, retries, compactions, side calls.

Two that both go on since they parted never share a label. (Before that nothing tells them apart, and a swap harms
nobody; and a copy keeps the label of an original that rests.)
"""

from itertools import combinations, groupby

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from tests.fakes.talk import Talk, assistant, label, user

OPENERS = ("hi", "Please look at the parser and find out why it fails.", "yes")
ANSWERS = ("Hello!", "Done.", "I looked at all of it, and found nothing that would be wrong with it.")
LATER = ("go on", "yes", "Please write a test for that, too.")


class Chat:
    """What one client knows: its messages, what they were before it rewrote them, and what its requests were taken for."""

    def __init__(self, messages):
        self.messages = messages
        self.before = []
        self.asks = []

    def rewritten(self, messages):
        self.before.append(list(self.messages))
        self.messages = messages

    def apart(self, other):
        """Its requests that the other never could have sent: (when, label)."""
        ways = (*other.before, other.messages)
        return [(at, label) for at, label, asked in self.asks if all(asked != way[: len(asked)] for way in ways)]


class Conversations(RuleBasedStateMachine):
    chats = Bundle("chats")
    running = Bundle("running")

    def __init__(self):
        super().__init__()
        self.talk = Talk(max_count=50)
        self.known = []
        self.count = 0

    def unlike(self, what):
        self.count += 1
        return f"{what} number {self.count} that nobody else has said in all of this."

    def chat(self, messages):
        made = Chat(messages)
        self.known.append(made)
        return made

    def asked(self, chat):
        resolved = self.talk.ask(list(chat.messages))
        chat.asks.append((self.talk.now, label(resolved), list(chat.messages)))
        return resolved

    @rule(target=running, opener=st.sampled_from(OPENERS))
    def begin(self, opener):
        chat = self.chat([user(opener)])
        return chat, self.asked(chat)

    @rule(target=chats, pair=consumes(running), answer=st.sampled_from(ANSWERS), own=st.booleans())
    def end(self, pair, answer, own):
        chat, resolved = pair
        text = self.unlike("An answer") if own else answer
        self.talk.answer(resolved, text)
        chat.messages.append(assistant(text))
        return chat

    @rule(target=running, pair=consumes(running), part=st.integers(0, 20))
    def abort_and_ask_again(self, pair, part):
        chat, resolved = pair
        text = self.unlike("A long answer")[:part]
        self.talk.answer(resolved, text, complete=False)
        return chat, self.asked(chat)

    @rule(target=running, chat=consumes(chats), text=st.sampled_from(LATER), own=st.booleans())
    def go_on(self, chat, text, own):
        chat.messages.append(user(self.unlike("A question") if own else text))
        return chat, self.asked(chat)

    @rule(target=running, chat=chats)
    def fork(self, chat):
        copy = self.chat([*chat.messages, user(self.unlike("A question of the fork"))])
        copy.before = list(chat.before)
        return copy, self.asked(copy)

    @rule(target=chats, chat=chats, turns=st.integers(2, 3))
    def take_turns_with_a_copy(self, chat, turns):
        copy = self.chat(list(chat.messages))
        copy.before = list(chat.before)
        for _ in range(turns):
            for one in (copy, chat):
                one.messages.append(user(self.unlike("A question")))
                text = self.unlike("An answer")
                self.talk.answer(self.asked(one), text)
                one.messages.append(assistant(text))
        return copy

    @rule(target=running, chat=consumes(chats))
    def edit(self, chat):
        chat.rewritten([*chat.messages[:-2], user(self.unlike("An edited question"))])
        return chat, self.asked(chat)

    @rule(target=running, chat=consumes(chats))
    def compact(self, chat):
        summary = self.unlike("A summary") * 5
        resolved = self.talk.ask([*chat.messages, user("Summarise this, please, for a successor.")])
        self.talk.answer(resolved, summary)
        chat.rewritten([user(f"This goes on from an earlier session:\n{summary}")])
        return chat, self.asked(chat)

    @rule(chat=chats)
    def title(self, chat):
        asked = [user(f"Generate a title for this conversation:\n\n{chat.messages[0]['content']}")]
        self.talk.turn(asked, "A title", tools=False)

    @invariant()
    def nobody_shares_a_label_after_both_went_on(self):
        for one, other in combinations(self.known, 2):
            asks = sorted([(*ask, 0) for ask in one.apart(other)] + [(*ask, 1) for ask in other.apart(one)])
            turns = [list(asks) for _, asks in groupby(asks, key=lambda ask: ask[2])]
            if len(turns) >= 4:
                assert turns[-1][-1][1] != turns[-2][-1][1]

    @invariant()
    def what_is_remembered_is_bounded(self):
        assert len(self.talk.evidence) <= self.talk.evidence.most + len(self.known)


TestConversations = Conversations.TestCase
TestConversations.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_a_copy_never_joins_another_conversation_whose_first_answer_is_still_waited_for():
    """Its opener is the same, but nobody can have repeated what was not said yet."""
    state = Conversations()
    first = state.begin(opener=OPENERS[1])
    chat = state.end(pair=first, answer=ANSWERS[0], own=False)
    copy = state.take_turns_with_a_copy(chat=chat, turns=2)
    state.begin(opener=OPENERS[1])
    for _ in range(2):
        state.take_turns_with_a_copy(chat=copy, turns=2)
        state.nobody_shares_a_label_after_both_went_on()


def test_a_fork_never_joins_a_conversation_that_only_begins_with_the_same_summary():
    """Two others relayed what it repeats; a third, which was summarised alike, relayed less of it and is none of both."""
    state = Conversations()
    first = state.begin(opener=OPENERS[0])
    summarised = state.compact(chat=state.end(pair=first, answer=ANSWERS[0], own=False))
    chat = state.end(pair=summarised, answer=ANSWERS[0], own=False)
    copy = state.take_turns_with_a_copy(chat=chat, turns=2)
    state.fork(chat=copy)
    state.take_turns_with_a_copy(chat=copy, turns=2)
    state.nobody_shares_a_label_after_both_went_on()


def test_an_original_never_rejoins_a_conversation_whose_fork_goes_on_from_a_summary():
    """What it repeats is a line at rest, but its conversation is under way elsewhere."""
    state = Conversations()
    original = state.end(pair=state.begin(opener=OPENERS[0]), answer=ANSWERS[0], own=False)
    fork = state.end(pair=state.fork(chat=original), answer=ANSWERS[0], own=False)
    going = state.compact(chat=fork)
    state.end(pair=state.compact(chat=original), answer=ANSWERS[0], own=False)
    state.compact(chat=state.end(pair=going, answer=ANSWERS[0], own=False))
    state.nobody_shares_a_label_after_both_went_on()


def test_what_is_asked_word_for_word_joins_no_conversation_that_has_gone_on_from_there():
    """A short question, a short answer and the words of a template prove nothing; the copies took its own line."""
    state = Conversations()

    def ended(pair):
        return state.end(pair=pair, answer=ANSWERS[0], own=False)

    first = ended(state.compact(chat=ended(state.begin(opener=OPENERS[0]))))
    fork = state.fork(chat=first)
    state.compact(chat=state.take_turns_with_a_copy(chat=first, turns=2))
    waiting, other = state.begin(opener=OPENERS[0]), state.begin(opener=OPENERS[0])
    forked = ended(fork)
    state.take_turns_with_a_copy(chat=first, turns=2)
    copy, late = ended(other), ended(waiting)
    ended(state.compact(chat=forked))
    for _ in range(4):
        copy = state.take_turns_with_a_copy(chat=copy, turns=2)
    state.compact(chat=copy)
    state.compact(chat=late)
    state.nobody_shares_a_label_after_both_went_on()
