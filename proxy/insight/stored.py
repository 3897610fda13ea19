"""Statistics of an event log on disk, its rotated files included, read as a stream."""

from pathlib import Path
from typing import Any

from proxy.insight.avoidance import SLOW_MS
from proxy.insight.effectiveness import Effectiveness
from proxy.insight.reading import EventReader


def effectiveness(path: Path, since: int | None = None, slow_ms: float = SLOW_MS) -> dict[str, Any]:
    """Whether routing helped since then (unix ms; None: all there is). Blocks: for a thread, or a command.

    ``slow_ms``: from which latency on a route is bad.

    Raises:
        OSError: a file is there and cannot be opened.
    """
    reader = EventReader(path)
    try:
        found = Effectiveness(since, slow_ms).feed(reader.stored()).facts()
    finally:
        reader.close()
    return found | {"broken": reader.broken}
