"""The mapping of request targets, as a table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.gateway.paths import base_path, resolve

DEFAULT = "/zen/go/v1"
GO, ZEN = "opencode-go", "opencode"

MAPPED = [
    # target, upstream, provider, api
    (b"/zen/go/v1/chat/completions", b"/zen/go/v1/chat/completions", GO, "completions"),
    (b"/zen/v1/chat/completions", b"/zen/v1/chat/completions", ZEN, "completions"),
    (b"/inference/go/openai/v1/responses", b"/inference/go/openai/v1/responses", GO, "responses"),
    (b"/inference/openai/v1/embeddings", b"/inference/openai/v1/embeddings", ZEN, "embeddings"),
    (b"/inference/go/anthropic/v1/messages", b"/inference/go/anthropic/v1/messages", GO, "messages"),
    (b"/inference/go/openai/v1/v1/messages", b"/inference/go/openai/v1/v1/messages", GO, "messages"),
    (b"/zen/v1/models/g:generateContent", b"/zen/v1/models/g:generateContent", ZEN, "google"),
    (
        b"/zen/v1/models/g:streamGenerateContent?alt=sse",
        b"/zen/v1/models/g:streamGenerateContent?alt=sse",
        ZEN,
        "google",
    ),
    (b"/zen/v1/models/g%3AgenerateContent", b"/zen/v1/models/g%3AgenerateContent", ZEN, "google"),
    (b"/zen/go/v1/systemone", b"/zen/go/v1/systemone", GO, "systemone"),
    (b"/zen/go/v1/models", b"/zen/go/v1/models", GO, "other"),
    (b"/zen/go/v1/usage", b"/zen/go/v1/usage", GO, "other"),
    (b"/zen/go/v1/messages/count_tokens", b"/zen/go/v1/messages/count_tokens", GO, "other"),
    # /v1 is short for the default path
    (b"/v1/chat/completions", b"/zen/go/v1/chat/completions", GO, "completions"),
    (b"/v1", b"/zen/go/v1", GO, "other"),
    (b"/v1/", b"/zen/go/v1/", GO, "other"),
    (b"/v1?a=1", b"/zen/go/v1?a=1", GO, "other"),
    (b"/v1/v1/messages", b"/zen/go/v1/v1/messages", GO, "messages"),
    (b"/v1beta/models", b"/v1beta/models", ZEN, "other"),
    (b"/v11/x", b"/v11/x", ZEN, "other"),
    # what is not short for anything stays
    (b"/", b"/", ZEN, "other"),
    (b"/?q", b"/?q", ZEN, "other"),
    (b"/zen/go", b"/zen/go", ZEN, "other"),
    (b"/zen/gopher/v1/chat/completions", b"/zen/gopher/v1/chat/completions", ZEN, "completions"),
    # the same bytes
    (
        b"/v1/models/org%2Fm%3A1?x=%2F+%27%28&y=a%20b&z=%E4%BD%A0",
        b"/zen/go/v1/models/org%2Fm%3A1?x=%2F+%27%28&y=a%20b&z=%E4%BD%A0",
        GO,
        "other",
    ),
    (b"//v1//a/../b?q", b"//v1//a/../b?q", ZEN, "other"),
    (b"/v1/a%25b?", b"/zen/go/v1/a%25b?", GO, "other"),
    (b"/v1//a/../b?q", b"/zen/go/v1//a/../b?q", GO, "other"),
    (b"/p?a=1&a=2;c&&d=", b"/p?a=1&a=2;c&&d=", ZEN, "other"),
    (b"/%7Ey", b"/%7Ey", ZEN, "other"),
    (b'/p?raw=[]|"', b'/p?raw=[]|"', ZEN, "other"),
    (b"/v1/x?#", b"/zen/go/v1/x?#", GO, "other"),
    (b"/zen/go/v1/chat/completions?x=/models", b"/zen/go/v1/chat/completions?x=/models", GO, "completions"),
    (b"/zen/go/v1/models?x=/chat/completions", b"/zen/go/v1/models?x=/chat/completions", GO, "other"),
    (b"/x?/v1/../s/n/", b"/x?/v1/../s/n/", ZEN, "other"),
]


@pytest.mark.parametrize(("target", "upstream", "provider", "api"), MAPPED)
def test_a_path_maps_as_documented_and_keeps_its_bytes(target, upstream, provider, api):
    found = resolve(target, DEFAULT)
    assert (found.upstream, found.provider, found.api) == (upstream, provider, api)
    assert found.inference is (api != "other")
    assert not found.own
    assert found.bad is None
    assert found.named is None
    assert found.token is None


@pytest.mark.parametrize(
    ("target", "token", "named", "upstream"),
    [
        (b"/s/work/v1/chat/completions", None, "work", b"/zen/go/v1/chat/completions"),
        (b"/s/work/zen/v1/models?", None, "work", b"/zen/v1/models?"),
        (b"/s/a%20b%2Fc/v1/x", None, "a b/c", b"/zen/go/v1/x"),
        (b"/s/%E4%BD%A0/v1/x", None, "你", b"/zen/go/v1/x"),
        (b"/s/%FF/v1/x", None, "\\xff", b"/zen/go/v1/x"),
        (b"/t/tok%2Den/v1/x", "tok-en", None, b"/zen/go/v1/x"),
        (b"/t/token/s/name/v1/x?y", "token", "name", b"/zen/go/v1/x?y"),
        (b"/t/token/s/name//v1/x", "token", "name", b"//v1/x"),
        (b"/t/token", "token", None, b"/"),
        (b"/t/token?q", "token", None, b"/?q"),
        (b"/t/token/", "token", None, b"/"),
        (b"/s/name", None, "name", b"/"),
        (b"/s//v1/x", None, None, b"/zen/go/v1/x"),
        (b"/t//v1/x", "", None, b"/zen/go/v1/x"),
        (b"/s/one/s/two/v1", None, "one", b"/s/two/v1"),
        (b"/tea/v1", None, None, b"/tea/v1"),
        (b"/s", None, None, b"/s"),
    ],
)
def test_prefixes_name_the_token_and_the_conversation(target, token, named, upstream):
    found = resolve(target, DEFAULT)
    assert (found.token, found.named, found.upstream, found.bad) == (token, named, upstream, None)


@pytest.mark.parametrize(
    ("target", "token", "upstream"),
    [
        (b"/-/", None, b"/-/"),
        (b"/-", None, b"/-"),
        (b"/-?x", None, b"/-?x"),
        (b"/-/status?conversation=1", None, b"/-/status?conversation=1"),
        (b"/t/tok/-/status", "tok", b"/-/status"),
    ],
)
def test_our_own_pages_are_ours(target, token, upstream):
    found = resolve(target, DEFAULT)
    assert found.own
    assert (found.token, found.upstream, found.bad) == (token, upstream, None)


@pytest.mark.parametrize("target", [b"/-x/", b"/%2D/status", b"//-/status", b"/s/n/-/status", b"/.-/"])
def test_what_only_looks_like_our_pages_is_not(target):
    assert not resolve(target, DEFAULT).own


@pytest.mark.parametrize(
    "target",
    [
        b"http://evil.example/v1/x",
        b"https://opencode.ai/zen/v1/models",
        b"opencode.ai:443",
        b"*",
        b"",
        b"v1/x",
        b"?x",
    ],
)
def test_a_target_that_is_no_path_is_refused(target):
    assert resolve(target, DEFAULT).bad


def test_a_token_behind_a_name_is_refused_so_that_it_is_not_sent_upstream():
    found = resolve(b"/s/name/t/secret/v1/x", DEFAULT)
    assert found.bad
    assert b"secret" not in found.upstream


@pytest.mark.parametrize(
    ("base", "default", "target", "upstream", "provider"),
    [
        ("https://h", DEFAULT, b"/v1/x", b"/zen/go/v1/x", GO),
        ("https://h/", DEFAULT, b"/v1/x", b"/zen/go/v1/x", GO),
        ("https://h/api/paas/v4", "/v1", b"/v1/x", b"/api/paas/v4/v1/x", ZEN),
        ("https://h/api/paas/v4/", DEFAULT, b"/v1/x", b"/api/paas/v4/zen/go/v1/x", GO),
        ("https://h/v1?x=1", "/", b"/v1/x", b"/v1/x", ZEN),
        ("https://h/zen/go", "/v1", b"/v1/x", b"/zen/go/v1/x", GO),
        ("https://h", "/zen/go/v1/", b"/v1/x", b"/zen/go/v1/x", GO),
        ("https://h", "", b"/v1/x", b"/x", ZEN),
    ],
)
def test_the_path_of_the_base_url_goes_in_front(base, default, target, upstream, provider):
    found = resolve(target, default, base_path(base))
    assert (found.upstream, found.provider) == (upstream, provider)


@given(st.binary(max_size=80))
def test_any_bytes_resolve_without_an_error(target):
    found = resolve(target, DEFAULT)
    assert found.bad or found.upstream.startswith(b"/")
    assert found == resolve(target + b"", DEFAULT)


@given(st.binary(max_size=60).filter(lambda rest: not rest.startswith(b"/t/")))
def test_what_follows_a_prefix_is_what_goes_upstream(rest):
    rest = b"/zen/" + rest
    assert resolve(b"/t/tok/s/name" + rest, DEFAULT).upstream == rest


def test_a_target_too_long_to_remember_resolves_all_the_same():
    target = b"/v1/x?" + b"a" * 70_000
    assert resolve(target, DEFAULT).upstream == b"/zen/go" + target
