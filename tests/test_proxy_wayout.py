"""When a provider is bypassed, and when it is tried again."""

import pytest

from proxy.wayout import AGAIN_MS, Change, Sent, WayOut

GO, ZEN = "opencode-go", "opencode"
NOW = 1_796_060_000_000
STEP = 1_000


def proven(out: WayOut, provider: str = GO, *, times: int = 2, at: int = NOW) -> Change | None:
    """The client's own fields were accepted so often, a second apart, where ours were not."""
    change = None
    for number in range(times):
        change = out.settled(provider, Sent.REPLAYED, 200, at, at + number * STEP)
    return change


def test_one_replay_that_is_accepted_changes_nothing():
    out = WayOut()
    assert proven(out, times=1) is None
    assert not out.bypasses(GO, NOW + STEP)
    assert out.view() == {}


def test_two_in_a_row_bypass_the_provider_and_no_other():
    out = WayOut()
    assert proven(out) is Change.BEGUN
    assert out.bypasses(GO, NOW + STEP)
    assert not out.bypasses(ZEN, NOW + STEP)
    assert out.view() == {GO: {"since": NOW + STEP, "again_at": NOW + STEP + AGAIN_MS}}


def test_a_rewritten_request_that_is_accepted_between_breaks_the_row():
    out = WayOut()
    proven(out, times=1)
    assert out.settled(GO, Sent.REWRITTEN, 200, NOW + 1, NOW + 2) is None
    assert proven(out, times=1, at=NOW + STEP) is None


def test_a_rewritten_request_that_left_before_the_proof_breaks_nothing():
    """A long stream that began under the old contract ends while the new one is found out."""
    out = WayOut()
    proven(out, times=1)
    assert out.settled(GO, Sent.REWRITTEN, 200, NOW - 60_000, NOW + 1) is None
    assert proven(out, times=1, at=NOW + STEP) is Change.BEGUN
    assert out.settled(GO, Sent.REWRITTEN, 200, NOW - 60_000, NOW + 2 * STEP) is None
    assert out.bypasses(GO, NOW + 3 * STEP)


def test_own_fields_that_are_refused_too_break_the_row():
    out = WayOut()
    proven(out, times=1)
    out.settled(GO, Sent.REPLAYED, 400, NOW, NOW + 1)
    assert proven(out, times=1, at=NOW + STEP) is None


@pytest.mark.parametrize("sent", list(Sent))
def test_an_attempt_without_an_answer_says_nothing(sent: Sent):
    out = WayOut()
    proven(out, times=1)
    assert out.settled(GO, sent, None, NOW + 1, NOW + 1) is None
    assert proven(out, times=1, at=NOW + STEP) is Change.BEGUN


def test_a_refusal_of_another_kind_says_nothing_about_the_rewritten_field():
    out = WayOut()
    proven(out, times=1)
    assert out.settled(GO, Sent.REWRITTEN, 429, NOW + 1, NOW + 1) is None
    assert proven(out, times=1, at=NOW + STEP) is Change.BEGUN


def test_one_request_in_half_an_hour_is_rewritten_again():
    out = WayOut()
    proven(out)
    begun = NOW + STEP
    assert out.bypasses(GO, begun + AGAIN_MS)
    assert not out.bypasses(GO, begun + AGAIN_MS + 1), "the one that tries"
    assert out.bypasses(GO, begun + AGAIN_MS + 2), "the others stay away from it"
    assert not out.bypasses(GO, begun + 2 * AGAIN_MS + 2)


def test_the_bypass_ends_when_the_trial_is_accepted():
    out = WayOut()
    proven(out)
    at = NOW + STEP + AGAIN_MS + 1
    assert not out.bypasses(GO, at)
    assert out.settled(GO, Sent.REWRITTEN, 200, at, at + 5) is Change.OVER
    assert not out.bypasses(GO, at + 6)
    assert out.view() == {}


@pytest.mark.parametrize("status", [200, 400])
def test_the_bypass_goes_on_when_the_trial_is_refused(status: int):
    """Whatever becomes of the trial's own replay."""
    out = WayOut()
    proven(out)
    at = NOW + STEP + AGAIN_MS + 1
    assert not out.bypasses(GO, at)
    assert out.settled(GO, Sent.REPLAYED, status, at, at + 5) is None
    assert out.bypasses(GO, at + 6)


def test_what_passes_unchanged_says_nothing():
    out = WayOut()
    proven(out)
    assert out.settled(GO, Sent.OWN, 200, NOW + 5 * STEP, NOW + 5 * STEP) is None
    assert out.bypasses(GO, NOW + 6 * STEP)


def test_a_clock_that_steps_back_does_not_hold_the_bypass_for_ever():
    out = WayOut()
    proven(out)
    assert not out.bypasses(GO, NOW - 3 * AGAIN_MS)
    assert out.bypasses(GO, NOW - 3 * AGAIN_MS + 1)
