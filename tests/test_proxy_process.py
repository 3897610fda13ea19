"""What concerns the process as a whole."""

import sys

from proxy.process import hurry_the_loop


def test_a_thread_that_computes_hands_the_interpreter_over_within_a_millisecond():
    before = sys.getswitchinterval()
    try:
        hurry_the_loop()
        assert sys.getswitchinterval() < 0.001
    finally:
        sys.setswitchinterval(before)
