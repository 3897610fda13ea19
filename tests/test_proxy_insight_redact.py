"""What is masked before it leaves the process."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from proxy.insight.redact import LONGEST, MASK, Redactor, digest, secrets_in

UUID = "3f0c6b1e-1111-4222-8333-444455556666"
SES = "ses_0123456789abABCDEFGHIJKLMN"


def test_a_digest_is_the_first_eight_hex_of_sha256():
    """A digest names an id without being one."""
    assert digest("abc") == digest(b"abc") == "ba7816bf"


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdef123456",
        "authorization: basic dXNlcjpwYXNz",
        "key sk-abcdefghijklmnop was refused",
        "oc_sk_abcdefghijklmnop",
        "GET /v1/models?api_key=abcdef123456&x=1",
        "http://user:abcdef123456@gateway.example/",
        "/t/abcdef123456/v1/chat/completions",
    ],
)
def test_a_credential_is_masked_wherever_it_stands(text):
    """Bearer and basic values, keys by their prefix, query keys, userinfo and path tokens go."""
    masked = Redactor().text(text)
    assert MASK in masked
    for part in ("abcdef123456", "dXNlcjpwYXNz", "abcdefghijklmnop"):
        assert part not in masked


@pytest.mark.parametrize("value", [UUID, UUID.upper(), SES])
def test_a_full_session_id_becomes_its_digest(value):
    """An id that slipped through is shown as everybody else shows it."""
    assert Redactor().text(f"took {value} now") == f"took id:{digest(value)} now"


@pytest.mark.parametrize("text", ["deepseek-v4.1-flash", "0123456789abcdef", "overloaded", "no route to host", "basic"])
def test_ordinary_words_stay(text):
    """Models, labels and reasons are not mistaken for secrets."""
    assert Redactor(["planted-secret"]).text(text) == text


def test_planted_and_learned_secrets_go_whatever_they_look_like():
    """Values known to be secret are masked as such, also inside other words."""
    redactor = Redactor(["correct horse"])
    redactor.learn("battery.staple")
    assert redactor.text("xcorrect horsex battery.staple") == f"x{MASK}x {MASK}"


def test_only_the_last_learned_secrets_are_remembered():
    """Credentials of live traffic come and go; memory for them is bounded."""
    redactor = Redactor(["fixed-one"], remember=2)
    for number in range(5):
        redactor.learn(f"learned-{number}")
    assert redactor.text("learned-0 learned-3 learned-4 fixed-one") == f"learned-0 {MASK} {MASK} {MASK}"


def test_a_short_secret_masks_nothing():
    """A token of three letters would mask half of the language."""
    assert Redactor(["the"]).text("the other") == "the other"


def test_facts_are_masked_by_name_at_any_depth():
    """A fact named like a credential is masked whole; the gateway's request number stays."""
    masked = Redactor().facts(
        {
            "headers": {"Authorization": "x", "X-Api-Key": ["y"]},
            "log_id": UUID,
            "session": UUID,
            "tokens": 3,
            "token": "z",
        }
    )
    assert masked == {
        "headers": {"Authorization": MASK, "X-Api-Key": MASK},
        "log_id": UUID,
        "session": f"id:{digest(UUID)}",
        "tokens": 3,
        "token": MASK,
    }


def test_a_long_fact_is_cut():
    """A client chooses some facts; it does not choose the size of our log."""
    assert len(Redactor().facts({"model": "m" * 100_000})["model"]) == LONGEST + 3


class _Unshowable:
    def __repr__(self):
        raise RuntimeError


def test_an_object_that_cannot_be_shown_is_shown_by_its_type():
    """A broken repr costs no line."""
    assert Redactor().facts({"it": _Unshowable()}) == {"it": "<_Unshowable>"}


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.builds(object),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner) | st.frozensets(st.text()),
    max_leaves=10,
)


@given(st.dictionaries(st.text(st.characters()), _VALUES))
def test_whatever_the_facts_are_they_can_be_written_as_json(facts):
    """Surrogates, huge numbers, bytes and strange objects make no line fail."""
    orjson.dumps(Redactor(["planted-secret"]).facts(facts))


class _Section(BaseModel):
    token: SecretStr | None = None
    tokens: dict[str, SecretStr] = {}
    plain: str = "visible"


class _Tree(BaseModel):
    listen: _Section = _Section()


def test_secrets_are_found_in_a_settings_tree():
    """Every SecretStr of the settings is planted, wherever it lies."""
    tree = _Tree(listen=_Section(token=SecretStr("one"), tokens={"a": SecretStr("two")}))
    assert sorted(secrets_in(tree)) == ["one", "two"]
