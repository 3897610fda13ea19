"""Heads as they go up: what is made once for all that are alike is what would have been made for each alone."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.load import load
from pool.clock import Clock
from pool.model import Source, Start
from proxy.build import build
from proxy.entry import Entrance
from proxy.exchange import Exchange
from proxy.insight.redact import Redactor
from proxy.outbound import outbound_head
from tests.fakes.pool import wish

NAMES = ["x-opencode-session", "X-OpenCode-Session", "session_id", "x-parent-session-id", "X-Copy", "x-ocpool-class"]
VALUES = ["", "a", "100%", "%(session)b", "0123456789abcdef0123"]
IDS = [*VALUES[1:], "ses_other"]
FIELDS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES)), max_size=4)


@pytest.mark.parametrize("mode", ["route", "observe", "off"])
def test_a_head_goes_up_the_same_whether_or_not_it_is_known(tmp_path: Path, mode: str):
    """Also what is noted about its session fields is the same: are they still the client's own?"""
    settings = [f"state.path={tmp_path / 'state.json'}", f"routing.mode={mode}"]
    daemon = build(load(None, settings, {}), Clock(), Redactor(()))

    @given(FIELDS, st.sampled_from(IDS), st.sampled_from(IDS), st.booleans(), st.booleans(), st.integers(0, 10**9))
    def holds(fields, routed_id, natural, minted, bypassed, length):  # noqa: PLR0917 - what a head depends on
        entrance = Entrance(daemon)
        start = Start(wish(value=natural, minted=minted), routed_id, Source.SPARE, 1, bound=True, first_turn=False)

        def sent() -> tuple[bytes, bool]:
            lines = "".join(f"{name}: {value}\r\n" for name, value in [*fields, ("Content-Length", str(length))])
            entry, found = entrance.enter(f"POST /v1/chat/completions HTTP/1.1\r\n{lines}\r\n".encode())
            entry.admit()
            exchange = Exchange(1, 1, 0.0, b"POST", entry.target, entry.scope)
            exchange.start, exchange.bypassed = (start if entry.routed else None), bypassed
            return outbound_head(daemon, exchange, entry, found), exchange.rewrote

        anew = sent()
        assert anew == sent() == sent()

    holds()
