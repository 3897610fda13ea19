"""A judge of ownership who believes the gateway's log, and the state file for when something was retired.

Every request says whose conversation it is in a field that ocpool has no part in, so that the log tells which id was
sent for whom. An id counts as routed when the gateway was ever asked to probe it: spares are made in no other way.
"""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from pool.clock import Clock
from pool.ids import id_digest
from proxy.simulator.record import Record

WHO = b"x-judged-name"
HONOURED_MS = 2_000  # a retirement that is in the file is obeyed everywhere after this long


@dataclass
class Watch:
    """Reads the state file again and again, and notes when each retirement was first in it."""

    state: Path
    retired_at: dict[str, int] = field(default_factory=dict)
    reads: int = 0

    async def run(self) -> None:
        clock, seen = Clock(), b""
        while True:
            try:
                data = self.state.read_bytes()
            except FileNotFoundError:
                data = seen
            if data != seen:
                seen, now = data, clock.wall_ms()
                for digest in orjson.loads(data).get("retired", {}):  # every state of it must parse
                    self.retired_at.setdefault(digest, now)
                self.reads += 1
            await asyncio.sleep(0.04)


@dataclass
class Verdict:
    """What the gateway saw, judged."""

    live: int
    probes: int
    conversations: int
    routed: int  # ids that were probed and then served a conversation
    shared: dict[str, set[str]]  # routed ids that were seen for several conversations
    late: list[tuple[str, int]]  # retired ids that were seen again, and how many ms after they should not have been


def judge(log: list[Record], retired_at: dict[str, int]) -> Verdict:
    """Was a routed id ever two conversations', or a retired one ever seen again?"""
    probed = {record.session for record in log if record.probe and record.session}
    owners: dict[str, set[str]] = defaultdict(set)
    late = []
    for record in log:
        if record.session is None:
            continue
        if not record.probe:
            owners[record.session].add(who(record))
        left_at = retired_at.get(id_digest(record.session))
        if left_at is not None and record.at > left_at + HONOURED_MS:
            late.append((record.session, record.at - left_at - HONOURED_MS))
    routed = {session: names for session, names in owners.items() if session in probed}
    return Verdict(
        live=sum(not record.probe for record in log),
        probes=sum(record.probe for record in log),
        conversations=len({who(record) for record in log if not record.probe}),
        routed=len(routed),
        shared={session: names for session, names in routed.items() if len(names) > 1},
        late=late,
    )


def who(record: Record) -> str:
    """Whose request it was."""
    return next((value.decode() for name, value in record.fields if name.lower() == WHO), "")
