"""The user's own rules, which outrank what clients say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.settings import Settings
from proxy.conversation.body import BodyFacts
from proxy.conversation.ids import read_ids
from proxy.conversation.precedence import Kind
from proxy.conversation.rules import NO_RULES, Rules

LONG = b"0198c1f2-7a4b-7c3d-9e8f-0123456789ab"


def rules(*entries):
    return Rules.compile(Settings.model_validate({"conversation": {"rules": list(entries)}}).conversation.rules)


def read(rules, *fields, path="/zen/go/v1/chat/completions", named=None, ids=()):
    return read_ids(list(fields), named, BodyFacts(True, ids=tuple(ids)), rules, path)


def test_without_rules_nothing_is_asked():
    """The common case costs one truth test."""
    assert not NO_RULES
    assert not rules()
    assert rules({"header": "x-job", "class": "owner"})


@pytest.mark.parametrize(("name", "kind"), [("owner", Kind.OWNER), ("cohort", Kind.COHORT)])
def test_a_header_of_the_users_choice_is_an_id_of_rank_zero(name, kind):
    """In any case, with _ or -, and whatever the client sends beside it."""
    ruled = rules({"header": "X-Job_Id", "class": name})
    reading = read(ruled, (b"x_JOB-id", b" 17 "), (b"x-opencode-session", LONG))
    assert reading[:5] == (0, f"rule:{name}:x-job-id", kind, "x-job-id", "17")
    assert (reading.session, reading.disagrees) == (LONG.decode(), ())


def test_a_header_without_a_good_value_leaves_the_table_to_decide():
    """A rule is about an id, not about its absence."""
    ruled = rules({"header": "x-job", "class": "owner"})
    assert read(ruled, (b"x-job", b"a\x00b"), (b"x-session-id", b"s")).match == "owner:x-session-id"
    assert read(ruled, (b"x-job", b"\xff"), (b"x-session-id", b"s")).match == "owner:x-session-id"
    assert read(ruled).match == "new"


def test_an_ignored_header_is_no_id_and_no_natural_id():
    """What a user pasted once into every client."""
    ruled = rules({"header": "x-opencode-session", "class": "ignore"})
    reading = read(ruled, (b"X-Opencode-Session", b"wsl"), (b"x-session-id", b"s-1"))
    assert (reading.match, reading.session) == ("owner:x-session-id", "s-1")
    assert read(ruled, (b"X-Opencode-Session", b"wsl")).match == "new"


def test_an_ignored_half_of_a_pair_leaves_no_pair():
    """The other half alone is what it is."""
    ruled = rules({"header": "x-claude-code-agent-id", "class": "ignore"})
    reading = read(ruled, (b"x-claude-code-session-id", LONG), (b"x-claude-code-agent-id", b"a"))
    assert reading.match == "cohort:x-claude-code-session-id"


@pytest.mark.parametrize("about", [{"path": "/zen/go/"}, {"user_agent": "Zed"}])
def test_a_rule_about_a_request_puts_its_id_into_a_class(about):
    """Whichever id it has: from a field or from the body."""
    agent = (b"User-Agent", b"zed/0.210")
    owner = rules(about | {"class": "owner"})
    reading = read(owner, agent, ids=[("prompt_cache_key", "k")])
    assert reading[:5] == (0, "rule:owner:prompt_cache_key", Kind.OWNER, "prompt_cache_key", "k")
    cohort = rules(about | {"class": "cohort"})
    reading = read(cohort, agent, (b"x-session-id", b"s"))
    assert reading[:5] == (0, "rule:cohort:x-session-id", Kind.COHORT, "x-session-id", "s")
    ignore = rules(about | {"class": "ignore"})
    reading = read(ignore, agent, (b"x-session-id", b"s"), ids=[("prompt_cache_key", "k")])
    assert (reading.match, reading.session) == ("new", None)


def test_a_rule_about_other_requests_changes_nothing():
    """Another path, another client."""
    ruled = rules({"path": "/zen/v1", "class": "ignore"}, {"user_agent": "aider", "class": "ignore"})
    assert read(ruled, (b"user-agent", b"Zed"), (b"x-session-id", b"s")).match == "owner:x-session-id"


def test_the_first_rule_that_applies_decides():
    """Rules about paths before those about clients, each kind in the order they are written."""
    ruled = rules(
        {"header": "x-b", "class": "cohort"},
        {"header": "x-a", "class": "owner"},
        {"header": "x-b", "class": "owner"},
        {"path": "/zen", "class": "cohort"},
        {"path": "/zen/go", "class": "ignore"},
    )
    assert read(ruled, (b"x-a", b"a"), (b"x-b", b"b")).match == "rule:cohort:x-b"
    assert read(ruled, (b"x-session-id", b"s")).match == "rule:cohort:x-session-id"


def test_a_name_given_to_ocpool_outranks_every_rule():
    """The most explicit word there is."""
    ruled = rules({"header": "x-job", "class": "owner"}, {"path": "/", "class": "ignore"})
    assert read(ruled, (b"x-job", b"17"), named="work").match == "owner:/s/<name>/"
    assert read(ruled, (b"x-job", b"17"), (b"x-ocpool-conversation", b"w")).match == "owner:x-ocpool-conversation"


def test_an_operator_may_use_what_is_never_an_identity_otherwise():
    """It is their house."""
    ruled = rules({"header": "x-client-request-id", "class": "owner"})
    assert read(ruled, (b"x-client-request-id", b"r")).match == "rule:owner:x-client-request-id"


@given(st.lists(st.tuples(st.binary(max_size=20), st.binary(max_size=40)), max_size=6), st.text(max_size=20))
def test_no_fields_raise(fields, path):
    """Whatever bytes are sent."""
    ruled = rules(
        {"header": "x-job", "class": "owner"},
        {"header": "x-no", "class": "ignore"},
        {"path": "/a", "class": "cohort"},
        {"user_agent": "b", "class": "ignore"},
    )
    assert read_ids(fields, None, None, ruled, path).match
