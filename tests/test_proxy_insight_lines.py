"""The thread that writes, so that nobody waits."""

import threading
import time

from proxy.insight.lines import LineWriter


class Sink:
    """Keeps what is written; can refuse, and can be made to hang."""

    def __init__(self):
        self.lines = []
        self.error = None
        self.open = threading.Event()
        self.open.set()
        self.closed = False

    def write(self, lines):
        self.open.wait(10)
        if self.error is not None:
            raise self.error
        self.lines += lines.decode().splitlines()

    def close(self):
        self.closed = True


def writer(sink, said=None, capacity=10_000):
    """A writer of texts."""
    return LineWriter(
        sink,
        str.encode,
        dropped=lambda count: b"dropped %d" % count,
        trouble=(said if said is not None else []).append,
        capacity=capacity,
    )


def until(condition):
    """Wait for a thread, at most five seconds."""
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end, "never happened"
        time.sleep(0.005)


def test_what_is_queued_is_written_in_order_by_close():
    """close is the last chance, and takes it."""
    sink = Sink()
    lines = writer(sink)
    for number in range(500):
        lines.put(str(number))
    lines.close()
    assert sink.lines == [str(number) for number in range(500)]
    assert sink.closed


def test_lines_appear_without_close_and_also_after_a_pause():
    """The thread wakes for the first line of each batch."""
    sink = Sink()
    lines = writer(sink)
    for round_ in range(3):
        lines.put(f"line {round_}")
        until(lambda expected=round_ + 1: len(sink.lines) == expected)
    lines.close()


def test_a_full_queue_drops_counts_and_says_so():
    """A sink that hangs costs lines, never time; afterwards a line tells how many."""
    sink = Sink()
    lines = writer(sink, capacity=10)
    sink.open.clear()
    began = time.monotonic()
    for number in range(1000):
        lines.put(str(number))
    assert time.monotonic() - began < 0.5
    assert lines.dropped > 900
    sink.open.set()
    lines.close()
    told = [int(line.split()[1]) for line in sink.lines if line.startswith("dropped")]
    assert sum(told) == lines.dropped
    assert len(sink.lines) - len(told) + lines.dropped == 1000


def test_a_failing_sink_is_told_once_and_once_when_it_works_again():
    """Not a line per line lost."""
    sink, said = Sink(), []
    lines = writer(sink, said)
    sink.error = OSError(28, "No space left on device")
    for _ in range(3):
        before = lines.dropped
        lines.put("lost")
        until(lambda seen=before: lines.dropped > seen)
    assert lines.failing
    sink.error = None
    lines.put("kept")
    until(lambda: sink.lines)
    assert sink.lines == ["kept", "dropped 3"]
    assert said == [said[0], None]
    assert said[0].errno == 28
    lines.close()


def test_a_sink_that_hangs_does_not_hold_up_the_end():
    """close gives up after its bound."""
    sink = Sink()
    lines = writer(sink)
    sink.open.clear()
    lines.put("stuck")
    began = time.monotonic()
    lines.close(0.2)
    assert time.monotonic() - began < 2
    assert not sink.closed
    sink.open.set()


def test_a_line_after_close_is_counted_as_lost():
    """Nobody writes any more, and nothing raises."""
    lines = writer(Sink())
    lines.close()
    lines.put("late")
    assert lines.dropped == 1
