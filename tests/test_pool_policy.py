"""pool/policy.py"""

import pytest

from pool.model import ModelKey
from pool.policy import OFF, Regime, policy_for
from tests.fakes.pool import GO, MODEL, settings

KEY = ModelKey(GO, MODEL)


def test_by_default_conversations_start_on_spares_and_latency_retires():
    policy = policy_for(settings(), KEY)
    assert (policy.routed, policy.applied, policy.spares, policy.latency_retires, policy.stock) == (
        True,
        True,
        True,
        True,
        3,
    )


def test_observe_decides_without_being_applied():
    policy = policy_for(settings(routing={"mode": "observe"}), KEY)
    assert policy.routed
    assert not policy.applied


@pytest.mark.parametrize(
    "routing",
    [{"mode": "off"}, {"providers": ["opencode"]}, {"models": ["other"]}],
)
def test_off_and_the_allow_lists_leave_a_model_alone(routing):
    assert policy_for(settings(routing=routing), KEY) == OFF


def test_an_allowed_model_is_routed():
    assert policy_for(settings(routing={"models": [MODEL]}), KEY).routed


def test_where_every_request_is_balanced_nothing_is_stocked_and_latency_retires_nothing():
    policy = policy_for(settings(), KEY, Regime.BALANCED)
    assert (policy.spares, policy.latency_retires, policy.stock, policy.canary) == (False, False, 0, True)
