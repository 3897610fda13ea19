"""Heads at the door: let in or not, and remembered for as long as the settings stay."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.load import Loaded, load
from pool.clock import Clock
from proxy.build import build
from proxy.daemon import Daemon
from proxy.entry import Entrance
from proxy.errors import BadRequest, BadTarget, Forbidden, TokenRefused, UpgradeRefused
from proxy.insight.redact import Redactor


def head(*fields: str, target: str = "/v1/chat/completions", method: str = "POST", host: str = "localhost") -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *fields]
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"


Open = Callable[..., Daemon]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """A daemon with these settings, of which nothing runs."""

    def made(*settings: str) -> Daemon:
        loaded: Loaded = load(None, [f"state.path={tmp_path / 'state.json'}", *settings], {})
        return build(loaded, Clock(), Redactor(()))

    return made


def test_a_head_is_remembered_whatever_the_length_of_its_body(opened: Open):
    entrance = Entrance(opened())
    first, length = entrance.enter(head("Authorization: Bearer k", "Content-Length: 12"))
    assert (length, first.remembered) == (12, False)
    second, length = entrance.enter(head("Authorization: Bearer k", "Content-Length: 3456"))
    assert (length, second.remembered) == (3456, True)
    assert second is first


@pytest.mark.parametrize(
    "other",
    [
        head("Authorization: Bearer other", "Content-Length: 12"),
        head("Authorization: Bearer k", "content-length: 12"),
        head("Authorization: Bearer k", "Content-Length: 12", target="/zen/v1/chat/completions"),
        head("Authorization: Bearer k", "Content-Length: 12", "x-session-id: a"),
        head("Authorization: Bearer k", "Content-Length: 012"),
        head("Authorization: Bearer k", "Transfer-Encoding: chunked"),
    ],
)
def test_another_head_is_another_entry(opened: Open, other: bytes):
    entrance = Entrance(opened())
    known, _ = entrance.enter(head("Authorization: Bearer k", "Content-Length: 12"))
    assert entrance.enter(other)[0] is not known


def test_a_second_length_is_refused_whether_or_not_the_head_is_known(opened: Open):
    entrance = Entrance(opened())
    entrance.enter(head("Content-Length: 12"))
    for fields in (("Content-Length: 12", "Content-Length: 13"), ("Content-Length: 1", "content-length: 1")):
        for _ in range(2):
            with pytest.raises(BadRequest):
                entrance.enter(head(*fields))


def test_the_same_head_again_is_told_by_its_bytes_as_it_is_by_reading_it(opened: Open):
    """But for the length of its body, and whatever comes behind it; and nothing else is taken for it."""
    known_head = head("Authorization: Bearer k", "Content-Length: 12", "x-session-id: a")
    before, _, after = known_head.partition(b"12")
    entrance = Entrance(opened())
    known, _ = entrance.enter(known_head)
    lengths = st.one_of(st.integers(0, 10**14).map(str), st.sampled_from(["", "007", "+1", "1_0", " 5", "1e3", "5 "]))
    spoilt = st.one_of(st.none(), st.tuples(st.integers(0, len(known_head)), st.sampled_from([b"", b"x", b"\r\n"])))

    @given(lengths, st.binary(max_size=20), spoilt)
    def holds(length: str, body: bytes, spoil: tuple[int, bytes] | None):
        data = before + length.encode() + after + body
        if spoil is not None:
            data = data[: spoil[0]] + spoil[1] + data[spoil[0] + 1 :]
        end = data.find(b"\r\n\r\n") + 4
        expected = None
        if end >= 4:
            with contextlib.suppress(BadRequest):
                entry, found = entrance.enter(data[:end])
                expected = (found, end) if entry is known else None
        assert known.length_in(data) == expected

    holds()


def test_other_settings_forget_what_was_let_in_under_the_old(opened: Open):
    daemon = opened()
    entrance = Entrance(daemon)
    known, _ = entrance.enter(head("Content-Length: 12"))
    known.admit()
    assert daemon.loaded is not None
    daemon.reconfigure(daemon.loaded._replace(settings=daemon.settings.model_copy(deep=True)))
    again, _ = entrance.enter(head("Content-Length: 12"))
    assert again is not known
    assert not again.admitted


def test_what_is_remembered_is_bounded(opened: Open):
    entrance = Entrance(opened())
    for number in range(2_000):
        entrance.enter(head(f"x-request-id: {number}", "Content-Length: 12"))
    assert len(entrance._known) <= 512  # noqa: SLF001


@pytest.mark.parametrize(
    ("sent", "settings", "error"),
    [
        (head(host="evil.example"), (), Forbidden),
        (head("Origin: https://evil.example"), (), Forbidden),
        (head("Sec-Fetch-Site: cross-site"), (), Forbidden),
        (head(target="http://evil.example/"), (), BadTarget),
        (head("Upgrade: websocket", "Connection: Upgrade"), (), UpgradeRefused),
        (head(), ("listen.token=a-token-of-mine",), TokenRefused),
        (head("x-ocpool-token: wrong"), ("listen.token=a-token-of-mine",), TokenRefused),
        (head(target="/-/status", method="GET"), ("listen.token=a-token-of-mine",), TokenRefused),
    ],
)
def test_who_may_not_come_in_is_turned_away_each_time(opened: Open, sent: bytes, settings: tuple[str, ...], error):
    entrance = Entrance(opened(*settings))
    for _ in range(2):
        entry, _ = entrance.enter(sent)
        with pytest.raises(error):
            entry.admit()
        assert not entry.admitted


@pytest.mark.parametrize(
    "sent",
    [
        head("x-ocpool-token: a-token-of-mine"),
        head(target="/t/a-token-of-mine/v1/chat/completions"),
        head(target="/-/health", method="GET"),
    ],
)
def test_the_token_or_an_open_page_lets_in(opened: Open, sent: bytes):
    entry, _ = Entrance(opened("listen.token=a-token-of-mine")).enter(sent)
    entry.admit()
    assert entry.admitted


def test_callers_are_told_apart_and_the_same_one_known_again(opened: Open):
    entrance = Entrance(opened())
    scopes = []
    for key in ("a", "b", "a"):
        entry, _ = entrance.enter(head(f"Authorization: Bearer {key}", "Content-Length: 2"))
        entry.admit()
        scopes.append(entry.scope)
    assert scopes[0] == scopes[2] != scopes[1]


def test_a_remembered_head_goes_up_with_the_length_of_each_body(opened: Open):
    """Also where no form can be had of it, because its parent's id depends on the request."""
    entrance = Entrance(opened())
    for length in (12, 3456, 7):
        entry, found = entrance.enter(head("x-parent-session-id: a-parent-of-it-0001", f"Content-Length: {length}"))
        assert dict(entry.sized(found))[b"Content-Length"] == b"%d" % length
