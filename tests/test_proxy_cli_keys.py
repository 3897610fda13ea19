"""Whose account a command's probes run on."""

import json

import click
import pytest

from config.settings import Settings
from proxy.cli.keys import find_key, opencode_file, pi_file

GO = "opencode-go"
NOW = 1_796_000_000_000


@pytest.fixture
def home(tmp_path):
    return {"HOME": str(tmp_path)}


def write(path, document):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_without_any_key_there_is_none(home):
    assert find_key(Settings(), None, GO, home, NOW) is None


def test_a_named_variable_goes_before_everything(home):
    settings = Settings.model_validate({"probe": {"api_key": "sk-set"}})
    found = find_key(settings, "MY_KEY", GO, {**home, "MY_KEY": "sk-mine"}, NOW)
    assert (found.value, found.shared) == ("sk-mine", False)
    assert "MY_KEY" in found.origin


@pytest.mark.parametrize("value", ["", "two words", "public", "!op read x", "k\n"])
def test_a_named_variable_without_a_key_is_bad_usage(home, value):
    if value == "k\n":
        assert find_key(Settings(), "K", GO, {**home, "K": value}, NOW).value == "k"
        return
    with pytest.raises(click.UsageError):
        find_key(Settings(), "K", GO, {**home, "K": value}, NOW)


def test_the_configured_key_serves_anyone(home):
    settings = Settings.model_validate({"probe": {"api_key": "sk-set"}})
    found = find_key(settings, None, GO, home, NOW)
    assert (found.value, found.shared) == ("sk-set", True)
    assert find_key(settings, "K", GO, {**home, "K": "sk-set"}, NOW).shared


def test_pis_key_is_read_with_its_own_provider_first(home):
    write(
        pi_file(home),
        {
            "opencode": {"type": "api_key", "key": "sk-zen"},
            "opencode-go": {"type": "api_key", "key": "sk-go"},
        },
    )
    assert find_key(Settings(), None, GO, home, NOW).value == "sk-go"
    assert find_key(Settings(), None, "opencode", home, NOW).value == "sk-zen"


def test_one_key_serves_both_plans(home):
    write(pi_file(home), {"opencode": {"type": "api_key", "key": "sk-zen"}})
    assert find_key(Settings(), None, GO, home, NOW).value == "sk-zen"


@pytest.mark.parametrize("stored", ["$PI_KEY", "${PI_KEY}"])
def test_a_variable_in_pis_file_is_read(home, stored):
    write(pi_file(home), {GO: {"type": "api_key", "key": stored}})
    assert find_key(Settings(), None, GO, home, NOW) is None
    assert find_key(Settings(), None, GO, {**home, "PI_KEY": "sk-env"}, NOW).value == "sk-env"


def test_a_command_in_pis_file_is_never_run(home, tmp_path):
    write(pi_file(home), {GO: {"type": "api_key", "key": f"!touch {tmp_path / 'ran'}"}})
    assert find_key(Settings(), None, GO, home, NOW) is None
    assert not (tmp_path / "ran").exists()


def test_opencodes_key_comes_after_pis(home):
    write(opencode_file(home), {GO: {"type": "api", "key": "sk-oc"}})
    assert find_key(Settings(), None, GO, home, NOW).value == "sk-oc"
    write(pi_file(home), {GO: {"type": "api_key", "key": "sk-pi"}})
    assert find_key(Settings(), None, GO, home, NOW).value == "sk-pi"


def test_an_oauth_token_goes_with_its_organisation_until_it_expires(home):
    entry = {"type": "oauth", "access": "st_1", "expires": NOW + 1, "metadata": {"orgID": "org_1"}}
    write(opencode_file(home), {GO: entry})
    found = find_key(Settings(), None, GO, home, NOW)
    assert found.oauth
    assert found.credential == ((b"authorization", b"Bearer st_1"), (b"x-opencode-org-id", b"org_1"))
    assert find_key(Settings(), None, GO, home, NOW + 1) is None


@pytest.mark.parametrize(
    "document",
    [
        "",
        "not json",
        "[]",
        '{"opencode-go": null}',
        '{"opencode-go": "x"}',
        '{"opencode-go": {"type": "api_key"}}',
        '{"opencode-go": {"type": "api_key", "key": 3}}',
        '{"opencode-go": {"type": "wellknown", "key": "A", "token": "t"}}',
        '{"opencode-go": {"type": "oauth", "access": null, "metadata": 3}}',
    ],
)
def test_a_file_that_holds_no_key_is_passed_over(home, document):
    write(pi_file(home), document)
    write(opencode_file(home), document)
    assert find_key(Settings(), None, GO, home, NOW) is None


def test_the_files_are_where_their_owners_put_them(tmp_path):
    environ = {"HOME": "/h", "PI_CODING_AGENT_DIR": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    assert pi_file(environ) == tmp_path / "auth.json"
    assert opencode_file(environ) == tmp_path / "data" / "opencode" / "auth.json"
    assert str(opencode_file({"HOME": "/h", "XDG_DATA_HOME": "relative"})) == "/h/.local/share/opencode/auth.json"


def test_a_key_file_is_left_as_it_is(home):
    path = write(pi_file(home), {GO: {"type": "api_key", "key": "sk-go"}})
    path.chmod(0o400)
    before = path.stat()
    find_key(Settings(), None, GO, home, NOW)
    after = path.stat()
    assert (before.st_mtime_ns, before.st_mode, before.st_size) == (after.st_mtime_ns, after.st_mode, after.st_size)


def test_a_key_is_in_no_printed_form(home):
    assert "sk-mine" not in repr(find_key(Settings(), "K", GO, {**home, "K": "sk-mine"}, NOW))
