"""What happens in a conversation, whatever the client: turns, and everything that disturbs them."""

from collections.abc import Generator
from typing import Any

from tests.traces import words
from tests.traces.play import All, Ask, Beside, Reply, Script, Wait
from tests.traces.session import Result, Said, Session, User

STEPS_MAX = 5  # of one turn, should a gateway call tools for ever
CLEARED = "[Old tool result content cleared]"


def ask(
    session: Session, kind: str = "turn", messages: list[dict[str, Any]] | None = None, reply: Reply | None = None
) -> Generator[Any, Any, Reply]:
    """One request and its answer."""
    client = session.client
    if messages is None:
        messages = client.messages(session)
    planned = session.final() if reply is None else reply
    got = yield Ask(client.request(session, kind, messages, client.spoken(planned)))
    return client.heard(got)


def steps_of(session: Session, steps: int | None) -> int:
    if not session.client.uses:
        return 0
    return session.rng.choice((0, 1, 1, 2, 3)) if steps is None else steps


def turn(session: Session, text: str, *blocks: str, steps: int | None = None, answer: str | None = None) -> Script:
    """The user says something and the model works until it has answered."""
    session.user(text, *blocks)
    yield from work(session, steps_of(session, steps), answer)


def work(session: Session, steps: int, answer: str | None = None) -> Script:
    """From what the history ends with to the model's last word."""
    kind = "agent" if session.parent else "turn"
    for number in range(STEPS_MAX):
        if number < steps:
            tools = session.rng.choice((("read",), ("edit",), ("bash",), ("search", "read"), ("read", "read", "bash")))
            planned = session.working(*tools)
        else:
            planned = session.final(answer)
        got = yield from ask(session, kind, reply=planned)
        session.said(got)
        if not got.calls:
            break
        yield Wait(session.rng.randrange(40, 4_000))
        session.results(got)
    session.turns += 1
    after = session.client.after_turn(session)
    if after is not None:
        yield Beside(after)


def title(session: Session) -> Script:
    """The client's title call, if it has one."""
    messages = session.client.title(session)
    if messages is not None:
        yield from ask(session, "title", messages, Reply(words.sentence(session.rng)[:50]))


def compact(session: Session) -> Script:
    """The client shortens its history, if it can."""
    requests = session.client.compaction(session)
    if requests is None:
        return
    summaries = [""] * len(requests)

    def one(number: int, messages: list[dict[str, Any]]) -> Script:
        planned = Reply("## Goal\n" + words.prose(session.rng, 700))
        got = yield from ask(session, "compaction", messages, planned)
        summaries[number] = got.text

    yield All([one(number, messages) for number, messages in enumerate(requests)])
    session.history = session.client.compacted(session, summaries)


def regenerate(session: Session) -> Script:
    """The last answer again."""
    del session.history[session.last_user() + 1 :]
    yield from work(session, steps_of(session, None))


def edit_last(session: Session) -> Script:
    """The user takes back the last message and says another."""
    del session.history[session.last_user() :]
    yield from turn(session, words.follow(session.rng) + " And keep it short.")


def edit_first(session: Session) -> Script:
    """The user rewrites the opener: nothing that the model said remains, so only an id can tell."""
    blocks = next(entry.blocks for entry in session.history if isinstance(entry, User))
    session.history.clear()
    session.content = f"{session.content or session.label}/edited"
    yield from turn(session, f"{session.opener} Do not touch the tests.", *blocks)


def abort(session: Session, text: str, share: float = 0.5) -> Script:
    """The user stops an answer midway; what came of it stays in the history."""
    session.user(text)
    whole = words.prose(session.rng, 500)
    reply = Reply(whole[: int(len(whole) * share)].rsplit(" ", 1)[0], complete=False)
    got = yield from ask(session, reply=reply)
    session.client.aborted(session, got)


def retry(session: Session, text: str, times: int = 1) -> Script:
    """An attempt fails before the first byte, and the client sends the same again."""
    session.user(text)
    kind = "agent" if session.parent else "turn"
    planned = session.final()
    for number in range(times + 1):
        request = session.client.request(session, kind, session.client.messages(session), planned)
        request.truth, request.content = session.label, session.content
        if session.client.retries:
            request.fields = [
                (name, str(number) if name == "x-stainless-retry-count" else value) for name, value in request.fields
            ]
        if number < times:
            request.reply = Reply("", complete=False, failed=True)
            request.takes_ms = 400
            yield Ask(request)
            yield Wait(500 * 2**number)
        else:
            session.said((yield Ask(request)))
    session.turns += 1


def agents(session: Session, count: int) -> Script:
    """The model hands work to sub-agents; they run at once, and it goes on with what they found."""
    session.user(f"Use sub-agents for this: {words.task(session.rng)}")
    got = yield from ask(session, reply=session.working(*["task"] * count))
    if not got.calls:
        session.said(got)
        return
    session.said(got)
    found: dict[int, str] = {}

    def run(number: int) -> Script:
        child = session.child(number, f"a{words.digits(session.rng, 16)}")
        yield Wait(session.rng.randrange(0, 300))
        yield from turn(child, session.client.agent_task(session, number), steps=session.rng.randrange(1, 4))
        said = [entry.text for entry in child.history if isinstance(entry, Said)]
        found[number] = said[-1]

    session.extra["children"] = session.extra.get("children", 0)
    first = session.extra["children"]
    session.extra["children"] += len(got.calls)
    yield All([run(first + number) for number in range(len(got.calls))])
    for number, call in enumerate(got.calls):
        session.history.append(Result(call, found[first + number], session.clock.now))
    yield from work(session, 0)


def prune(session: Session) -> None:
    """Old tool results are replaced by a placeholder."""
    results = [entry for entry in session.history if isinstance(entry, Result)]
    for entry in results[:-1]:
        entry.text = CLEARED


def switch_model(session: Session) -> None:
    """The user picks another model."""
    others = [model for model in session.client.models if model != session.model]
    session.model = session.rng.choice(others)


def fork_idle(session: Session) -> Script:
    """The user goes on in a copy while the original rests, and comes back to it later."""
    other = session.fork()
    yield from turn(other, "In this copy, try another way: " + words.follow(session.rng))
    yield Wait(session.rng.randrange(5_000, 60_000))
    yield from turn(other, words.follow(session.rng))
    yield Wait(session.rng.randrange(5_000, 60_000))
    yield from turn(session, "Back here: " + words.follow(session.rng))
