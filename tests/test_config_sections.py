"""What each section accepts beyond a type and a range."""

import pytest
from pydantic import ValidationError

from config.sections.listen import ListenSection, is_loopback
from config.settings import Settings


def refused(section, **keys):
    """The words in which a section refuses its keys."""
    with pytest.raises(ValidationError) as error:
        Settings.model_validate({section: keys})
    return str(error.value)


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("127.0.0.1.example.org", False),
        ("box", False),
    ],
)
def test_only_an_address_of_this_machine_is_loopback(host, is_local):
    """A name may resolve to anything, so it is not loopback."""
    assert is_loopback(host) is is_local


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "box.lan"])
def test_an_open_listener_needs_a_token_or_an_explicit_word(host):
    """Listening beyond loopback is refused without a token, tokens or insecure."""
    assert "listen.token" in refused("listen", host=host)
    for keys in ({"token": "abc"}, {"tokens": {"alice": "abc"}}, {"insecure": True}):
        assert ListenSection.model_validate({"host": host, **keys}).host == host


def test_brackets_around_an_address_are_taken_off():
    """[::1] is ::1."""
    assert Settings.model_validate({"listen": {"host": "[::1]"}}).listen.host == "::1"


@pytest.mark.parametrize("host", ["a:1/", "http://x", "", "a b", "u@h"])
def test_a_host_is_not_a_url(host):
    """What is no address or name is refused."""
    refused("listen", host=host, insecure=True)


def test_two_tokens_may_not_be_the_same():
    """A shared token would put two scopes into one."""
    assert "must differ" in refused("listen", token="same", tokens={"a": "same"})
    assert "must differ" in refused("listen", tokens={"a": "same", "b": "same"})


@pytest.mark.parametrize("token", ["a/b", "a%b", "ü", "x" * 257])
def test_a_token_must_fit_into_a_path(token):
    """A token also travels as /t/<token>/; the refusal does not quote it."""
    assert token not in refused("listen", token=token)


@pytest.mark.parametrize("name", ["a b", "", "a/b", "x" * 65])
def test_a_scope_has_a_plain_name(name):
    """The names of tokens appear in status pages."""
    refused("listen", tokens={name: "secret"})


@pytest.mark.parametrize(
    ("given", "kept"),
    [("OCPool", "ocpool"), ("ocpool:8377", "ocpool:8377"), ("[::1]:80", "[::1]:80"), ("a.b-c.d", "a.b-c.d")],
)
def test_an_allowed_host_is_a_name_with_or_without_a_port(given, kept):
    """Names are compared in lower case."""
    assert Settings.model_validate({"listen": {"allowed_hosts": [given]}}).listen.allowed_hosts == (kept,)


@pytest.mark.parametrize("given", ["*", "http://a", "a/b", "a:b", ".a", ""])
def test_what_is_no_host_is_not_allowed(given):
    """There is no wildcard: it would undo the guard against DNS rebinding."""
    refused("listen", allowed_hosts=[given])


def test_an_allowed_origin_has_a_scheme_and_no_path():
    """A slash at the end is forgiven, and the star is not an origin."""
    settings = Settings.model_validate({"listen": {"allowed_origins": ["https://Chat.example.org/", "app://x"]}})
    assert settings.listen.allowed_origins == ("https://chat.example.org", "app://x")
    for origin in ("*", "null", "chat.example.org", "https://a/b", "https://u@h"):
        refused("listen", allowed_origins=[origin])


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://opencode.ai/", "https://opencode.ai"),
        ("http://127.0.0.1:8080/gw/", "http://127.0.0.1:8080/gw"),
        ("http://[::1]:1", "http://[::1]:1"),
    ],
)
def test_a_base_url_may_have_a_port_and_a_path(given, kept):
    """A slash at the end is dropped."""
    assert Settings.model_validate({"upstream": {"base_url": given}}).upstream.base_url == kept


@pytest.mark.parametrize(
    "given",
    [
        "opencode.ai",
        "ftp://opencode.ai",
        "https://",
        "https://u:canary@h",
        "https://h?x=1",
        "https://h#x",
        "https://h:99999",
        "https://h:0",
        "https://[::1",
        "https://a b",
        "https://ü",
        "",
        "https://h\n",
    ],
)
def test_a_base_url_that_is_none_is_refused_without_its_password(given):
    """No crash of the parser, no userinfo, no query, and never a part of a password in the words."""
    assert "canary" not in refused("upstream", base_url=given)


def test_a_proxy_is_a_url_or_env():
    """A proxy's password is allowed and does not show in a repr."""
    for proxy in ("env", "http://u:canary@proxy:3128"):
        settings = Settings.model_validate({"upstream": {"proxy": proxy}})
        assert settings.upstream.proxy == proxy
        assert "canary" not in repr(settings)
    for proxy in ("http://u:canary/x@proxy", "https://proxy", "proxy:3128", "environment"):
        assert "http://proxy:3128" in refused("upstream", proxy=proxy)
        assert "canary" not in refused("upstream", proxy=proxy)


def test_a_default_path_is_a_path():
    """It starts with one slash and has no query."""
    assert Settings.model_validate({"upstream": {"default_path": "/zen/v1/"}}).upstream.default_path == "/zen/v1"
    for path in ("zen", "//zen", "/z?x", "/z en", "/ü"):
        refused("upstream", default_path=path)


def test_the_session_header_has_no_other_meaning():
    """A framing or credential header, or one of ours, cannot carry the session."""
    assert Settings.model_validate({"upstream": {"session_header": "X-Sid"}}).upstream.session_header == "x-sid"
    for name in ("Host", "content-length", "Authorization", "x-ocpool-class", "a b", "a:", ""):
        refused("upstream", session_header=name)


@pytest.mark.parametrize("subject", ["header", "path", "user_agent"])
@pytest.mark.parametrize("kind", ["owner", "cohort", "ignore"])
def test_a_rule_is_about_one_thing_and_has_a_class(subject, kind):
    """class is spelled as in the file, class_ in Python."""
    rules = Settings.model_validate({"conversation": {"rules": [{subject: "X-Job", "class": kind}]}}).conversation.rules
    assert rules[0].class_ == kind
    assert getattr(rules[0], subject) == ("x-job" if subject == "header" else "X-Job")


@pytest.mark.parametrize(
    "rule",
    [
        {"class": "owner"},
        {"header": "a", "path": "/", "class": "owner"},
        {"header": "a b", "class": "owner"},
        {"header": "a"},
    ],
)
def test_a_rule_about_nothing_or_two_things_is_refused(rule):
    """Exactly one of header, path and user_agent, and a class."""
    refused("conversation", rules=[rule])
