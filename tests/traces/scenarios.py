"""The two dozen scenarios that the algorithm was drawn up against, each a row."""

from collections.abc import Callable
from random import Random

from tests.traces import talk, words
from tests.traces.cases import AGENTS, CHATS, Cases, opened, several
from tests.traces.clients import chats
from tests.traces.corpus import KEY, MINUTE, OTHER_KEY, life
from tests.traces.play import Reply, Script, Wait
from tests.traces.session import Said, Session, User

case = Cases()


@case("date rollover", AGENTS, at=176 * MINUTE)
def _rollover(session: Session) -> Script:
    yield from opened(session)
    yield Wait(6 * MINUTE)
    yield from several(session, 3)


def _same_until(turns: int) -> Callable[[Session], Script]:
    def script(session: Session) -> Script:
        """The same is said and answered in all of them for some turns; then each goes its way."""
        for turn in range(turns):
            said = Random(f"same/{turn}")
            yield from talk.turn(session, ("hi", "and then?", "go on")[turn], steps=0, answer=words.prose(said, 250))
            yield Wait(4_000)
        session.rng = Random(session.label)
        yield from several(session, 4, steps=0)

    return script


for _turns in (1, 2, 3):
    case(f"identical openers and answers, {_turns} turns", ("openai-sdk",), every=400, alike=True)(_same_until(_turns))


@case("tool-result-only turns", AGENTS)
def _tool_results(session: Session) -> Script:
    yield from opened(session, steps=4, turns=3)


class _Rewriter(chats.OpenAISDK):
    """It tidies what the model says before it keeps it; tool ids stay."""

    name = "rewriter"

    def keeps(self, reply: Reply) -> str:
        return reply.text.replace("`", "").replace("The ", "This ").upper()


@case("rewritten answers, tool ids kept", (_Rewriter(),))
def _rewritten(session: Session) -> Script:
    yield from opened(session, steps=2, turns=4)


def _counted(style: str) -> Callable[[Session], Script]:
    def script(session: Session) -> Script:
        session.call_ids = words.CallIds(style)
        session.call_ids.call(session.rng, "read") if session.extra["number"] % 2 else None
        yield from opened(session, steps=2, turns=4)

    return script


for _style in ("kimi-k2", "kimi-k3", "counter"):
    case(f"counting tool ids, {_style}", ("openai-sdk", "langchain", "roo", "opencode"), every=900)(_counted(_style))


def _compacting(after: Callable[[Session, str], list]) -> Callable[[Session], Script]:
    def script(session: Session) -> Script:
        session.long_answers = True
        yield from opened(session, turns=4)
        asked = {"role": "user", "content": "Summarise the conversation so that work can go on from it."}
        got = yield from talk.ask(
            session, "compaction", [*session.client.messages(session), asked], Reply(words.prose(session.rng, 600))
        )
        session.history = after(session, got.text)
        yield Wait(3_000)
        yield from several(session, 3)

    return script


def _tail_kept(session: Session, summary: str) -> list:
    start = session.last_user()
    return [User(f"Summary so far: {summary}", session.clock.now), *session.history[start:]]


def _all_rewritten(session: Session, summary: str) -> list:
    return [User(f"This session goes on from an earlier one.\n{summary}", session.clock.now)]


def _opener_kept(session: Session, summary: str) -> list:
    rewritten = " ".join(reversed(summary.split()))
    return [User(session.opener, session.clock.now), Said(f"So far: {rewritten}")]


case("compaction, tail kept", ("pi", "opencode", "openai-sdk", "kimi-cli"))(_compacting(_tail_kept))
case("compaction, all rewritten", ("crush", "litellm", "openai-sdk", "goose"))(_compacting(_all_rewritten))
case("compaction, opener kept", ("openai-sdk", "hermes", "langchain"))(_compacting(_opener_kept))


@case("aider's moving blocks", ("aider",))
def _aider(session: Session) -> Script:
    yield from opened(session, turns=5)


@case("a second aider run", ("aider",), count=5)
def _aider_again(session: Session) -> Script:
    yield from opened(session, turns=3)
    other = session.fork(f"{session.label}/again")
    other.history.clear()
    yield Wait(30_000)
    yield from several(other, 3)
    yield from several(session, 1)


@case("sub-agents in a cohort", ("claude-code-litellm",), count=5)
def _cohort(session: Session) -> Script:
    yield from opened(session)
    yield from talk.agents(session, 4)
    yield from several(session, 2)


class _Static(chats.OpenAISDK):
    """A header that its user pasted from somewhere."""

    name = "static"

    def identify(self, session: Session, kind: str, request) -> None:
        request.id_fields = [("x-opencode-session", "wsl")]
        request.open = session.extra["number"] < 3  # what it takes to notice


@case("a static header", (_Static(),), count=9, every=90_000)
def _static(session: Session) -> Script:
    yield from opened(session, turns=4)


class _Rotating(chats.OpenAISDK):
    """An adapter that makes up a session for every request."""

    name = "rotating"

    def identify(self, session: Session, kind: str, request) -> None:
        request.id_fields = [("x-session-id", words.uuid(session.rng))]


@case("a rotating header", (_Rotating(),))
def _rotating(session: Session) -> Script:
    yield from opened(session, turns=5)


@case("two keys", ("openai-sdk", "openai-sdk", "opencode", "opencode", "pi", "pi"), every=0)
def _two_keys(session: Session) -> Script:
    number = session.extra["number"]
    session.rng = Random(f"two keys/{number // 2}")
    session.id, session.cwd, session.model = session.client.new_id(session.rng), "/srv", session.client.models[0]
    session.key = OTHER_KEY if number % 2 else KEY
    yield from opened(session, turns=4)


@case(
    "title calls",
    ("opencode", "kilo", "crush", "open-webui", "goose", "zed", "claude-code-router", "opencode-go"),
    count=8,
)
def _titles(session: Session) -> Script:
    yield from life(session, words.task(session.rng), 4)


@case("retries", ("openai-sdk", "curl", "opencode", "pi", "aider", "langchain"), every=700)
def _retries(session: Session) -> Script:
    yield from talk.retry(session, words.task(session.rng), times=1 + session.extra["number"] % 2)
    yield from several(session, 2)
    yield from talk.retry(session, words.follow(session.rng))
    yield from several(session, 1)


@case("edits", ("continue", "zed", "open-webui", "opencode", "curl", "openai-sdk"))
def _edits(session: Session) -> Script:
    yield from opened(session, turns=3)
    yield from talk.edit_last(session)
    yield from talk.edit_first(session)
    yield from several(session, 2)


@case("cleared tool results", ("opencode", "claude-code-router", "kimi-cli", "openai-sdk", "roo"))
def _cleared(session: Session) -> Script:
    yield from opened(session, steps=3, turns=2)
    talk.prune(session)
    yield from several(session, 2, steps=2)
    talk.prune(session)
    yield from several(session, 2)


@case("a new chat with an old opener", CHATS, count=6)
def _old_opener(session: Session) -> Script:
    yield from opened(session, turns=3)
    other = session.fork(f"{session.label}/again")
    other.history.clear()
    other.opener = session.opener
    yield Wait(10 * MINUTE)
    yield from talk.turn(other, session.opener)
    yield from several(other, 2)
    yield from several(session, 2)


@case("a cohort's member rewritten", ("zed", "kimi-cli", "claude-code-litellm"))
def _cohort_rewrite(session: Session) -> Script:
    yield from opened(session, turns=3)
    session.history.clear()
    session.content = f"{session.label}/rewritten"
    yield Wait(30_000)
    yield from talk.turn(session, words.task(session.rng))
    yield from several(session, 2)
