"""pool/pauses.py"""

import pytest

from pool.pauses import FAR, Area, Pauses, Reason
from tests.fakes.pool import GO, MODEL, NOW


def begun(area, until=NOW + 1000, reason=Reason.LIMIT):
    pauses = Pauses()
    pauses.begin(area, until, reason)
    return pauses


@pytest.mark.parametrize(
    ("area", "asked", "covered"),
    [
        (Area(GO, "s", MODEL), (GO, "s", MODEL), True),
        (Area(GO, "s"), (GO, "s", MODEL), True),
        (Area(GO), (GO, "s", MODEL), True),
        (Area(None), (GO, "s", MODEL), True),
        (Area(GO, "other"), (GO, "s", MODEL), False),
        (Area("opencode"), (GO, "s", MODEL), False),
        (Area(GO, "s", "other"), (GO, "s", MODEL), False),
        (Area(GO, "s"), (GO, None, None), False),
        (Area(GO), (GO, None, None), True),
    ],
)
def test_a_pause_covers_its_area(area, asked, covered):
    assert (begun(area).active(*asked, NOW) is not None) is covered


def test_a_pause_ends_by_itself_and_the_longest_is_told():
    pauses = begun(Area(GO))
    pauses.begin(Area(GO), NOW + 2000, "circuit open")
    assert pauses.active(GO, "s", MODEL, NOW) == (NOW + 2000, "circuit open")
    assert pauses.active(GO, "s", MODEL, NOW + 2000) is None
    assert pauses.view(NOW + 2000) == []


def test_a_pause_is_prolonged_but_never_shortened():
    pauses = begun(Area(GO))
    assert not pauses.begin(Area(GO), NOW + 500, Reason.LIMIT)
    assert pauses.active(GO, None, None, NOW) == (NOW + 1000, "limit")
    assert not pauses.begin(Area(GO), NOW + 5000, Reason.LIMIT)
    assert pauses.active(GO, None, None, NOW) == (NOW + 5000, "limit")
    assert not pauses.begin(Area(GO), None, Reason.LIMIT)
    assert not pauses.begin(Area(GO), NOW, Reason.LIMIT)
    assert pauses.active(GO, None, None, NOW) == (FAR, "limit")


def test_a_live_success_ends_the_limit_window_of_its_own_credential():
    pauses = begun(Area(GO, "mine"))
    pauses.begin(Area(GO, "theirs"), NOW + 1000, Reason.LIMIT)
    assert pauses.credential_works(GO, "mine") == ["limit"]
    assert pauses.active(GO, "mine", MODEL, NOW) is None
    assert pauses.active(GO, "theirs", MODEL, NOW) is not None


def test_a_refused_probe_stops_probes_until_another_credential_works():
    pauses = begun(Area(GO, "mine"), None, Reason.UNAUTHORIZED)
    assert pauses.credential_works(GO, "mine") == []
    assert pauses.active(GO, "mine", MODEL, NOW + 10**9) == (FAR, "unauthorized")
    assert pauses.credential_works(GO, "another") == ["unauthorized"]
    assert pauses.active(GO, "mine", MODEL, NOW) is None


def test_a_refused_live_request_stops_probes_until_that_credential_works_again():
    pauses = begun(Area(GO, "mine"), None, Reason.CREDENTIAL)
    assert pauses.credential_works(GO, "mine") == ["credential refused"]


def test_a_configured_key_that_was_refused_waits_for_a_reload():
    pauses = begun(Area(GO, ""), None, Reason.UNAUTHORIZED)
    assert pauses.credential_works(GO, "another") == []
    assert pauses.end(Reason.UNAUTHORIZED)
    assert not pauses.end(Reason.UNAUTHORIZED)


def test_ending_a_reason_leaves_other_providers_alone():
    pauses = begun(Area(GO))
    pauses.begin(Area("opencode"), NOW + 1000, Reason.LIMIT)
    assert pauses.end(Reason.LIMIT, GO)
    assert [one["provider"] for one in pauses.view(NOW)] == ["opencode"]
