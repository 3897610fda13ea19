"""Texts that may be quoted: found in what quotes them as long as somebody has them, and gone with the last who had."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.conversation.postings import Quotes

WORDS = ("parser", "fails", "on", "empty", "lines", "why", "is", "that")
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=7).map(" ".join)
HELD = st.tuples(st.booleans(), TEXTS, st.integers(0, 3))


@given(added=st.lists(HELD, max_size=12), gone=st.lists(HELD, max_size=12), around=TEXTS)
def test_a_text_is_found_with_those_who_asked_and_those_who_were_answered_so(added, gone, around):
    """Whatever others came and went, and twice is as good as once."""
    quotes, held = Quotes(), {}
    for answer, text, line in (*added, *added[:3]):
        quotes.add(quotes.answers if answer else quotes.questions, text, line)
        held[answer, text, line] = None
    for answer, text, line in gone:
        quotes.discard(quotes.answers if answer else quotes.questions, text, line)
        held.pop((answer, text, line), None)
    texts = {text for _, text, _ in held}
    for text in texts:
        found = {
            quote: (answers, questions) for quote, answers, questions in quotes.within(f"{around} {text} {around}")
        }
        assert set(found) == {each for each in texts if each in f"{around} {text} {around}"}
        assert set(found[text][0]) == {line for answer, each, line in held if answer and each == text}
        assert set(found[text][1]) == {line for answer, each, line in held if not answer and each == text}
    for answer, text, line in held:
        quotes.discard(quotes.answers if answer else quotes.questions, text, line)
    assert len(quotes) == 0
