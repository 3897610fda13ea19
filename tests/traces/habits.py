"""What else clients do to a conversation, each a row."""

from random import Random

from tests.traces import talk, words
from tests.traces.cases import AGENTS, CHATS, Cases, opened, several
from tests.traces.clients import chats
from tests.traces.play import All, Ask, Reply, Script, Wait
from tests.traces.session import Said, Session, User

case = Cases()


@case("one opener, live at once", AGENTS, count=12, every=300)
def _one_opener(session: Session) -> Script:
    session.opener = "Fix the failing test in tests/test_upload.py"
    yield from talk.turn(session, session.opener)
    yield Wait(session.rng.randrange(500, 3_000))
    yield from several(session, 3)


@case("a fork of a resting conversation", ("opencode", "pi", "jcode", "codex"))
def _fork(session: Session) -> Script:
    yield from opened(session, turns=3)
    yield from talk.fork_idle(session)


@case("a fork of a live conversation", ("opencode", "jcode", "codex", "openai-sdk"))
def _live_fork(session: Session) -> Script:
    yield from opened(session, turns=3)
    other = session.fork(f"{session.label}/fork")

    def beside() -> Script:
        yield Wait(300)
        yield from several(other, 3)

    yield All([several(session, 3), beside()])


@case("regenerated answers", CHATS)
def _regenerated(session: Session) -> Script:
    yield from opened(session)
    yield from talk.regenerate(session)
    yield from talk.regenerate(session)
    yield from several(session, 2)


@case("aborted answers", ("openai-sdk", "roo", "cline", "opencode", "claude-code-router", "zed"))
def _aborted(session: Session) -> Script:
    yield from opened(session)
    yield from talk.abort(session, words.follow(session.rng))
    yield from several(session, 1)
    yield from talk.abort(session, words.follow(session.rng), share=0.2)
    yield from several(session, 2)


@case("a first answer aborted", ("openai-sdk", "cline", "opencode", "zed", "langchain"))
def _aborted_first(session: Session) -> Script:
    yield from talk.abort(session, words.task(session.rng), share=0.7)
    yield from several(session, 3)


@case("parallel tool calls", AGENTS)
def _parallel(session: Session) -> Script:
    for _ in range(3):
        session.user(words.task(session.rng))
        for planned in (session.working("read", "search", "bash", "edit"), session.working("read", "read")):
            got = yield from talk.ask(session, reply=planned)
            session.said(got)
            session.results(got)
        yield from talk.work(session, 0)


@case("reasoning left out", ("pi", "kimi-cli", "openai-sdk"))
def _reasoning(session: Session) -> Script:
    yield from opened(session, turns=3)
    session.extra["no_reasoning"] = True
    for entry in session.history:
        if isinstance(entry, Said):
            entry.reasoning = ""
    yield from several(session, 3)


class _Spacer(chats.OpenAISDK):
    """It trims and re-wraps what the model says."""

    name = "spacer"

    def keeps(self, reply: Reply) -> str:
        return reply.text.strip().replace("\n\n", "\r\n\r\n  ") + "\n"


@case("white space changed", (_Spacer(),))
def _spaces(session: Session) -> Script:
    yield from opened(session, turns=4)


class _Thinker(chats.OpenAISDK):
    """Its model thinks aloud, between tags, and it takes that out."""

    name = "thinker"

    def keeps(self, reply: Reply) -> str:
        return reply.text.partition("</think>")[2].strip()


@case("thinking taken out of the text", (_Thinker(),))
def _thinking(session: Session) -> Script:
    for _ in range(4):
        thought = f"<think>\n{words.prose(session.rng, 200)}\n</think>\n\n{words.prose(session.rng, 200)}"
        yield from talk.turn(session, words.task(session.rng), steps=0, answer=thought)


@case("histories truncated", ("cline", "openai-sdk", "litellm", "langchain", "roo"))
def _truncated(session: Session) -> Script:
    yield from opened(session, turns=5)
    for _ in range(3):
        starts = [index for index, entry in enumerate(session.history) if isinstance(entry, User)]
        del session.history[: starts[2]]
        yield from several(session, 1)


class _Respeller(chats.OpenAISDK):
    """It parses a tool call's arguments, names the call anew and writes both again."""

    name = "respeller"
    compact_arguments = True

    def call_id(self, sent: str) -> str:
        return words.fixed(sent, 30)[:9].replace(" ", "").lower()

    def keeps(self, reply: Reply) -> str:
        return "" if reply.calls else reply.text


@case("arguments and ids written anew", (_Respeller(),))
def _respelled(session: Session) -> Script:
    session.long_answers = True
    yield from opened(session, steps=2, turns=4)


@case("models switched", AGENTS)
def _switched(session: Session) -> Script:
    yield from opened(session)
    for _ in range(3):
        talk.switch_model(session)
        yield from several(session, 1)


@case("a batch of single calls", ("openai-sdk", "langchain"), count=30, every=40)
def _batch(session: Session) -> Script:
    text = words.prose(Random(f"batch/{session.extra['number'] // 3}"), 200)
    yield from talk.turn(session, f"Classify this text: {text}", steps=0, answer="positive")


@case("answers that everybody gets", AGENTS, count=10, every=500)
def _everybody(session: Session) -> Script:
    for number in range(5):
        yield from talk.turn(
            session,
            ("hi", "yes", "continue", "ok", "thanks")[number],
            steps=0,
            answer=("Hello! How can I help you today?", "Done.", "OK.", "Done.", "Fixed.")[number]
            if number < 3
            else None,
        )
        yield Wait(session.rng.randrange(500, 5_000))


@case("a hop that strips fields now and then", ("opencode", "crush", "langchain", "goose", "openai-sdk"))
def _stripped(session: Session) -> Script:
    yield from opened(session, turns=2)
    for number in range(4):
        session.user(words.follow(session.rng))
        request = session.client.request(session, "turn", session.client.messages(session), session.final())
        if number % 2:
            request.id_fields, request.loose = [], True
        session.said((yield Ask(request)))
        yield Wait(2_000)
