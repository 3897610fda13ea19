"""Where probes may go and on whose account."""

from config.settings import Settings
from proxy.gateway.paths import resolve
from proxy.targets import Targets

BEARER = (b"Authorization", b"Bearer sk-live-0000000000")
OTHER = (b"authorization", b"Bearer sk-other-000000000")
ORG = (b"X-OpenCode-Org-Id", b"org_1")
CHAT = resolve(b"/zen/go/v1/chat/completions?beta=1", "/zen/go/v1")
GO = "opencode-go"


def settings(**probe):
    return Settings.model_validate({"probe": probe})


def test_nothing_seen_and_nothing_configured_means_no_probe_and_a_reason():
    targets = Targets(Settings())
    assert targets.target_for(GO, "m") is None
    assert "credential" in targets.missing(GO)


def test_a_probe_uses_the_path_and_credential_of_live_traffic():
    targets = Targets(Settings())
    targets.remember(CHAT, "m", [(b"Host", b"x"), BEARER, (b"Cookie", b"c=1"), ORG], "scope")
    found = targets.target_for(GO, "m", "scope")
    assert (found.path, found.api, found.scope) == (b"/zen/go/v1/chat/completions", "completions", "scope")
    assert found.credential == (BEARER, ORG)
    assert targets.missing(GO) is None


def test_a_credential_serves_only_its_own_scope_and_provider():
    targets = Targets(Settings())
    targets.remember(CHAT, "m", [BEARER], "one")
    targets.remember(CHAT, "m", [OTHER], "two")
    assert targets.target_for(GO, "m", "one").credential == (BEARER,)
    assert targets.target_for(GO, "m", "two").credential == (OTHER,)
    assert targets.target_for(GO, "m", "three") is None
    assert targets.target_for("opencode", "m", "one") is None
    assert targets.target_for(GO, "m").credential == (OTHER,)


def test_the_path_is_the_one_last_used_for_the_model():
    targets = Targets(Settings())
    targets.remember(CHAT, "m", [BEARER], "s")
    targets.remember(resolve(b"/inference/go/openai/v1/chat/completions", "/x"), "n", [BEARER], "s")
    assert targets.target_for(GO, "m", "s").path == b"/zen/go/v1/chat/completions"
    assert targets.target_for(GO, "n", "s").path == b"/inference/go/openai/v1/chat/completions"
    assert targets.target_for(GO, "unseen", "s").path == b"/inference/go/openai/v1/chat/completions"


def test_a_configured_key_serves_every_scope_before_any_traffic():
    targets = Targets(settings(api_key="sk-configured"))
    found = targets.target_for(GO, "m", "any")
    assert (found.scope, found.path) == ("", b"/zen/go/v1/chat/completions")
    assert found.credential == ((b"authorization", b"Bearer sk-configured"),)
    assert targets.target_for("opencode", "m").path == b"/zen/v1/chat/completions"
    assert targets.shared_key


def test_a_configured_key_carries_the_organisation_seen_with_the_same_key_only():
    targets = Targets(settings(api_key="sk-live-0000000000"))
    targets.remember(CHAT, "m", [OTHER, (b"x-opencode-org-id", b"org_2")], "s")
    assert len(targets.target_for(GO, "m").credential) == 1
    targets.remember(CHAT, "m", [(b"x-api-key", b"sk-live-0000000000"), ORG], "s")
    assert targets.target_for(GO, "m").credential[1] == (b"x-opencode-org-id", b"org_1")


def test_the_base_urls_path_is_part_of_the_default_path():
    targets = Targets(
        Settings.model_validate(
            {"probe": {"api_key": "k"}, "upstream": {"base_url": "https://h/in/front", "default_path": "/v1"}}
        )
    )
    assert targets.target_for("opencode", "m").path == b"/in/front/v1/chat/completions"


def test_the_anonymous_key_is_nobodys_account():
    targets = Targets(Settings())
    targets.remember(CHAT, "m", [(b"Authorization", b"Bearer public"), ORG], "s")
    assert targets.target_for(GO, "m") is None


def test_an_api_that_probes_do_not_speak_is_not_remembered():
    targets = Targets(Settings())
    targets.remember(resolve(b"/zen/v1/models/g:generateContent", "/x"), "g", [BEARER], "s")
    assert targets.target_for("opencode", "g") is None


def test_a_key_is_in_no_printed_form():
    targets = Targets(Settings())
    targets.remember(CHAT, "m", [BEARER], "s")
    assert "sk-live" not in repr(targets.target_for(GO, "m"))


def test_what_is_remembered_is_bounded_and_the_young_stay():
    targets = Targets(Settings())
    for number in range(2000):
        targets.remember(CHAT, f"m{number}", [BEARER], f"s{number}")
    assert targets.target_for(GO, "m1999", "s1999") is not None
    assert targets.target_for(GO, "m0", "s0") is None
    assert len(targets._credentials) <= 256
    assert len(targets._paths) <= 1024


def test_a_reload_takes_the_key_over():
    targets = Targets(Settings())
    targets.reconfigure(settings(api_key="sk-new"))
    assert targets.target_for(GO, "m") is not None
    targets.reconfigure(Settings())
    assert targets.target_for(GO, "m") is None
