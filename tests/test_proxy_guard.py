"""Who may come in: Host, Origin and token."""

import pytest

from config.settings import Settings
from proxy.errors import Forbidden, TokenRefused
from proxy.guard import Guard, host_name


def guard(**listen):
    return Guard.of(Settings.model_validate({"listen": listen}))


@pytest.mark.parametrize("host", [b"localhost", b"LOCALHOST:9", b"127.0.0.1:8377", b"[::1]:8377", b"[::1]", None])
def test_this_machine_is_welcome_at_any_port(host):
    guard().check_host(host)


@pytest.mark.parametrize("host", [b"evil.example", b"127.0.0.1.evil.example", b"localhost.evil:80", b"", b"[::2]"])
def test_a_foreign_host_is_refused(host):
    with pytest.raises(Forbidden):
        guard().check_host(host)


def test_an_allowed_host_is_welcome_at_any_port_or_at_the_one_that_was_named():
    it = guard(allowed_hosts=["ocpool", "gateway:8377", "[fd00::1]", "[fd00::2]:80"])
    for host in (b"OcPool:8377", b"ocpool", b"gateway:8377", b"[fd00::1]:5", b"[fd00::2]:80"):
        it.check_host(host)
    for host in (b"gateway:1", b"gateway", b"[fd00::2]:81"):
        with pytest.raises(Forbidden):
            it.check_host(host)


@pytest.mark.parametrize(
    "seen",
    [
        {b"origin": b"https://evil.example", b"host": b"localhost:8377"},
        {b"origin": b"null", b"host": b"localhost:8377"},
        {b"origin": b"http://localhost:3000", b"host": b"localhost:8377"},
        {b"sec-fetch-site": b"cross-site"},
        {b"sec-fetch-site": b"same-site"},
    ],
)
def test_a_foreign_page_is_refused(seen):
    with pytest.raises(Forbidden):
        guard().check_origin(seen)


@pytest.mark.parametrize(
    "seen",
    [
        {b"origin": b"http://localhost:8377", b"host": b"localhost:8377", b"sec-fetch-site": b"same-origin"},
        {b"origin": b"https://chat.example", b"host": b"localhost", b"sec-fetch-site": b"cross-site"},
        {b"sec-fetch-site": b"none"},
        {},
    ],
)
def test_our_own_pages_allowed_ones_and_no_browser_are_welcome(seen):
    guard(allowed_origins=["https://chat.example/"]).check_origin(seen)


def test_without_tokens_none_is_asked_for():
    assert guard().check_token(None) is None


def test_each_token_is_a_scope_of_its_own():
    it = guard(token="main-token-1", tokens={"anna": "anna-token-1"})
    assert it.check_token(b"main-token-1") == ""
    assert it.check_token(b"anna-token-1") == "anna"
    for wrong in (None, b"", b"main-token-2", "mäin".encode()):
        with pytest.raises(TokenRefused) as refused:
            it.check_token(wrong)
        assert "main-token-1" not in refused.value.message


@pytest.mark.parametrize(("host", "name"), [(b"A.b:1", "a.b"), (b"[::1]:2", "::1"), (b" x ", "x"), (b"", "")])
def test_host_names_are_compared_without_port_and_case(host, name):
    assert host_name(host) == name
