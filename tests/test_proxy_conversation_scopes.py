"""Scopes by credential or token, and the secret behind them."""

import os
import re
import stat
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.conversation import scopes
from proxy.conversation.scopes import SECRET_BYTES, load_secret, scope_of

SECRET = bytes(range(32))
KEY = b"sk-0123456789abcdef"


def scope(*fields, token=None, secret=SECRET):
    return scope_of(token, list(fields), secret)


def test_one_key_is_one_scope_in_whatever_field_it_stands():
    """SDKs of one user send it differently."""
    bearer = scope((b"Authorization", b"Bearer " + KEY))
    assert re.fullmatch(r"[0-9a-f]{16}", bearer)
    for field in [
        (b"AUTHORIZATION", b"bearer  " + KEY + b" "),
        (b"authorization", KEY),
        (b"x-api-key", KEY),
        (b"X-Goog-Api-Key", KEY),
        (b"api-key", KEY),
    ]:
        assert scope((b"Host", b"localhost"), field) == bearer


def test_scopes_differ_by_credential_by_token_and_by_installation():
    """And nobody's is a scope of its own."""
    several = {
        scope((b"authorization", b"Bearer a")),
        scope((b"authorization", b"Bearer b")),
        scope((b"authorization", b"Basic a")),
        scope((b"authorization", b"Bearer a"), token="a"),
        scope(token="b"),
        scope(),
        scope((b"authorization", b"Bearer a"), secret=b"x" * 32),
    }
    assert len(several) == 7


def test_a_listener_token_is_the_scope_whatever_the_credential():
    """A key may be rotated under it."""
    assert scope((b"authorization", b"Bearer a"), token="t") == scope((b"authorization", b"Bearer b"), token="t")


def test_of_two_credentials_the_stronger_field_counts():
    """Authorization is what the gateway reads first."""
    assert scope((b"x-api-key", b"b"), (b"authorization", b"Bearer a")) == scope((b"authorization", b"Bearer a"))


@pytest.mark.parametrize("value", [b"", b" ", b"Bearer", b"Bearer ", b"bearer   "])
def test_an_empty_credential_is_none(value):
    """A client that was given no key."""
    assert scope((b"authorization", value), (b"x-api-key", KEY)) == scope((b"x-api-key", KEY))
    assert scope((b"authorization", value)) == scope()


@given(
    st.lists(st.tuples(st.binary(max_size=30), st.binary(max_size=60)), max_size=8), st.none() | st.text(max_size=20)
)
def test_any_request_has_a_scope_and_it_shows_nothing(fields, token):
    """16 hex, never empty, never the credential."""
    assert re.fullmatch(r"[0-9a-f]{16}", scope_of(token, fields, SECRET))


def test_the_secret_is_made_once_and_kept(tmp_path):
    """In a folder that only its owner may enter, in a file that only its owner may read."""
    path = tmp_path / "state" / "state.json.key"
    secret, warning = load_secret(path, None)
    assert (len(secret), warning) == (SECRET_BYTES, None)
    assert load_secret(path, None) == (secret, None)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["state.json.key"]


def test_a_configured_secret_needs_no_file(tmp_path):
    """The same text is the same secret."""
    path = tmp_path / "key"
    first, warning = load_secret(path, "correct horse battery staple")
    assert warning is None
    assert load_secret(None, "correct horse battery staple")[0] == first
    assert load_secret(None, "another")[0] != first
    assert not path.exists()


def test_where_nothing_is_kept_the_secret_lasts_as_long_as_the_process():
    """Without a warning: nobody asked for a file."""
    first, warning = load_secret(None, None)
    assert (len(first), warning) == (SECRET_BYTES, None)
    assert load_secret(None, None)[0] != first


def test_a_folder_that_cannot_be_made_costs_a_warning_only(tmp_path):
    """Work goes on with a secret in memory."""
    (tmp_path / "file").write_text("")
    secret, warning = load_secret(tmp_path / "file" / "state.key", None)
    assert len(secret) == SECRET_BYTES
    assert "cannot be used" in warning


def test_a_file_that_is_too_short_is_left_alone(tmp_path, monkeypatch):
    """It may be somebody's; the warning says what to do."""
    monkeypatch.setattr(scopes, "_PAUSE_SECONDS", 0)
    path = tmp_path / "key"
    path.write_bytes(b"short")
    secret, warning = load_secret(path, None)
    assert len(secret) == SECRET_BYTES
    assert "remove it" in warning
    assert path.read_bytes() == b"short"


def test_a_file_that_others_may_read_is_closed_to_them(tmp_path):
    """And said so once."""
    path = tmp_path / "key"
    load_secret(path, None)
    path.chmod(0o644)
    _, warning = load_secret(path, None)
    assert "open to others" in warning
    assert load_secret(path, None)[1] is None


def test_a_file_system_without_links_is_written_in_place(tmp_path, monkeypatch):
    """As some mounted volumes are."""

    def refuse(*_):
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "key"
    secret, warning = load_secret(path, None)
    assert warning is None
    assert path.read_bytes() == secret


def test_a_full_disk_leaves_no_half_a_file(tmp_path, monkeypatch):
    """The next start would trip over it."""

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    path = tmp_path / "key"
    secret, warning = load_secret(path, None)
    assert len(secret) == SECRET_BYTES
    assert "No space left" in warning
    assert list(tmp_path.iterdir()) == []


def test_a_reader_waits_until_the_file_is_whole(tmp_path, monkeypatch):
    """Another process may be writing it at this moment."""
    path = tmp_path / "key"
    path.write_bytes(b"")
    path.chmod(0o600)
    monkeypatch.setattr(scopes.time, "sleep", lambda _: path.write_bytes(SECRET))
    assert load_secret(path, None) == (SECRET, None)


def test_processes_that_start_at_once_agree(tmp_path):
    """Whoever creates the file first."""
    path = tmp_path / "state" / "key"
    code = (
        "import sys, pathlib\n"
        "from proxy.conversation.scopes import load_secret\n"
        "sys.stdin.readline()\n"
        "secret, warning = load_secret(pathlib.Path(sys.argv[1]), None)\n"
        "print(secret.hex(), warning)\n"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = {process.communicate(timeout=60)[0] for process in running}
    assert said == {f"{path.read_bytes().hex()} None\n"}
