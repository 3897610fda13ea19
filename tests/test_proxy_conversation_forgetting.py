"""What was forgotten is found by nothing any more."""

from tests.fakes.talk import Talk, assistant, user

SUMMARY = "The parser fails on empty lines, since it takes the first letter of each; a test for that was written. " * 3


def test_nobody_quotes_a_forgotten_conversation_that_was_summarised_when_it_was_thin_already():
    """Its summary came without tools, as a side call, which made it no whole conversation again."""
    talk = Talk(max_count=1)
    opened = [user("Please look at the parser and find out why it fails.")]
    talk.turn(opened, "It fails on empty lines, as far as I can see.", tools=True)
    talk.turn([user("What is the capital of France, and since when?")], "Paris, for a thousand years or so.")
    asked = [*opened, assistant("It fails on empty lines, as far as I can see."), user("Summarise this, please.")]
    summarised = talk.ask(asked, tools=False)
    assert (summarised.match, summarised.side) == ("answer", True)
    talk.answer(summarised, SUMMARY)
    for number in range(8):
        talk.turn(
            [user(f"Question {number} asks about something that is its own.")], f"Answer {number} to that, of course."
        )
    quotes = talk.ask([user(f"Make a title of this, please:\n{SUMMARY}")], tools=False)
    assert quotes.match == "new"
    assert talk.registry.notes() == []
