"""The event log: one line a request and one a decision, for people and for later statistics.

A line is a JSON object: ``at`` (unix ms), ``event`` (its name), and plain facts in snake_case. Ids are digests and
nothing in it is a credential; the redactor sees to it once more. A sudden death loses what was not yet written,
at most the last ``lines.BATCH_WAIT_SECONDS``.
"""

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from pool.clock import Clock
from proxy.insight.lines import LineWriter
from proxy.insight.redact import Redactor
from proxy.insight.rotation import RotatingFile

REQUEST = "request"
RECENT = 256

Event = dict[str, Any]


# Tells the whole of an event that happened at this instant, masked by this: what somebody else has chosen of it.
Tell = Callable[[int, Redactor], Event]


class Noted(NamedTuple):
    """One event: its facts, or what can tell them, masked."""

    event: str  # its name
    at: int  # unix ms
    facts: Event | Tell

    def line(self, redactor: Redactor) -> Event:
        """The whole event as it is written or shown."""
        facts = self.facts
        if callable(facts):
            return facts(self.at, redactor)
        return {"at": self.at, "event": self.event, **redactor.facts(facts)}


class EventLog:
    """Where the daemon says what it did. ``emit`` costs microseconds, never blocks and never raises.

    Args:
        path: the live file; None keeps events in memory only.
        max_bytes: a fuller file is rotated.
        keep: how many older files stay.
        clock: what the instants are read from.
        redactor: masks what should not have been said.
        warn: told once when the file cannot be written, and once when it can again.
    """

    def __init__(
        self,
        path: Path | None,
        max_bytes: int,
        keep: int,
        clock: Clock,
        *,
        redactor: Redactor | None = None,
        warn: Callable[[str], object] | None = None,
    ) -> None:
        self.path = path
        self.recent: deque[Noted] = deque(maxlen=RECENT)
        self.redactor = redactor or Redactor()
        self._now = clock.wall_ms
        self._warn = warn
        self._writer: LineWriter[Noted] | None = None
        if path is not None:
            self._writer = LineWriter(
                RotatingFile(path, max_bytes, keep),
                self._line,
                dropped=self._dropped,
                trouble=self._trouble,
                name="events",
            )

    def emit(self, event: str, /, **facts: object) -> None:
        """Note that something happened. Facts must not be changed afterwards."""
        self.note(Noted(event, self._now(), facts))

    def note(self, noted: Noted) -> None:
        """Keep an event, and have it written. What it tells must not be changed afterwards."""
        self.recent.append(noted)
        if self._writer is not None:
            self._writer.put(noted)

    def last(self, count: int, event: str | None = None) -> list[Event]:
        """The last events of that name (None: any), newest first, masked."""
        found: list[Event] = []
        for noted in reversed(list(self.recent)):
            if len(found) == count:
                break
            if event is None or noted.event == event:
                found.append(noted.line(self.redactor))
        return found

    @property
    def dropped(self) -> int:
        """How many events did not reach the file."""
        return self._writer.dropped if self._writer is not None else 0

    @property
    def failing(self) -> bool:
        """True while the file cannot be written."""
        return self._writer.failing if self._writer is not None else False

    def close(self) -> None:
        """Write what is queued. Blocks for at most ``lines.CLOSE_WAIT_SECONDS``."""
        if self._writer is not None:
            self._writer.close()

    def _line(self, noted: Noted) -> bytes:
        event: Event = {}
        try:
            event = noted.line(self.redactor)
            return orjson.dumps(event)
        except Exception as error:  # noqa: BLE001 - a lone surrogate, an integer over 64 bits; the thread must live
            shown = self.redactor.text(ascii(event))[:1000]
            return orjson.dumps({"at": noted.at, "event": "unwritable", "why": str(error), "what": shown})

    def _dropped(self, count: int) -> bytes:
        return orjson.dumps({"at": self._now(), "event": "events_dropped", "count": count})

    def _trouble(self, error: OSError | None) -> None:
        if self._warn is None:
            return
        if error is None:
            self._warn(f"the event log {self.path} can be written again; {self.dropped} events were lost so far")
        else:
            self._warn(f"the event log {self.path} cannot be written ({error.strerror}); events are lost meanwhile")
