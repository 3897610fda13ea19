"""The hard cases, a row each: at least five conversations, live at once, over the clients that can have the case.

``scenarios.py`` declares those that the algorithm was drawn up against, ``habits.py`` what else clients do.
"""

from collections.abc import Callable, Sequence
from random import Random

from tests.traces import talk, words
from tests.traces.clients.base import Client
from tests.traces.clients.table import CLIENTS
from tests.traces.corpus import BEGIN, KEY
from tests.traces.play import Clock, Script, Timed, Wait
from tests.traces.session import Session

Row = Callable[[int, Clock], list[Timed]]
Played = Callable[[Session], Script]
AGENTS = ("pi", "opencode", "openai-sdk", "roo", "crush", "litellm")
CHATS = ("openai-sdk", "curl", "workbuddy", "langchain", "zed", "continue")


class Cases:
    """Rows by name; each call declares one."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}

    def __call__(
        self,
        name: str,
        clients: Sequence[str | Client],
        count: int = 6,
        every: int = 7_000,
        at: int = 0,
        alike: bool = False,
    ) -> Callable[[Played], Played]:
        """A script is played ``count`` times, one more ``every`` so many ms, over the clients in turn.

        ``alike``: all begin from one random state and place, so that only what the script varies differs.
        """

        def declare(script: Played) -> Played:
            def row(seed: int, clock: Clock) -> list[Timed]:
                timed = []
                for number in range(count):
                    chosen = clients[number % len(clients)]
                    client = CLIENTS[chosen] if isinstance(chosen, str) else chosen
                    rng = Random(f"{seed}/{name}/{'alike' if alike else number}")
                    begun = _begun(client, rng, clock, f"{name}-{number}", script, number, alike)
                    timed.append(Timed(BEGIN + at + number * every, begun))
                return timed

            self.rows[name] = row
            return script

        return declare


def _begun(
    client: Client, rng: Random, clock: Clock, label: str, script: Callable[[Session], Script], number: int, alike: bool
) -> Script:
    session = client.session(rng, clock, label, KEY, cwd="/home/ada/src/atlas" if alike else "")
    if alike:
        session.id = client.new_id(Random(label))
    session.extra["number"] = number
    yield from script(session)


def several(session: Session, turns: int, steps: int | None = None) -> Script:
    for _ in range(turns):
        yield from talk.turn(session, words.follow(session.rng), steps=steps)
        yield Wait(session.rng.randrange(1_000, 40_000))


def opened(session: Session, steps: int | None = None, turns: int = 2) -> Script:
    """An opener and a few turns."""
    session.opener = words.task(session.rng)
    yield from talk.turn(session, session.opener, steps=steps)
    yield Wait(session.rng.randrange(1_000, 20_000))
    yield from several(session, turns - 1, steps)
