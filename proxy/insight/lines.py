"""A thread that writes lines, so that nobody who has something to say ever waits for a disk or a pipe.

``put`` is what the hot path pays: an append to a deque. Encoding, redaction and I/O happen on the thread, in
batches. What does not fit is dropped and counted; what cannot be written is dropped, counted and said once.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

BATCH_WAIT_SECONDS = 0.05
BATCH_LINES = 16  # encoding holds the interpreter's lock, and perhaps the only core: a third of a millisecond at most
PAUSE_SECONDS = 0.001  # between two batches: who waits for either has it
CLOSE_WAIT_SECONDS = 2.0

Item = TypeVar("Item")


class Sink(Protocol):
    """Where lines go. ``write`` raises OSError when it could not."""

    def write(self, lines: bytes) -> None: ...

    def close(self) -> None: ...


class LineWriter(Generic[Item]):
    """A bounded queue of items and the one thread that turns them into lines.

    Args:
        sink: where whole lines are written.
        encode: an item to a line without its end; called on the thread, must not raise.
        dropped: how many items were lost since it last went through, to the line that says so.
        trouble: called on the thread with the error when writing starts to fail, and with None when it works
            again.
        capacity: how many items may wait.
        name: of the thread.
    """

    def __init__(
        self,
        sink: Sink,
        encode: Callable[[Item], bytes],
        *,
        dropped: Callable[[int], bytes],
        trouble: Callable[[OSError | None], None],
        capacity: int = 10_000,
        name: str = "lines",
    ) -> None:
        self._sink = sink
        self._encode = encode
        self._dropped_line = dropped
        self._trouble = trouble
        self._capacity = capacity
        self._queue: deque[Item] = deque()
        self._awake = False
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._refused = 0  # written by callers only
        self._unwritten = 0  # written by the thread only, as is the next
        self._said = 0
        self.failing = False
        self._thread: threading.Thread | None = None
        self._name = f"ocpool-{name}"

    @property
    def dropped(self) -> int:
        """How many items were lost so far."""
        return self._refused + self._unwritten

    def put(self, item: Item) -> None:
        """Queue one item. Never blocks, never raises."""
        if len(self._queue) >= self._capacity:
            self._refused += 1
            return
        self._queue.append(item)
        if not self._awake:
            self._awake = True
            self._start()
            self._wake.set()

    def close(self, wait_seconds: float = CLOSE_WAIT_SECONDS) -> None:
        """Write what is queued and stop; a sink that hangs is left behind after ``wait_seconds``."""
        self._capacity = 0  # from now on
        self._closing.set()
        self._wake.set()
        thread = self._thread
        if thread is not None:
            thread.join(wait_seconds)
        if thread is None or not thread.is_alive():
            self._sink.close()

    def _start(self) -> None:
        if self._thread is not None:
            return
        thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no threads left, or the interpreter is going down: the queue stays bounded
            self._awake = False
            return
        self._thread = thread

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._closing.wait(BATCH_WAIT_SECONDS)  # let a batch gather, unless there is no more to come
            self._wake.clear()
            self._awake = False  # before draining: what comes later wakes the thread again
            while self._queue:
                self._write(min(len(self._queue), BATCH_LINES))
                if self._queue:
                    self._closing.wait(PAUSE_SECONDS)
            if self._closing.is_set() and not self._queue:
                return

    def _write(self, count: int) -> None:
        lines = [self._encode(self._queue.popleft()) for _ in range(count)]
        lost = self.dropped
        if lost > self._said:
            lines.append(self._dropped_line(lost - self._said))
        try:
            self._sink.write(b"\n".join(lines) + b"\n")
        except OSError as error:
            self._unwritten += count
            if not self.failing:
                self.failing = True
                self._trouble(error)
            return
        self._said = lost
        if self.failing:
            self.failing = False
            self._trouble(None)
