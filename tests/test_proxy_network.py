"""The banner: what it says, and for which errors there is none."""

import pytest

from proxy import errors
from proxy.network import banner


@pytest.mark.parametrize("kind", [errors.CaptivePortal, errors.NameNotResolved, errors.TlsFailed])
def test_without_a_way_out_of_this_network_there_is_no_network(kind):
    assert banner(kind("why"), connected=False) == "No network: why"
    assert banner(kind("why"), connected=True) == "No network: why"


@pytest.mark.parametrize("kind", [errors.ConnectFailed, errors.ConnectTimedOut])
def test_a_gateway_that_cannot_be_reached_is_said_as_that(kind):
    assert banner(kind("why"), connected=False) == "No way to the gateway: why"
    assert banner(kind("a reused connection ended just then"), connected=True) is None


@pytest.mark.parametrize(
    "kind",
    [
        errors.ClosedEarly,
        errors.BadResponse,
        errors.UpstreamTimedOut,
        errors.Stopping,
        errors.ClientGone,
        errors.BodyTooLarge,
    ],
)
def test_every_other_error_says_nothing_about_the_network(kind):
    assert banner(kind("why"), connected=False) is None
