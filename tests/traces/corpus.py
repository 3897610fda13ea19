"""Which conversations there are: a row for every client and one for every hard case.

A row is played by itself: its conversations are live at once, most of them under one credential. Everything follows
from the row's name and the seed.
"""

from collections.abc import Callable
from random import Random

from tests.traces import talk, words
from tests.traces.clients.table import CLIENTS
from tests.traces.play import Beside, Clock, Script, Timed, Wait
from tests.traces.session import Session

BEGIN = 1_764_536_400_000  # three hours before a midnight, in unix ms
KEY = "sk-first-0123456789abcdef"
OTHER_KEY = "sk-other-fedcba9876543210"
PER_CLIENT = 24
TWINS = 5  # conversations with one opener, live at once
MINUTE = 60_000


def of_client(name: str, seed: int, clock: Clock) -> list[Timed]:
    """One client's conversations: five that open alike, the others each with something that happens."""
    client = CLIENTS[name]
    timed = []
    same = words.task(Random(f"{seed}/{name}/same"))
    for number in range(PER_CLIENT):
        rng = Random(f"{seed}/{name}/{number}")
        twin = number < TWINS
        at = BEGIN + (rng.randrange(3_000) if twin else rng.randrange(40 * MINUTE))
        key = OTHER_KEY if number in (TWINS - 1, PER_CLIENT - 1) else KEY
        happens = () if twin or not client.does else (client.does[number % len(client.does)],)
        opener = same if twin else words.GREETINGS[0] if number == TWINS else words.task(rng)
        cwd = "/home/ada/src/atlas" if twin else ""
        timed.append(Timed(at, _life(client, rng, clock, f"{name}-{number}", key, opener, happens, cwd)))
    return timed


def _life(client, rng, clock, label, key, opener, happens, cwd) -> Script:
    session = client.session(rng, clock, label, key, cwd=cwd)
    yield from life(session, opener, rng.randrange(3, 7), happens)


def life(session: Session, opener: str, turns: int, happens: tuple[str, ...] = ()) -> Script:
    """A conversation from its opener on; what happens, happens after its second turn or later."""
    client, rng = session.client, session.rng
    session.opener = opener
    if client.title_beside:
        yield Beside(_after(rng.randrange(60), talk.title(session)))  # a race: either may come first
        yield Wait(rng.randrange(60))
    yield from talk.turn(session, opener)
    if not client.title_beside:
        yield Beside(talk.title(session))
    yield Wait(rng.randrange(2_000, 3 * MINUTE))
    for number in range(1, turns):
        yield from talk.turn(session, words.follow(rng))
        yield Wait(rng.randrange(2_000, 4 * MINUTE))
        if number == 1:
            for event in happens:
                yield from EVENTS[event](session)
                yield Wait(rng.randrange(2_000, 2 * MINUTE))


def _after(ms: int, script: Script) -> Script:
    yield Wait(ms)
    yield from script


def _now(change: Callable[[Session], None]) -> Callable[[Session], Script]:
    def happen(session: Session) -> Script:
        change(session)
        yield from talk.turn(session, words.follow(session.rng))

    return happen


def _then_turn(script: Callable[[Session], Script]) -> Callable[[Session], Script]:
    def happen(session: Session) -> Script:
        yield from script(session)
        yield Wait(session.rng.randrange(500, 20_000))
        yield from talk.turn(session, words.follow(session.rng))

    return happen


def _truncate(session: Session) -> None:
    """The first turn stays, the middle goes."""
    starts = [i for i, entry in enumerate(session.history) if type(entry).__name__ == "User"]
    if len(starts) > 2:
        del session.history[starts[1] : starts[-1]]


def _drop_reasoning(session: Session) -> None:
    session.extra["no_reasoning"] = True


def _rerun(session: Session) -> Script:
    """The program is started again in the same place: a new conversation with the same surroundings."""
    other = session.fork(f"{session.label}/rerun")
    other.history.clear()
    yield from talk.turn(other, words.follow(session.rng))
    yield Wait(5_000)
    yield from talk.turn(other, words.follow(session.rng))


EVENTS: dict[str, Callable[[Session], Script]] = {
    "compact": _then_turn(talk.compact),
    "summarise": _then_turn(lambda session: session.client.summarise(session)),
    "agents": lambda session: talk.agents(session, session.rng.choice((1, 2, 3))),
    "edit_last": talk.edit_last,
    "edit_first": _then_turn(talk.edit_first),
    "regenerate": talk.regenerate,
    "abort": _then_turn(lambda session: talk.abort(session, words.follow(session.rng))),
    "retry": lambda session: talk.retry(session, words.follow(session.rng)),
    "fork": talk.fork_idle,
    "prune": _now(talk.prune),
    "switch": _now(talk.switch_model),
    "truncate": _now(_truncate),
    "drop_reasoning": _now(_drop_reasoning),
    "rerun": _rerun,
}
